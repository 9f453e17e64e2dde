//! Go's `time.Parse`, for the two layouts that upstream uses.

use super::{SECOND, days_from_civil, days_in_month};
use crate::quote::quote_ascii as quote;

/// What a layout says about the fraction of the second.
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

/// Why an element of the layout did not fit.
enum Wrong {
    /// The rest of the text is not the element.
    NotThis,
    /// It is, and out of its range.
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
        Ok(Err(what)) | Err(Wrong::Range(what)) => Err(range(what)),
        Err(Wrong::NotThis) => {
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
    /// The instant, or what about the date as a whole is out of range; `element` is set to the
    /// element of the layout that is being read.
    fn instant(
        &mut self,
        fraction: Fraction,
        element: &mut &'static str,
    ) -> Result<Result<i64, &'static str>, Wrong> {
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

        // Go looks at the day and at what follows the time last, in this order.
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

    fn literal(&mut self, byte: u8) -> Result<(), Wrong> {
        if self.rest.as_bytes().first() != Some(&byte) {
            return Err(Wrong::NotThis);
        }
        self.rest = &self.rest[1..];
        Ok(())
    }

    /// A number of at least `min` and at most `max` digits.
    fn digits(&mut self, min: usize, max: usize) -> Result<i64, Wrong> {
        let count = self.rest.bytes().take(max).take_while(u8::is_ascii_digit).count();
        if count < min {
            return Err(Wrong::NotThis);
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
    ) -> Result<i64, Wrong> {
        let number = self.digits(min, max)?;
        if range.contains(&number) { Ok(number) } else { Err(Wrong::Range(what)) }
    }

    /// Go reads a fraction after the seconds even where the layout has none.
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

    fn six_digits(&mut self) -> Result<i64, Wrong> {
        let bytes = self.rest.as_bytes();
        let fits = matches!(bytes, [b'.' | b',', ..])
            && bytes.len() >= 7
            && bytes[1..7].iter().all(u8::is_ascii_digit);
        if !fits {
            return Err(Wrong::NotThis);
        }
        let (fraction, rest) = self.rest.split_at(7);
        self.rest = rest;
        Ok(micros(&fraction[1..]))
    }

    /// `Z`, `+02:00`: seconds to the east of Greenwich.
    fn offset(&mut self) -> Result<i64, Wrong> {
        let bytes = self.rest.as_bytes();
        if bytes.first() == Some(&b'Z') {
            self.rest = &self.rest[1..];
            return Ok(0);
        }
        let &[sign @ (b'+' | b'-'), h1, h2, b':', m1, m2, ..] = bytes else {
            return Err(Wrong::NotThis);
        };
        let number = |tens: u8, ones: u8| {
            let digits = tens.is_ascii_digit() && ones.is_ascii_digit();
            digits.then(|| i64::from(tens - b'0') * 10 + i64::from(ones - b'0'))
        };
        let (hours, minutes) = (number(h1, h2), number(m1, m2));
        let (Some(hours), Some(minutes)) = (hours, minutes) else { return Err(Wrong::NotThis) };
        if hours > 24 {
            return Err(Wrong::Range("time zone offset hour"));
        }
        if minutes > 60 {
            return Err(Wrong::Range("time zone offset minute"));
        }
        self.rest = &self.rest[6..];
        let seconds = (hours * 60 + minutes) * 60;
        Ok(if sign == b'-' { -seconds } else { seconds })
    }
}

/// Digits after the decimal point as microseconds; what is smaller is cut off.
fn micros(digits: &str) -> i64 {
    let digits = digits.bytes().map(|b| i64::from(b - b'0')).chain(std::iter::repeat(0));
    digits.take(6).fold(0, |n, digit| n * 10 + digit)
}
