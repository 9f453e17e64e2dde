//! Cron schedules of five fields, and the descriptors for some of them.
//!
//! The messages are those of upstream's cron library, except that of a time zone without a
//! schedule, for which the library panics.

use std::ops::RangeInclusive;

use pintle_meta::duration;

use super::time_zone;

/// A field's values, and their names.
struct Field {
    values: RangeInclusive<u32>,
    names: &'static [&'static str],
}

const FIELDS: [Field; 5] = [
    Field { values: 0..=59, names: &[] },
    Field { values: 0..=23, names: &[] },
    Field { values: 1..=31, names: &[] },
    Field {
        values: 1..=12,
        names: &[
            "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec",
        ],
    },
    Field { values: 0..=6, names: &["sun", "mon", "tue", "wed", "thu", "fri", "sat"] },
];

const DESCRIPTORS: &[&str] =
    &["@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly"];

/// Returns the error of a schedule.
pub(super) fn wrong(schedule: &str) -> Option<String> {
    check(schedule).err()
}

fn check(schedule: &str) -> Result<(), String> {
    let mut schedule = schedule;
    if schedule.starts_with("TZ=") || schedule.starts_with("CRON_TZ=") {
        let (zone, rest) = schedule.split_once(' ').unwrap_or((schedule, ""));
        let zone = zone.split_once('=').map_or(zone, |(_, zone)| zone);
        if rest.is_empty() {
            return Err(format!("provided bad location {zone}: no schedule follows"));
        }
        if let Some(why) = time_zone::wrong_location(zone) {
            return Err(format!("provided bad location {zone}: {why}"));
        }
        schedule = rest.trim();
    }
    if schedule.starts_with('@') {
        return check_descriptor(schedule);
    }
    let fields: Vec<&str> = schedule.split_whitespace().collect();
    if fields.len() != FIELDS.len() {
        let (expected, found) = (FIELDS.len(), fields.len());
        let fields = fields.join(" ");
        return Err(format!("expected exactly {expected} fields, found {found}: [{fields}]"));
    }
    for (text, field) in fields.iter().zip(&FIELDS) {
        text.split(',')
            .filter(|range| !range.is_empty())
            .try_for_each(|r| check_range(r, field))?;
    }
    Ok(())
}

fn check_descriptor(descriptor: &str) -> Result<(), String> {
    if DESCRIPTORS.contains(&descriptor) {
        return Ok(());
    }
    match descriptor.strip_prefix("@every ") {
        None => Err(format!("unrecognized descriptor: {descriptor}")),
        Some(every) => match duration::parse(every) {
            Ok(_) => Ok(()),
            Err(error) => Err(format!("failed to parse duration {descriptor}: {error}")),
        },
    }
}

/// Checks a range: `*`, `5`, `1-5`, `mon-fri`, or any of these with a step, such as `*/15`.
fn check_range(range: &str, field: &Field) -> Result<(), String> {
    let (least, most) = (*field.values.start(), *field.values.end());
    let steps: Vec<&str> = range.split('/').collect();
    let ends: Vec<&str> = steps[0].split('-').collect();
    let (start, mut end) = match ends.as_slice() {
        ["*" | "?", ..] => (least, most),
        [one] => {
            let value = value(one, field)?;
            (value, value)
        }
        [first, last] => (value(first, field)?, value(last, field)?),
        [first, ..] => {
            value(first, field)?;
            return Err(format!("too many hyphens: {range}"));
        }
        [] => return Ok(()),
    };
    let step = match steps.as_slice() {
        [_] => 1,
        [_, step] => {
            // A single value with a step is a range to the maximum.
            if ends.len() == 1 {
                end = most;
            }
            number(step)?
        }
        _ => return Err(format!("too many slashes: {range}")),
    };
    if start < least {
        return Err(format!("beginning of range ({start}) below minimum ({least}): {range}"));
    }
    if end > most {
        return Err(format!("end of range ({end}) above maximum ({most}): {range}"));
    }
    if start > end {
        return Err(format!("beginning of range ({start}) beyond end of range ({end}): {range}"));
    }
    if step == 0 {
        return Err(format!("step of range should be a positive number: {range}"));
    }
    Ok(())
}

fn value(text: &str, field: &Field) -> Result<u32, String> {
    let name = text.to_lowercase();
    match field.names.iter().position(|known| *known == name) {
        Some(at) => Ok(field.values.start() + at as u32),
        None => number(text),
    }
}

fn number(text: &str) -> Result<u32, String> {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    let is_number = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
    let refuse = |why: &str| {
        format!("failed to parse int from {text}: strconv.Atoi: parsing {text:?}: {why}")
    };
    if !is_number {
        return Err(refuse("invalid syntax"));
    }
    match text.parse::<i64>() {
        Ok(negative @ ..0) => Err(format!("negative number ({negative}) not allowed: {text}")),
        Ok(number) => Ok(u32::try_from(number).unwrap_or(u32::MAX)),
        Err(_) => Err(refuse("value out of range")),
    }
}

#[cfg(test)]
mod tests {
    use super::wrong;

    #[test]
    fn valid_and_invalid_schedules() {
        for schedule in [
            "* * * * *",
            "0 0 1 jan *",
            "*/5 0-6 1,15 * MON-FRI",
            "5/15 * * * ?",
            "@hourly",
            "@midnight",
            "@every 1h30m",
            "TZ=Etc/UTC 0 0 * * *",
            "  0   0 * * * ",
            ", * * * *",
        ] {
            assert_eq!(wrong(schedule), None, "{schedule}");
        }
        for (schedule, words) in [
            ("* * * *", "expected exactly 5 fields, found 4: [* * * *]"),
            ("error", "expected exactly 5 fields, found 1: [error]"),
            ("* * * * * *", "expected exactly 5 fields, found 6: [* * * * * *]"),
            ("60 * * * *", "end of range (60) above maximum (59): 60"),
            ("* * 0 * *", "beginning of range (0) below minimum (1): 0"),
            ("* * * 0 *", "beginning of range (0) below minimum (1): 0"),
            ("* * * * 7", "end of range (7) above maximum (6): 7"),
            ("5-2 * * * *", "beginning of range (5) beyond end of range (2): 5-2"),
            ("*/0 * * * *", "step of range should be a positive number: */0"),
            ("1-2-3 * * * *", "too many hyphens: 1-2-3"),
            ("1/2/3 * * * *", "too many slashes: 1/2/3"),
            (
                "x * * * *",
                "failed to parse int from x: strconv.Atoi: parsing \"x\": invalid syntax",
            ),
            ("-1 * * * *", "failed to parse int from : strconv.Atoi: parsing \"\": invalid syntax"),
            ("@often", "unrecognized descriptor: @often"),
            ("@every day", "failed to parse duration @every day: time: invalid duration \"day\""),
        ] {
            assert_eq!(wrong(schedule).as_deref(), Some(words), "{schedule}");
        }
    }
}
