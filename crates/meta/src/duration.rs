//! Durations in Go's format (`1h30m0s`), and ages in the format of tables (`3d4h`).

use crate::{Error, quote::quote_ascii as quote};

#[cfg(test)]
mod tests;

/// Nanoseconds of each unit that [`parse`] accepts.
const UNITS: [(&str, u64); 8] = [
    ("ns", 1),
    ("us", 1_000),
    ("µs", 1_000), // U+00B5, micro sign
    ("μs", 1_000), // U+03BC, Greek letter mu
    ("ms", 1_000_000),
    ("s", SECOND),
    ("m", 60 * SECOND),
    ("h", 3600 * SECOND),
];
const SECOND: u64 = 1_000_000_000;

/// Parses a `metav1.Duration` to nanoseconds, as Go's `time.ParseDuration` does.
pub fn parse(text: &str) -> Result<i64, Error> {
    let invalid = || Error::Duration(format!("time: invalid duration {}", quote(text)));
    let (negative, digits) = match text.as_bytes().first() {
        Some(b'-') => (true, &text[1..]),
        Some(b'+') => (false, &text[1..]),
        _ => (false, text),
    };
    if digits == "0" {
        return Ok(0);
    }
    if digits.is_empty() {
        return Err(invalid());
    }
    let mut rest = digits;
    let mut total: u64 = 0;
    while !rest.is_empty() {
        let (number, after) = number(rest).ok_or_else(invalid)?;
        let length = after.find(|c: char| c == '.' || c.is_ascii_digit()).unwrap_or(after.len());
        let (unit, after) = after.split_at(length);
        if unit.is_empty() {
            let text = quote(text);
            return Err(Error::Duration(format!("time: missing unit in duration {text}")));
        }
        let Some(&(_, nanos)) = UNITS.iter().find(|(name, _)| *name == unit) else {
            let (text, unit) = (quote(text), quote(unit));
            return Err(Error::Duration(format!("time: unknown unit {unit} in duration {text}")));
        };
        total = number.times(nanos).and_then(|n| total.checked_add(n)).ok_or_else(invalid)?;
        if total > SIGN {
            return Err(invalid());
        }
        rest = after;
    }
    match (negative, total) {
        (true, SIGN) => Ok(i64::MIN),
        (true, _) => Ok(-(total as i64)),
        (false, _) => i64::try_from(total).map_err(|_| invalid()),
    }
}

/// The magnitude of the most negative duration.
const SIGN: u64 = 1 << 63;

/// A decimal number: the part before the point, and the digits after it.
struct Number<'a> {
    whole: u64,
    fraction: &'a str,
}

/// Parses the number at the beginning of `text`, and returns the rest.
fn number(text: &str) -> Option<(Number<'_>, &str)> {
    let digits = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
    let (whole, rest) = text.split_at(digits(text));
    let (fraction, rest) = match rest.strip_prefix('.') {
        Some(rest) => rest.split_at(digits(rest)),
        None => ("", rest),
    };
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    let whole = whole.bytes().try_fold(0_u64, |n, digit| {
        n.checked_mul(10)?.checked_add(u64::from(digit - b'0')).filter(|&n| n <= SIGN)
    })?;
    Some((Number { whole, fraction }, rest))
}

impl Number<'_> {
    /// The number times `unit`, truncated to whole nanoseconds; `None` if it is too large.
    fn times(&self, unit: u64) -> Option<u64> {
        let whole = self.whole.checked_mul(unit).filter(|&n| n <= SIGN)?;
        // Go multiplies the fraction as a float; this code does the same to get the same
        // nanosecond.
        let (mut fraction, mut scale) = (0_u64, 1.0_f64);
        for digit in self.fraction.bytes() {
            let next = fraction.checked_mul(10).filter(|_| fraction <= (SIGN - 1) / 10);
            let next = next.and_then(|n| n.checked_add(u64::from(digit - b'0')));
            let Some(next) = next.filter(|&n| n <= SIGN) else { break };
            fraction = next;
            scale *= 10.0;
        }
        let fraction = (fraction as f64 * (unit as f64 / scale)) as u64;
        whole.checked_add(fraction)
    }
}

/// Formats a `metav1.Duration` as Go's `Duration.String` does.
pub fn format(nanos: i64) -> String {
    let sign = if nanos < 0 { "-" } else { "" };
    let magnitude = nanos.unsigned_abs();
    match magnitude {
        0 => "0s".to_owned(),
        1..1_000 => format!("{sign}{magnitude}ns"),
        1_000..1_000_000 => format!("{sign}{}µs", decimal(magnitude, 1_000)),
        1_000_000..SECOND => format!("{sign}{}ms", decimal(magnitude, 1_000_000)),
        _ => {
            let minutes = magnitude / (60 * SECOND);
            let seconds = decimal(magnitude % (60 * SECOND), SECOND);
            match (minutes / 60, minutes % 60) {
                (0, 0) => format!("{sign}{seconds}s"),
                (0, minutes) => format!("{sign}{minutes}m{seconds}s"),
                (hours, minutes) => format!("{sign}{hours}h{minutes}m{seconds}s"),
            }
        }
    }
}

/// `nanos / unit` with as many digits after the point as needed; `unit` is a power of ten.
fn decimal(nanos: u64, unit: u64) -> String {
    let digits = unit.ilog10() as usize;
    let text = format!("{}.{:0digits$}", nanos / unit, nanos % unit);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// Formats an age or a length of time in at most two units (upstream's `HumanDuration`).
pub fn human(seconds: i64) -> String {
    const YEAR: i64 = 365;
    if seconds < -1 {
        return "<invalid>".to_owned(); // a clock skew of one second is tolerated
    }
    let (minutes, hours) = (seconds / 60, seconds / 3600);
    let days = hours / 24;
    if seconds < 2 * 60 {
        format!("{}s", seconds.max(0))
    } else if minutes < 10 {
        two(minutes, "m", seconds % 60, "s")
    } else if minutes < 3 * 60 {
        format!("{minutes}m")
    } else if hours < 8 {
        two(hours, "h", minutes % 60, "m")
    } else if hours < 48 {
        format!("{hours}h")
    } else if days < 8 {
        two(days, "d", hours % 24, "h")
    } else if days < 2 * YEAR {
        format!("{days}d")
    } else if days < 8 * YEAR {
        two(days / YEAR, "y", days % YEAR, "d")
    } else {
        format!("{}y", days / YEAR)
    }
}

/// Formats two units, the smaller one only if it is not zero.
fn two(large: i64, large_unit: &str, small: i64, small_unit: &str) -> String {
    match small {
        0 => format!("{large}{large_unit}"),
        _ => format!("{large}{large_unit}{small}{small_unit}"),
    }
}
