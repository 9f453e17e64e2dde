//! Resolves scalars by the rules of YAML 1.1, as go-yaml v2 implements them.

use std::borrow::Cow;

use super::scalar::is_base60;
use crate::number;

/// A resolved scalar.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Scalar {
    Null,
    Bool(bool),
    /// An integer that fits 64 bits, signed or unsigned.
    Int(i128),
    /// Any other number, infinities and NaN included.
    Float(f64),
    /// `<<`
    Merge,
    /// Text that looks like a timestamp. It stays text, but must be quoted in output.
    Timestamp,
    String,
}

impl Scalar {
    /// The scalar's tag.
    pub(super) const fn tag(self) -> &'static str {
        match self {
            Self::Null => "!!null",
            Self::Bool(_) => "!!bool",
            Self::Int(_) => "!!int",
            Self::Float(_) => "!!float",
            Self::Merge => "!!merge",
            Self::Timestamp => "!!timestamp",
            Self::String => "!!str",
        }
    }
}

/// Whether every YAML 1.1 reader takes the plain text for a string.
pub(super) fn is_unambiguous_text(text: &str) -> bool {
    matches!(resolve(text), Scalar::String) && !is_base60(text)
}

/// Resolves a plain scalar without a tag.
pub(super) fn resolve(text: &str) -> Scalar {
    match text.as_bytes().first() {
        None => Scalar::Null,
        Some(b'+' | b'-' | b'0'..=b'9') => signed_or_digit(text),
        Some(b'.') => word(text).unwrap_or_else(|| float(text).unwrap_or(Scalar::String)),
        Some(_) => word(text).unwrap_or(Scalar::String),
    }
}

/// Resolves words with a special meaning.
fn word(text: &str) -> Option<Scalar> {
    Some(match text {
        "y" | "Y" | "yes" | "Yes" | "YES" | "true" | "True" | "TRUE" | "on" | "On" | "ON" => {
            Scalar::Bool(true)
        }
        "n" | "N" | "no" | "No" | "NO" | "false" | "False" | "FALSE" | "off" | "Off" | "OFF" => {
            Scalar::Bool(false)
        }
        "~" | "null" | "Null" | "NULL" => Scalar::Null,
        ".nan" | ".NaN" | ".NAN" => Scalar::Float(f64::NAN),
        ".inf" | ".Inf" | ".INF" | "+.inf" | "+.Inf" | "+.INF" => Scalar::Float(f64::INFINITY),
        "-.inf" | "-.Inf" | "-.INF" => Scalar::Float(f64::NEG_INFINITY),
        "<<" => Scalar::Merge,
        _ => return None,
    })
}

/// Resolves a scalar that begins with a sign or a digit.
fn signed_or_digit(text: &str) -> Scalar {
    if let Some(word) = word(text) {
        return word;
    }
    if is_timestamp(text) {
        return Scalar::Timestamp;
    }
    let digits = match text.contains('_') {
        true => Cow::Owned(text.replace('_', "")),
        false => Cow::Borrowed(text),
    };
    integer(&digits).or_else(|| float(&digits)).unwrap_or(Scalar::String)
}

/// Parses an integer: decimal, `0x`, `0b`, `0o`, or octal with a leading `0`.
fn integer(text: &str) -> Option<Scalar> {
    let (negative, rest) = match text.as_bytes()[..] {
        [b'-', ..] => (true, &text[1..]),
        [b'+', ..] => (false, &text[1..]),
        _ => (false, text),
    };
    let (radix, digits) = match rest.as_bytes() {
        [b'0', b'x' | b'X', ..] => (16, &rest[2..]),
        [b'0', b'b' | b'B', ..] => (2, &rest[2..]),
        [b'0', b'o' | b'O', ..] => (8, &rest[2..]),
        [b'0', _, ..] => (8, &rest[1..]),
        _ => (10, rest),
    };
    if !digits.starts_with(|c: char| c.is_ascii_alphanumeric()) {
        return None; // a second sign
    }
    let size = i128::from(u64::from_str_radix(digits, radix).ok()?);
    let value = if negative { -size } else { size };
    (value >= i128::from(i64::MIN)).then_some(Scalar::Int(value))
}

/// Parses a number with a fraction, an exponent or too many digits for an integer:
/// `[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?`.
fn float(text: &str) -> Option<Scalar> {
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => {
            (mantissa, Some(exponent.strip_prefix(['-', '+']).unwrap_or(exponent)))
        }
        None => (unsigned, None),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let all_digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    let has_digits = if whole.is_empty() { !fraction.is_empty() } else { true };
    let exponent_fits = exponent.is_none_or(|digits| !digits.is_empty() && all_digits(digits));
    if !(has_digits && all_digits(whole) && all_digits(fraction) && exponent_fits) {
        return None;
    }
    text.parse().ok().filter(|x: &f64| x.is_finite()).map(Scalar::Float)
}

/// Whether the text is one of go-yaml's four timestamp formats: a date, or a date and a time with a
/// zone after `T`, or without one after a space.
fn is_timestamp(text: &str) -> bool {
    let mut rest = text;
    let Some(year) = digits(&mut rest, 4, 4) else { return false };
    let date = |rest: &mut &str| {
        eat(rest, "-")?;
        let month = digits(rest, 1, 2).filter(|month| (1..=12).contains(month))?;
        eat(rest, "-")?;
        digits(rest, 1, 2).filter(|day| (1..=days_in_month(year, month)).contains(day))
    };
    if date(&mut rest).is_none() {
        return false;
    }
    if rest.is_empty() {
        return true;
    }
    let zoned = rest.starts_with(['T', 't']);
    if !zoned && !rest.starts_with(' ') {
        return false;
    }
    rest = &rest[1..];
    time(&mut rest).is_some() && (!zoned || zone(&mut rest).is_some()) && rest.is_empty()
}

/// Consumes a time such as `15:4:5.999999999`.
fn time(rest: &mut &str) -> Option<()> {
    digits(rest, 1, 2).filter(|hour| *hour < 24)?;
    eat(rest, ":")?;
    digits(rest, 1, 2).filter(|minute| *minute < 60)?;
    eat(rest, ":")?;
    digits(rest, 1, 2).filter(|second| *second < 60)?;
    let fraction = rest.strip_prefix(['.', ',']).unwrap_or("");
    if fraction.starts_with(|c: char| c.is_ascii_digit()) {
        *rest = fraction.trim_start_matches(|c: char| c.is_ascii_digit());
    }
    Some(())
}

/// Consumes `Z` or an offset such as `+07:00`.
fn zone(rest: &mut &str) -> Option<()> {
    if eat(rest, "Z").is_some() {
        return Some(());
    }
    *rest = rest.strip_prefix(['+', '-'])?;
    digits(rest, 2, 2).filter(|hour| *hour <= 24)?;
    eat(rest, ":")?;
    digits(rest, 2, 2).filter(|minute| *minute <= 60).map(|_| ())
}

fn eat(rest: &mut &str, token: &str) -> Option<()> {
    *rest = rest.strip_prefix(token)?;
    Some(())
}

/// Consumes a number of `least` to `most` digits.
fn digits(rest: &mut &str, least: usize, most: usize) -> Option<u32> {
    let len = rest.bytes().take(most).take_while(u8::is_ascii_digit).count();
    let (number, after) = rest.split_at(len);
    *rest = after;
    if len < least { None } else { number.parse().ok() }
}

const fn days_in_month(year: u32, month: u32) -> u32 {
    match month {
        2 if year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400)) => {
            29
        }
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Writes a number in JSON's syntax to `out`. Returns Go's name of a number that JSON lacks.
pub(super) fn json_number(x: f64, out: &mut String) -> Result<(), &'static str> {
    if x.is_nan() {
        return Err("NaN");
    }
    if x.is_infinite() {
        return Err(if x > 0.0 { "+Inf" } else { "-Inf" });
    }
    let mut text = Vec::new();
    number::write(x, &mut text);
    out.push_str(std::str::from_utf8(&text).expect("numbers are ASCII"));
    Ok(())
}

/// Formats a number as Go's `strconv.FormatFloat(x, 'g', -1, …)`, given the shortest digits in
/// Rust's `{:e}` format.
pub(super) fn general(scientific: &str) -> String {
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let (sign, mantissa) = match mantissa.strip_prefix('-') {
        Some(unsigned) => ("-", unsigned),
        None => ("", mantissa),
    };
    // Go's shortest format uses exponents below 1e-4 and from 1e+06 on.
    if !(-4..6).contains(&exponent) {
        let direction = if exponent < 0 { '-' } else { '+' };
        return format!("{sign}{mantissa}e{direction}{:02}", exponent.abs());
    }
    let digits = mantissa.replace('.', "");
    let point = usize::try_from(exponent + 1).unwrap_or(0);
    if exponent < 0 {
        let zeros = "0".repeat(exponent.unsigned_abs() as usize - 1);
        format!("{sign}0.{zeros}{digits}")
    } else if digits.len() > point {
        format!("{sign}{}.{}", &digits[..point], &digits[point..])
    } else {
        format!("{sign}{digits}{}", "0".repeat(point - digits.len()))
    }
}
