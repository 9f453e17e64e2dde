//! Times in the API's format: RFC 3339 in UTC with whole seconds (`metav1.Time`) or microseconds
//! (`metav1.MicroTime`). An instant is an `i64` of microseconds since 1970.
//!
//! Parsing accepts what Go's `time.Parse` accepts with upstream's layouts, with the same error
//! messages.

mod parse;
#[cfg(test)]
mod tests;

use crate::Error;

/// Microseconds in a second.
pub const SECOND: i64 = 1_000_000;
const DAY_SECONDS: i64 = 24 * 60 * 60;
const SECOND_LENGTH: usize = "2006-01-02T15:04:05".len();
const MICRO_LENGTH: usize = "2006-01-02T15:04:05.000000Z".len();

/// Parses a `metav1.Time`. A fraction of a second is kept with microsecond precision.
pub fn parse(text: &str) -> Result<i64, Error> {
    parse::parse(text, parse::Fraction::Optional).map_err(Error::Time)
}

/// Parses a `metav1.MicroTime`, which must have a fraction of six digits.
pub fn parse_micro(text: &str) -> Result<i64, Error> {
    parse::parse(text, parse::Fraction::Micros).map_err(Error::Time)
}

/// Formats a `metav1.Time`: `2006-01-02T15:04:05Z`.
pub fn format(micros: i64) -> String {
    let (seconds, _) = split(micros);
    let mut text = Vec::with_capacity(MICRO_LENGTH);
    match second(seconds) {
        Ok(digits) => text.extend_from_slice(&digits),
        Err(long) => text.extend_from_slice(long.as_bytes()),
    }
    text.push(b'Z');
    String::from_utf8_lossy(&text).into_owned()
}

/// Formats the date of a Unix time in seconds: `2006-01-02`.
pub fn day(seconds: i64) -> String {
    const LENGTH: usize = "2006-01-02".len();
    format(seconds.saturating_mul(SECOND)).chars().take(LENGTH).collect()
}

/// Formats a `metav1.MicroTime`: `2006-01-02T15:04:05.000000Z`.
pub fn format_micro(micros: i64) -> String {
    let mut text = Vec::with_capacity(MICRO_LENGTH);
    write_micro(micros, &mut text);
    String::from_utf8_lossy(&text).into_owned()
}

/// Appends a time as [`format_micro`] has it.
pub fn write_micro(micros: i64, out: &mut Vec<u8>) {
    let (seconds, fraction) = split(micros);
    let [[a, b], [c, d], [e, f]] =
        [fraction / 10_000, fraction / 100 % 100, fraction % 100].map(two_digits);
    let end = [b'.', a, b, c, d, e, f, b'Z'];
    match second(seconds) {
        Ok(digits) => {
            let mut text = [0; MICRO_LENGTH];
            let (start, rest) = text.split_at_mut(SECOND_LENGTH);
            start.copy_from_slice(&digits);
            rest.copy_from_slice(&end);
            out.extend_from_slice(&text);
        }
        Err(long) => {
            out.extend_from_slice(long.as_bytes());
            out.extend_from_slice(&end);
        }
    }
}

/// The seconds since 1970, and the microseconds of the second.
const fn split(micros: i64) -> (i64, u32) {
    (micros.div_euclid(SECOND), micros.rem_euclid(SECOND) as u32)
}

/// Returns the date and the time of a second as digits of fixed length; as `Err` with a text if the
/// year does not have four digits. Every object and event that is written has times, and `format!`
/// takes several times as long as this function.
fn second(seconds: i64) -> Result<[u8; SECOND_LENGTH], String> {
    let (days, second) = (seconds.div_euclid(DAY_SECONDS), seconds.rem_euclid(DAY_SECONDS) as u32);
    let (year, month, day) = civil_from_days(days);
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    let Some(four) = u32::try_from(year).ok().filter(|year| *year <= 9999) else {
        return Err(format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}"));
    };
    let [[a, b], [c, d], [e, f], [g, h], [i, j], [k, l], [m, n]] =
        [four / 100, four % 100, month as u32, day as u32, hour, minute, second].map(two_digits);
    Ok([a, b, c, d, b'-', e, f, b'-', g, h, b'T', i, j, b':', k, l, b':', m, n])
}

/// The digits of a number from 0 to 99.
const fn two_digits(number: u32) -> [u8; 2] {
    [b'0' + (number / 10 % 10) as u8, b'0' + (number % 10) as u8]
}

/// The days since 1970-01-01 of a date in the Gregorian calendar. The computation begins years in
/// March, so that the leap day is a year's last day.
pub fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let (era, year_of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let month_from_march = (month + 9) % 12;
    let day_of_year = (153 * month_from_march + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * DAYS_PER_ERA + day_of_era - DAYS_TO_1970
}

/// The inverse of [`days_from_civil`]: year, month, day.
pub fn civil_from_days(days: i64) -> (i64, i64, i64) {
    let days = days + DAYS_TO_1970;
    let (era, day_of_era) = (days.div_euclid(DAYS_PER_ERA), days.rem_euclid(DAYS_PER_ERA));
    let leaps = day_of_era / 1460 - day_of_era / 36_524 + day_of_era / (DAYS_PER_ERA - 1);
    let year_of_era = (day_of_era - leaps) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = (month_from_march + 2) % 12 + 1;
    let year = era * 400 + year_of_era + i64::from(month <= 2);
    (year, month, day)
}

/// Days in 400 years, the period of the calendar.
const DAYS_PER_ERA: i64 = 146_097;
/// Days from the first of March of year 0 to 1970-01-01.
const DAYS_TO_1970: i64 = 719_468;

fn days_in_month(year: i64, month: i64) -> i64 {
    let (next_year, next_month) = if month == 12 { (year + 1, 1) } else { (year, month + 1) };
    days_from_civil(next_year, next_month, 1) - days_from_civil(year, month, 1)
}
