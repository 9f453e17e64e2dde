//! Parses times as Go's `time.Parse` does with upstream's two layouts.

use super::{SECOND, days_from_civil, days_in_month};
use crate::quote::quote_ascii as quote;

/// The layout's fraction of the second.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Fraction {
    /// `time.RFC3339`: any digits, or none.
    Optional,
    /// `metav1.RFC3339Micro`: six digits.
    Micros,
}

impl Fraction {
    const fn layout(self) -> &'static str {
        match self {
            Self::Optional => "2006-01-02T15:04:05Z07:00",
            Self::Micros => "2006-01-02T15:04:05.000000Z07:00",
        }
    }
}

/// Why an element of the layout did not match.
enum Mismatch {
    /// The text does not begin with the element.
    Text,
    /// The element's number is out of range.
    Range(&'static str),
}

pub(super) fn parse(text: &str, fraction: Fraction) -> Result<i64, String> {
    let mut parser = Parser { rest: text };
    let mut failed = "";
    let result = parser.instant(fraction, &mut failed);
    let range = |what: &str| format!("parsing time {}: {what} out of range", quote(text));
    match result {
        Ok(_) if !parser.rest.is_empty() => {
            let (text, rest) = (quote(text), quote(parser.rest));
            Err(format!("parsing time {text}: extra text: {rest}"))
        }
        Ok(Ok(micros)) => Ok(micros),
        Ok(Err(what)) | Err(Mismatch::Range(what)) => Err(range(what)),
        Err(Mismatch::Text) => {
            let (text, layout) = (quote(text), quote(fraction.layout()));
            let (rest, element) = (quote(parser.rest), quote(failed));
            Err(format!("parsing time {text} as {layout}: cannot parse {rest} as {element}"))
        }
    }
}

struct Parser<'a> {
    rest: &'a str,
}

impl Parser<'_> {
    /// Parses the instant. The inner error names the part of the date that is out of range.
    /// `element` is set to the current element of the layout.
    fn instant(
        &mut self,
        fraction: Fraction,
        element: &mut &'static str,
    ) -> Result<Result<i64, &'static str>, Mismatch> {
        let mut at = |name| *element = name;
        at("2006");
        let year = self.digits(4, 4)?;
        at("-");
        self.literal(b'-')?;
        at("01");
        let month = self.ranged(2, 2, 1..=12, "month")?;
        at("-");
        self.literal(b'-')?;
        at("02");
        let day = self.digits(2, 2)?;
        at("T");
        self.literal(b'T')?;
        at("15");
        let hour = self.ranged(1, 2, 0..=23, "hour")?;
        at(":");
        self.literal(b':')?;
        at("04");
        let minute = self.ranged(2, 2, 0..=59, "minute")?;
        at(":");
        self.literal(b':')?;
        at("05");
        let second = self.ranged(2, 2, 0..=59, "second")?;
        let micros = match fraction {
            Fraction::Optional => self.optional_fraction(),
            Fraction::Micros => {
                at(".000000");
                self.six_digits()?
            }
        };
        at("Z07:00");
        let offset = self.offset()?;

        // Go checks for trailing text and validates the day last, in this order.
        if !self.rest.is_empty() {
            return Ok(Ok(0));
        }
        if !(1..=days_in_month(year, month)).contains(&day) {
            return Ok(Err("day"));
        }
        let days = days_from_civil(year, month, day);
        let seconds = ((days * 24 + hour) * 60 + minute) * 60 + second - offset;
        Ok(Ok(seconds * SECOND + micros))
    }

    fn literal(&mut self, byte: u8) -> Result<(), Mismatch> {
        if self.rest.as_bytes().first() != Some(&byte) {
            return Err(Mismatch::Text);
        }
        self.rest = &self.rest[1..];
        Ok(())
    }

    /// Parses a number of `min` to `max` digits.
    fn digits(&mut self, min: usize, max: usize) -> Result<i64, Mismatch> {
        let count = self.rest.bytes().take(max).take_while(u8::is_ascii_digit).count();
        if count < min {
            return Err(Mismatch::Text);
        }
        let (number, rest) = self.rest.split_at(count);
        self.rest = rest;
        Ok(number.bytes().fold(0, |n, digit| n * 10 + i64::from(digit - b'0')))
    }

    fn ranged(
        &mut self,
        min: usize,
        max: usize,
        range: std::ops::RangeInclusive<i64>,
        what: &'static str,
    ) -> Result<i64, Mismatch> {
        let number = self.digits(min, max)?;
        if range.contains(&number) { Ok(number) } else { Err(Mismatch::Range(what)) }
    }

    /// Go accepts a fraction after the seconds even where the layout has none.
    fn optional_fraction(&mut self) -> i64 {
        let digits = match self.rest.as_bytes() {
            [b'.' | b',', digits @ ..] => digits.iter().take_while(|b| b.is_ascii_digit()).count(),
            _ => 0,
        };
        if digits == 0 {
            return 0;
        }
        let (fraction, rest) = self.rest.split_at(1 + digits);
        self.rest = rest;
        micros(&fraction[1..])
    }

    fn six_digits(&mut self) -> Result<i64, Mismatch> {
        let bytes = self.rest.as_bytes();
        let fits = matches!(bytes, [b'.' | b',', ..])
            && bytes.len() >= 7
            && bytes[1..7].iter().all(u8::is_ascii_digit);
        if !fits {
            return Err(Mismatch::Text);
        }
        let (fraction, rest) = self.rest.split_at(7);
        self.rest = rest;
        Ok(micros(&fraction[1..]))
    }

    /// Parses `Z` or an offset such as `+02:00` to seconds east of UTC.
    fn offset(&mut self) -> Result<i64, Mismatch> {
        let bytes = self.rest.as_bytes();
        if bytes.first() == Some(&b'Z') {
            self.rest = &self.rest[1..];
            return Ok(0);
        }
        let &[sign @ (b'+' | b'-'), h1, h2, b':', m1, m2, ..] = bytes else {
            return Err(Mismatch::Text);
        };
        let number = |tens: u8, ones: u8| {
            let digits = tens.is_ascii_digit() && ones.is_ascii_digit();
            digits.then(|| i64::from(tens - b'0') * 10 + i64::from(ones - b'0'))
        };
        let (hours, minutes) = (number(h1, h2), number(m1, m2));
        let (Some(hours), Some(minutes)) = (hours, minutes) else { return Err(Mismatch::Text) };
        if hours > 24 {
            return Err(Mismatch::Range("time zone offset hour"));
        }
        if minutes > 60 {
            return Err(Mismatch::Range("time zone offset minute"));
        }
        self.rest = &self.rest[6..];
        let seconds = (hours * 60 + minutes) * 60;
        Ok(if sign == b'-' { -seconds } else { seconds })
    }
}

/// Converts digits after the decimal point to microseconds, truncating.
fn micros(digits: &str) -> i64 {
    let digits = digits.bytes().map(|b| i64::from(b - b'0')).chain(std::iter::repeat(0));
    digits.take(6).fold(0, |n, digit| n * 10 + digit)
}
