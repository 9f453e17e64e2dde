//! Quantities of resources: `100m`, `1.5Gi`, `12e6`.
//!
//! Exact decimal arithmetic with a 128-bit mantissa, which is enough for every realistic quantity.
//! Upstream supports any number of digits; this implementation rejects a number that does not fit.

mod parse;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::cmp::Ordering;
use std::fmt;
use std::ops::{Add, Sub};
use std::str::FromStr;

use crate::Error;

/// The format of a quantity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// `12e6`
    DecimalExponent,
    /// `12Mi`: 12 × 2²⁰
    BinarySi,
    /// `12M`: 12 × 10⁶
    DecimalSi,
}

/// A quantity. Equality and order compare the amounts, regardless of the format.
#[derive(Clone, Copy, Debug)]
pub struct Quantity {
    /// The amount is `mantissa × 10^exponent`. The mantissa is not a multiple of ten; the exponent
    /// of zero is zero.
    mantissa: i128,
    exponent: i32,
    format: Format,
}

/// The text to which upstream re-encodes a quantity: `1000m` becomes `1`, `0.5` becomes `500m`.
///
/// Upstream keeps some texts that are not quite canonical, such as `1.500`; so does this function.
pub fn canonical(text: &str) -> Result<Cow<'_, str>, Error> {
    let text = text.trim();
    let (quantity, is_canonical) = parse::parse(text)?;
    Ok(if is_canonical { text.into() } else { quantity.to_string().into() })
}

/// The end of the mantissas. Larger ones could not be added or be multiplied by a hundred, as the
/// canonical text needs, without an overflow.
const MANTISSA_END: i128 = 10_i128.pow(parse::DIGITS_MAX);

impl Quantity {
    /// Zero.
    pub const ZERO: Self = Self { mantissa: 0, exponent: 0, format: Format::DecimalSi };

    /// A whole number.
    pub fn from_int(amount: i64, format: Format) -> Self {
        Self::new(i128::from(amount), 0, format)
    }

    /// A number of thousandths.
    pub fn from_milli(amount: i64, format: Format) -> Self {
        Self::new(i128::from(amount), -3, format)
    }

    fn new(mut mantissa: i128, mut exponent: i32, format: Format) -> Self {
        if mantissa == 0 {
            return Self { mantissa, exponent: 0, format };
        }
        while exponent < i32::MAX {
            // A division of 64-bit numbers is many times as fast as one of 128-bit numbers.
            let tenth = match i64::try_from(mantissa) {
                Ok(mantissa) if mantissa % 10 == 0 => i128::from(mantissa / 10),
                Err(_) if mantissa % 10 == 0 => mantissa / 10,
                _ => break,
            };
            (mantissa, exponent) = (tenth, exponent + 1);
        }
        Self { mantissa, exponent, format }
    }

    /// The format.
    pub const fn format(&self) -> Format {
        self.format
    }

    /// The sign: -1, 0 or 1.
    pub const fn signum(&self) -> i32 {
        self.mantissa.signum() as i32
    }

    /// Whether the amount is zero.
    pub const fn is_zero(&self) -> bool {
        self.mantissa == 0
    }

    /// Whether the amount is a whole number once it is rounded up to thousandths, as upstream asks.
    pub fn is_whole(&self) -> bool {
        self.round_up(-3).exponent >= 0
    }

    /// The amount as an integer, if it is one that fits 64 bits.
    pub fn to_int(&self) -> Option<i64> {
        self.integer().and_then(|n| i64::try_from(n).ok())
    }

    /// The approximate amount, computed as upstream does.
    pub fn to_f64(&self) -> f64 {
        let power = format!("1e{}", self.exponent).parse::<f64>();
        self.mantissa as f64 * power.unwrap_or(f64::NAN) // one and an exponent always parse
    }

    /// The amount in whole units, rounded away from zero and saturated.
    pub fn value(&self) -> i64 {
        self.scaled(0)
    }

    /// The amount in thousandths, rounded away from zero and saturated.
    pub fn milli_value(&self) -> i64 {
        self.scaled(-3)
    }

    fn scaled(&self, exponent: i32) -> i64 {
        let saturated = if self.mantissa < 0 { i64::MIN } else { i64::MAX };
        let scaled = match self.exponent.checked_sub(exponent) {
            Some(up @ 0..) => pow10(up).and_then(|factor| self.mantissa.checked_mul(factor)),
            Some(down) => Some(divide_away(self.mantissa, down.unsigned_abs())),
            None => None,
        };
        scaled.and_then(|n| i64::try_from(n).ok()).unwrap_or(saturated)
    }

    /// The amount rounded to a multiple of `10^exponent`, away from zero (upstream: `RoundUp`).
    #[must_use]
    pub fn round_up(&self, exponent: i32) -> Self {
        match exponent.checked_sub(self.exponent) {
            Some(digits @ 1..) => {
                let mantissa = divide_away(self.mantissa, digits.unsigned_abs());
                Self::new(mantissa, exponent, self.format)
            }
            _ => *self,
        }
    }

    /// The amount as an integer, if it is one that fits.
    fn integer(&self) -> Option<i128> {
        let exponent = u32::try_from(self.exponent).ok()?;
        self.mantissa.checked_mul(10_i128.checked_pow(exponent)?)
    }
}

/// The sum. If `self` is zero, the sum has the format of `other`. A sum that has too many digits is
/// rounded away from zero: a sum of amounts is never below one of them, so limits hold for the
/// largest amounts, too.
impl Add for Quantity {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        if self.is_zero() || other.is_zero() {
            return if self.is_zero() { other } else { self };
        }
        let (low, high) =
            if self.exponent <= other.exponent { (self, other) } else { (other, self) };
        // The larger unit is divided as far as the number has room.
        let gap = high.exponent.abs_diff(low.exponent);
        let (mut large, mut divided) = (high.mantissa, 0);
        while divided < gap && large.abs() < MANTISSA_END / 10 {
            (large, divided) = (large * 10, divided + 1);
        }
        let small = divide_away(low.mantissa, gap - divided);
        let exponent = high.exponent.saturating_sub_unsigned(divided);
        let sum = large + small;
        if sum.abs() < MANTISSA_END {
            return Self::new(sum, exponent, self.format);
        }
        Self::new(divide_away(sum, 1), exponent.saturating_add(1), self.format)
    }
}

/// The difference, rounded as a sum is.
impl Sub for Quantity {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        self + Self { mantissa: -other.mantissa, ..other }
    }
}

fn pow10(exponent: i32) -> Option<i128> {
    10_i128.checked_pow(u32::try_from(exponent).ok()?)
}

/// `n / 10^digits`, rounded away from zero.
fn divide_away(n: i128, digits: u32) -> i128 {
    match 10_i128.checked_pow(digits) {
        None => n.signum(),
        Some(divisor) if n % divisor == 0 => n / divisor,
        Some(divisor) => n / divisor + n.signum(),
    }
}

impl PartialEq for Quantity {
    fn eq(&self, other: &Self) -> bool {
        (self.mantissa, self.exponent) == (other.mantissa, other.exponent)
    }
}

impl Eq for Quantity {}

impl PartialOrd for Quantity {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Quantity {
    fn cmp(&self, other: &Self) -> Ordering {
        let signs = self.mantissa.signum().cmp(&other.mantissa.signum());
        if signs != Ordering::Equal || self.is_zero() {
            return signs;
        }
        // Compares at the smaller exponent. An amount that overflows there has the larger
        // magnitude.
        let at = |q: &Self, exponent: i32| {
            q.mantissa.checked_mul(pow10(q.exponent.checked_sub(exponent)?)?)
        };
        let exponent = self.exponent.min(other.exponent);
        match (at(self, exponent), at(other, exponent)) {
            (Some(a), Some(b)) => a.cmp(&b),
            (None, _) => self.mantissa.cmp(&0),
            (_, None) => 0.cmp(&other.mantissa),
        }
    }
}

impl FromStr for Quantity {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        parse::parse(text.trim()).map(|(quantity, _)| quantity)
    }
}

/// Displays the canonical text: no fraction, and the largest suffix that allows this.
impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_zero() {
            return f.write_str("0");
        }
        // A binary suffix is used only where it is exact: small numbers and fractions are decimal.
        let binary = self.integer().filter(|n| self.format == Format::BinarySi && n.abs() >= 1024);
        if let Some(mut amount) = binary {
            let mut suffix = 0;
            while amount % 1024 == 0 && suffix + 1 < parse::BINARY.len() {
                amount /= 1024;
                suffix += 1;
            }
            return write!(f, "{amount}{}", parse::BINARY[suffix]);
        }
        // The exponent is rounded down to a multiple of three.
        let zeros = self.exponent.rem_euclid(3) as usize;
        write!(f, "{}{:0<zeros$}", self.mantissa, "")?;
        let exponent = self.exponent - zeros as i32;
        let suffix = parse::DECIMAL.iter().find(|(_, e)| *e == exponent);
        match suffix.filter(|_| self.format != Format::DecimalExponent) {
            Some((suffix, _)) => f.write_str(suffix),
            None if exponent == 0 => Ok(()),
            // Beyond the last suffix upstream drops the exponent and so changes the amount; this
            // implementation keeps it.
            None => write!(f, "e{exponent}"),
        }
    }
}
