//! Names of time zones.

use crate::field::{Errors, Field};

/// The names of the tz database (2026), links included, separated by blanks.
const NAMES: &str = include_str!("time_zones.txt");

const PART_LENGTH_MAX: usize = 14;

/// Checks the name of a zone.
pub(super) fn check(zone: &Field<'_>, errors: &mut Errors) {
    let name = zone.text();
    let unknown = || zone.invalid(format!("unknown time zone {name}"));
    if name.is_empty() {
        errors.push(zone.invalid("timeZone must be nil or non-empty string"));
    } else if !name.split('/').all(is_part) {
        errors.push(unknown());
    } else if name.eq_ignore_ascii_case("Local") {
        errors.push(zone.invalid(
            "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones",
        ));
        if name != "Local" {
            errors.push(unknown());
        }
    } else if !is_known(name) {
        errors.push(unknown());
    }
}

/// Returns why Go finds no time zone of this name, which may also be absent or `Local`.
pub(super) fn wrong_location(name: &str) -> Option<String> {
    if name.starts_with(['/', '\\']) || name.contains("..") {
        return Some("time: invalid location name".to_owned());
    }
    let is_found = matches!(name, "" | "Local") || is_known(name);
    (!is_found).then(|| format!("unknown time zone {name}"))
}

fn is_known(name: &str) -> bool {
    NAMES.split_ascii_whitespace().any(|known| known == name)
}

fn is_part(part: &str) -> bool {
    let inner = |b: u8| b.is_ascii_alphanumeric() || b".-_+".contains(&b);
    (1..=PART_LENGTH_MAX).contains(&part.len())
        && part != "."
        && part != ".."
        && !part.starts_with('-')
        && part.bytes().all(inner)
}
