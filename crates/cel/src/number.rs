//! Numbers: comparison across types, and Go's format.

use std::cmp::Ordering;

/// Compares an integer and a floating-point number; `None` for NaN.
pub(crate) fn compare(a: i128, b: f64) -> Option<Ordering> {
    // As upstream does, the integer is converted to a float, although large integers lose digits.
    (a as f64).partial_cmp(&b)
}

/// Truncates a floating-point number to an integer, if it fits.
pub(crate) fn to_int(n: f64) -> Option<i64> {
    // Go compares strictly: the limits themselves are excluded, as they may result from rounding.
    let ok = n > -9_223_372_036_854_775_808.0 && n < 9_223_372_036_854_775_807.0;
    ok.then_some(n as i64)
}

/// Truncates a floating-point number to an unsigned integer, if it fits.
pub(crate) fn to_uint(n: f64) -> Option<u64> {
    let ok = (0.0..18_446_744_073_709_551_615.0).contains(&n);
    ok.then_some(n as u64)
}

/// Formats a number with the fewest digits that round-trip, as Go's `%g` and `%v`.
pub(crate) fn shortest(n: f64) -> String {
    if n.is_nan() {
        return "NaN".to_owned();
    }
    if n.is_infinite() {
        return if n > 0.0 { "+Inf" } else { "-Inf" }.to_owned();
    }
    let scientific = format!("{n:e}");
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if (-4..6).contains(&exponent) {
        return format!("{n}");
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{digits}e{sign}{:02}", exponent.abs())
}

/// Formats a number with the fewest digits that round-trip, without an exponent.
pub(crate) fn plain(n: f64) -> String {
    if n.is_finite() { format!("{n}") } else { shortest(n) }
}

/// Parses a number as Go's `strconv.ParseFloat`.
pub(crate) fn parse(text: &str) -> Option<f64> {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let lower = unsigned.to_ascii_lowercase();
    if matches!(lower.as_str(), "inf" | "infinity" | "nan") {
        if lower == "nan" && unsigned.len() != text.len() {
            return None;
        }
        return text.parse().ok();
    }
    if let Some(hex) = lower.strip_prefix("0x") {
        let magnitude = parse_hex(hex)?;
        return Some(if text.starts_with('-') { -magnitude } else { magnitude });
    }
    let text = &remove_digit_separators(text)?;
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    // Other characters are refused: Rust's parser also accepts words, which were handled above.
    let plain = unsigned.bytes().all(|b| b.is_ascii_digit() || b".eE+-".contains(&b));
    let number: f64 = text.parse().ok().filter(|_| plain)?;
    number.is_finite().then_some(number)
}

/// Removes underscores between digits.
fn remove_digit_separators(text: &str) -> Option<String> {
    let bytes = text.as_bytes();
    let is_digit =
        |at: Option<usize>| at.and_then(|at| bytes.get(at)).is_some_and(u8::is_ascii_digit);
    let mut underscores = text.match_indices('_').map(|(at, _)| at);
    let ok = underscores.all(|at| is_digit(at.checked_sub(1)) && is_digit(Some(at + 1)));
    ok.then(|| text.replace('_', ""))
}

/// Parses `1.8p3`: hexadecimal digits times a power of two, which is mandatory.
fn parse_hex(text: &str) -> Option<f64> {
    let (digits, exponent) = text.split_once('p')?;
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let digits = format!("{whole}{fraction}");
    let mantissa = u64::from_str_radix(&digits, 16).ok().filter(|_| digits.len() <= 13)?;
    let exponent: i32 = exponent.parse().ok()?;
    let exponent = exponent.checked_sub(i32::try_from(fraction.len()).ok()? * 4)?;
    let number = mantissa as f64 * 2.0_f64.powi(exponent);
    number.is_finite().then_some(number)
}
