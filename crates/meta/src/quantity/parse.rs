//! Parses quantities.

use super::{Format, Quantity, divide_away};
use crate::Error;

/// Binary suffixes by the exponent of 1024.
pub(super) const BINARY: [&str; 7] = ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];

/// Decimal suffixes and their exponents of ten.
pub(super) const DECIMAL: [(&str, i32); 10] = [
    ("n", -9),
    ("u", -6),
    ("m", -3),
    ("", 0),
    ("k", 3),
    ("M", 6),
    ("G", 9),
    ("T", 12),
    ("P", 15),
    ("E", 18),
];

/// A number with digits below 10⁻⁹ is rounded, away from zero.
const EXPONENT_MIN: i32 = -9;
/// Up to this number of digits upstream takes its fast path, which may keep the text.
const FAST_DIGITS_MAX: usize = 18;
/// The number of digits that surely fits 64 bits.
const LONG_DIGITS_MAX: usize = 18;
/// The most digits of a number, zeros around them not counted.
pub(super) const DIGITS_MAX: u32 = 36;
/// The most digits of a fraction that has a binary suffix: with a factor of 1024 they fit 128 bits.
const BINARY_FRACTION_MAX: usize = 35;

/// Returns the quantity, and whether upstream would write it as this text.
pub(super) fn parse(text: &str) -> Result<(Quantity, bool), Error> {
    if text.is_empty() {
        return Err(Error::QuantityFormat);
    }
    let parts = split(text)?;
    match suffix(parts.suffix) {
        Some(Suffix::Binary(power)) => binary(&parts, power),
        Some(Suffix::Decimal(exponent, format)) => decimal(&parts, exponent, format),
        None => Err(Error::QuantitySuffix),
    }
}

struct Parts<'a> {
    negative: bool,
    /// The digits before the point, without leading zeros; `0` if there are none.
    whole: &'a str,
    /// The digits after the point.
    fraction: &'a str,
    suffix: &'a str,
    /// Whether there is any digit. Upstream's fast path accepts none as zero.
    has_digits: bool,
}

impl Parts<'_> {
    fn signed(&self, magnitude: i128) -> i128 {
        if self.negative { -magnitude } else { magnitude }
    }
}

fn split(text: &str) -> Result<Parts<'_>, Error> {
    let digits = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    let (whole, rest) = unsigned.split_at(digits(unsigned));
    let (fraction, suffix) = match rest.strip_prefix('.') {
        Some(rest) => rest.split_at(digits(rest)),
        None => ("", rest),
    };
    let is_letter = |c: char| {
        matches!(c, 'e' | 'E' | 'i' | 'n' | 'u' | 'm' | 'k' | 'K' | 'M' | 'G' | 'T' | 'P')
    };
    let exponent = suffix.trim_start_matches(is_letter);
    let exponent = exponent.strip_prefix(['-', '+']).unwrap_or(exponent);
    if digits(exponent) != exponent.len() {
        return Err(Error::QuantityFormat);
    }
    let has_digits = whole.len() + fraction.len() > 0;
    let whole = match whole.trim_start_matches('0') {
        "" => "0",
        whole => whole,
    };
    Ok(Parts { negative: text.starts_with('-'), whole, fraction, suffix, has_digits })
}

enum Suffix {
    /// The exponent of 1024.
    Binary(u32),
    /// The exponent of ten.
    Decimal(i32, Format),
}

fn suffix(suffix: &str) -> Option<Suffix> {
    if let Some((_, exponent)) = DECIMAL.iter().find(|(text, _)| *text == suffix) {
        return Some(Suffix::Decimal(*exponent, Format::DecimalSi));
    }
    if let Some(power) = BINARY.iter().position(|text| *text == suffix) {
        return Some(Suffix::Binary(power as u32));
    }
    let exponent = suffix.strip_prefix(['e', 'E'])?.parse().ok()?;
    Some(Suffix::Decimal(exponent, Format::DecimalExponent))
}

fn decimal(parts: &Parts<'_>, exponent: i32, format: Format) -> Result<(Quantity, bool), Error> {
    let Parts { whole, fraction, .. } = *parts;
    let digits = whole.len() + fraction.len();
    let exponent = i64::from(exponent) - fraction.len() as i64;
    if digits <= FAST_DIGITS_MAX && exponent >= i64::from(EXPONENT_MIN) {
        let last = whole.bytes().chain(fraction.bytes()).rev().take(3);
        let ends_in_000 = last.filter(|digit| *digit == b'0').count() == 3;
        let is_canonical = exponent % 3 == 0 && !ends_in_000 && !whole.starts_with('0');
        let exponent = i32::try_from(exponent).map_err(|_| Error::QuantitySuffix)?;
        let quantity = Quantity::new(parts.signed(number(whole, fraction)?), exponent, format);
        return Ok((quantity, is_canonical));
    }
    if !parts.has_digits {
        return Err(Error::QuantityNumber);
    }
    // Trailing zeros are not significant.
    let fraction = fraction.trim_end_matches('0');
    let whole = if fraction.is_empty() { whole.trim_end_matches('0') } else { whole };
    let exponent = exponent + (digits - whole.len() - fraction.len()) as i64;
    let mantissa = number(whole, fraction)?;
    let lost = i64::from(EXPONENT_MIN) - exponent;
    let (mantissa, exponent) = match u32::try_from(lost) {
        Ok(lost) => (divide_away(mantissa, lost), EXPONENT_MIN),
        Err(_) => (mantissa, i32::try_from(exponent).map_err(|_| Error::QuantitySuffix)?),
    };
    Ok((Quantity::new(parts.signed(mantissa), exponent, format), false))
}

fn binary(parts: &Parts<'_>, power: u32) -> Result<(Quantity, bool), Error> {
    // Upstream's estimate of whether the product fits its fast path.
    let digits = parts.whole.len() + (power * 3) as usize + 1;
    let fast = parts.fraction.is_empty() && digits <= 15;
    if !fast && !parts.has_digits {
        return Err(Error::QuantityNumber);
    }

    let fraction = parts.fraction.trim_end_matches('0');
    // `whole + part / one` is the amount without its suffix.
    if fraction.len() > BINARY_FRACTION_MAX {
        return Err(Error::QuantityNumber);
    }
    let one = 10_i128.pow(fraction.len() as u32);
    let whole = number(parts.whole, "")?;
    let mut part = number("", fraction)?;
    let mut amount = whole;
    for _ in 0..power {
        amount = amount.saturating_mul(1024);
        if part != 0 {
            part *= 1024;
            amount = amount.saturating_add(part / one);
            part %= one;
        }
    }
    let nanos = match fraction.len().checked_sub(9) {
        _ if part == 0 => 0,
        Some(lost) => divide_away(part, lost as u32),
        None => part * 10_i128.pow(9 - fraction.len() as u32),
    };
    let quantity = if amount >= i128::from(i64::MAX) {
        Quantity::new(parts.signed(i128::from(i64::MAX)), 0, Format::BinarySi)
    } else {
        let format = if amount == 0 && nanos > 0 { Format::DecimalSi } else { Format::BinarySi };
        match nanos {
            0 => Quantity::new(parts.signed(amount), 0, format),
            _ => Quantity::new(parts.signed(amount * 1_000_000_000 + nanos), EXPONENT_MIN, format),
        }
    };
    Ok((quantity, fast && whole & 7 != 0))
}

/// Parses the digits as one number.
fn number(whole: &str, fraction: &str) -> Result<i128, Error> {
    let (whole, fraction) = match whole {
        "" | "0" => ("", fraction.trim_start_matches('0')),
        _ => (whole, fraction),
    };
    if whole.len() + fraction.len() > DIGITS_MAX as usize {
        return Err(Error::QuantityNumber);
    }
    let digits = || whole.bytes().chain(fraction.bytes()).map(|digit| digit - b'0');
    // Most numbers fit 64 bits, and are several times as fast to compute there.
    Ok(match whole.len() + fraction.len() {
        ..=LONG_DIGITS_MAX => digits().fold(0, |n, digit| n * 10 + i64::from(digit)).into(),
        _ => digits().fold(0, |n, digit| n * 10 + i128::from(digit)),
    })
}
