//! Timestamps and durations: parsing, formatting, arithmetic.

use std::cmp::Ordering;
use std::fmt;

use pintle_meta::{duration, time};

const NANOS: i64 = 1_000_000_000;

/// The range of a timestamp in seconds: the years 1 to 9999.
const SECONDS_MIN: i64 = -62_135_596_800;
const SECONDS_MAX: i64 = 253_402_300_799;

/// A timestamp. Its offset only matters when it is formatted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Timestamp {
    /// Seconds since 1970.
    pub(crate) seconds: i64,
    pub(crate) nanos: u32,
    /// Seconds east of UTC.
    offset: i32,
}

impl PartialEq for Timestamp {
    fn eq(&self, other: &Self) -> bool {
        self.total() == other.total()
    }
}

impl Eq for Timestamp {}

impl PartialOrd for Timestamp {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Timestamp {
    fn cmp(&self, other: &Self) -> Ordering {
        self.total().cmp(&other.total())
    }
}

impl Timestamp {
    /// Go's zero time.
    pub(crate) const YEAR_ONE: Self = Self { seconds: SECONDS_MIN, nanos: 0, offset: 0 };

    /// Adds nanoseconds; `None` if the result is outside of the years 1 to 9999.
    pub(crate) fn plus(self, nanos: i128) -> Option<Self> {
        let total = self.total() + nanos;
        let seconds = i64::try_from(total.div_euclid(i128::from(NANOS))).ok()?;
        let nanos = total.rem_euclid(i128::from(NANOS)) as u32;
        let ok = (SECONDS_MIN..=SECONDS_MAX).contains(&seconds);
        ok.then_some(Self { seconds, nanos, ..self })
    }

    /// The nanoseconds since `earlier`; `None` on overflow.
    pub(crate) fn since(self, earlier: Self) -> Option<i64> {
        i64::try_from(self.total() - earlier.total()).ok()
    }

    fn total(self) -> i128 {
        i128::from(self.seconds) * i128::from(NANOS) + i128::from(self.nanos)
    }

    /// The calendar and clock fields at an offset in seconds east of UTC.
    pub(crate) fn calendar(self, offset: i64) -> CalendarFields {
        let seconds = self.seconds + offset;
        let (days, second) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
        let (year, month, day) = time::civil_from_days(days);
        CalendarFields {
            year,
            month,
            day,
            day_of_year: days - time::days_from_civil(year, 1, 1),
            // 1970 began on a Thursday.
            day_of_week: (days + 4).rem_euclid(7),
            hour: second / 3600,
            minute: second / 60 % 60,
            second: second % 60,
            millisecond: i64::from(self.nanos / 1_000_000),
        }
    }
}

/// Calendar and clock fields. Months and days count from 1, days of the year and week from 0.
pub(crate) struct CalendarFields {
    pub(crate) year: i64,
    pub(crate) month: i64,
    pub(crate) day: i64,
    pub(crate) day_of_year: i64,
    pub(crate) day_of_week: i64,
    pub(crate) hour: i64,
    pub(crate) minute: i64,
    pub(crate) second: i64,
    pub(crate) millisecond: i64,
}

/// Displays RFC 3339 with as many fractional digits as needed.
impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let calendar = self.calendar(i64::from(self.offset));
        let CalendarFields { year, month, day, hour, minute, second, .. } = calendar;
        write!(f, "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}")?;
        if self.nanos > 0 {
            let fraction = format!("{:09}", self.nanos);
            write!(f, ".{}", fraction.trim_end_matches('0'))?;
        }
        match (self.offset, self.offset.abs() / 60) {
            (0, _) => f.write_str("Z"),
            (1.., minutes) => {
                write!(f, "+{:02}:{:02}", minutes / 60, minutes % 60)
            }
            (_, minutes) => write!(f, "-{:02}:{:02}", minutes / 60, minutes % 60),
        }
    }
}

/// Why a text is not a timestamp.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TimeError {
    Syntax,
    /// The time is before the year 1 or after the year 9999.
    Range,
}

/// Parses RFC 3339 as Go does.
pub(crate) fn parse_timestamp(text: &str) -> Result<Timestamp, TimeError> {
    // `pintle_meta`'s times have microseconds, so the fraction is parsed here.
    let (head, fraction, tail) = match text.find(['.', ',']) {
        None => (text, "", ""),
        Some(at) => {
            let rest = &text[at + 1..];
            let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
            let (fraction, tail) = rest.split_at(digits);
            if fraction.is_empty() {
                return Err(TimeError::Syntax);
            }
            (&text[..at], fraction, tail)
        }
    };
    if head.len() + tail.len() > "2006-01-02T15:04:05+07:00".len() {
        return Err(TimeError::Syntax);
    }
    let micros = time::parse(&format!("{head}{tail}")).map_err(|_| TimeError::Syntax)?;
    let nanos = fraction.bytes().chain(std::iter::repeat(b'0')).take(9);
    let nanos = nanos.fold(0, |n, digit| n * 10 + u32::from(digit - b'0'));
    let seconds = micros.div_euclid(time::SECOND);
    let offset = offset(if tail.is_empty() { head } else { tail });
    let time = from_seconds(seconds).ok_or(TimeError::Range)?;
    Ok(Timestamp { nanos, offset, ..time })
}

/// The offset at the end of a parsed time.
fn offset(text: &str) -> i32 {
    let zone = text.len().checked_sub(6).and_then(|at| text.get(at..));
    let Some((sign, zone)) = zone.and_then(|zone| zone.split_at_checked(1)) else { return 0 };
    let number = |text: Option<&str>| text.and_then(|t| t.parse::<i32>().ok()).unwrap_or(0);
    let seconds = number(zone.get(..2)) * 3600 + number(zone.get(3..)) * 60;
    match sign {
        "+" => seconds,
        "-" => -seconds,
        _ => 0,
    }
}

/// The timestamp at these seconds since 1970.
pub(crate) fn from_seconds(seconds: i64) -> Option<Timestamp> {
    let ok = (SECONDS_MIN..=SECONDS_MAX).contains(&seconds);
    ok.then_some(Timestamp { seconds, nanos: 0, offset: 0 })
}

/// Parses OpenAPI's `date`.
pub(crate) fn parse_date(text: &str) -> Option<Timestamp> {
    parse_timestamp(&format!("{text}T00:00:00Z")).ok().filter(|_| text.len() == 10)
}

/// Parses OpenAPI's `date-time`: RFC 3339, with or without offset; an empty text is the beginning
/// of 1970.
pub(crate) fn parse_open_api_time(text: &str) -> Option<Timestamp> {
    if text.is_empty() {
        return from_seconds(0);
    }
    parse_timestamp(text).or_else(|_| parse_timestamp(&format!("{text}Z"))).ok()
}

/// Parses a duration as Go does, to nanoseconds.
pub(crate) fn parse_duration(text: &str) -> Option<i64> {
    duration::parse(text).ok()
}

/// Units and their names. A unit that begins with the last name of a row is also accepted.
const UNITS: &[(&[&str], i64)] = &[
    (&["ns", "nano"], 1),
    (&["us", "µs", "micro"], 1_000),
    (&["ms", "milli"], 1_000_000),
    (&["s", "sec"], NANOS),
    (&["m", "min"], 60 * NANOS),
    (&["h", "hr", "hour"], 3_600 * NANOS),
    (&["d", "day"], 86_400 * NANOS),
    (&["w", "wk", "week"], 604_800 * NANOS),
];

/// Parses OpenAPI's `duration`: Go's format, or numbers with unit names such as `3 days`.
pub(crate) fn parse_open_api_duration(text: &str) -> Option<i64> {
    if let Some(nanos) = parse_duration(text) {
        return Some(nanos);
    }
    let mut total = 0_i64;
    let mut found = false;
    let mut rest = text;
    while let Some(at) = rest.find(|c: char| c.is_ascii_digit()) {
        rest = &rest[at..];
        let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        let (digits, after) = rest.split_at(end);
        let after = after.trim_start_matches([' ', '\t', '\n', '\r', '\u{c}']);
        let end = after.find(|c: char| !c.is_ascii_alphabetic() && c != 'µ').unwrap_or(after.len());
        let (unit, after) = after.split_at(end);
        rest = after;
        if unit.is_empty() {
            continue;
        }
        let number: i64 = digits.parse().ok()?;
        let unit = unit.to_lowercase();
        for (names, nanos) in UNITS {
            let begins = names.last().is_some_and(|last| unit.starts_with(last));
            if begins || names.contains(&unit.as_str()) {
                found = true;
                total = total.wrapping_add(number.wrapping_mul(*nanos));
            }
        }
    }
    found.then_some(total)
}

/// Formats seconds with as many fractional digits as needed.
pub(crate) fn duration_text(nanos: i64) -> String {
    format!("{}s", crate::number::plain(seconds_of(nanos)))
}

/// The duration in seconds with fraction, as Go computes it.
pub(crate) fn seconds_of(nanos: i64) -> f64 {
    (nanos / NANOS) as f64 + (nanos % NANOS) as f64 / 1e9
}
