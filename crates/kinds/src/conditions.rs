//! The rules for lists of `metav1.Condition`.

use std::collections::BTreeSet;

use pintle_meta::{names, time};
use pintle_registry::request::Now;
use pintle_value::Value;

use crate::field::{Errors, Field};

const REASON_LENGTH_MAX: usize = 1024;
const MESSAGE_LENGTH_MAX: usize = 32 * 1024;
const STATUSES: &[&str] = &["False", "True", "Unknown"];

/// Sets the transition time of the conditions that the server gives a new object to its creation
/// time.
pub(crate) fn note_time(object: &mut Value, old: Option<&Value>, now: Now) {
    let conditions = object.get_mut("status").and_then(|status| status.get_mut("conditions"));
    let conditions = conditions.and_then(Value::as_array_mut).filter(|_| old.is_none());
    for condition in conditions.into_iter().flatten().filter_map(Value::as_object_mut) {
        condition.entry_or("lastTransitionTime", || time::format(now.unix_micros).into());
    }
}

/// Checks the `conditions` of a status.
pub(crate) fn check(status: &Field<'_>, errors: &mut Errors) {
    let mut seen = BTreeSet::new();
    for condition in status.items("conditions") {
        if !seen.insert(condition.str("type").to_owned()) {
            errors.push(condition.get("type").duplicate());
        }
        check_condition(&condition, errors);
    }
}

fn check_condition(condition: &Field<'_>, errors: &mut Errors) {
    let (kind, status) = (condition.get("type"), condition.get("status"));
    kind.all_invalid(names::qualified_name(kind.text()), errors);
    if !STATUSES.contains(&status.text()) {
        errors.push(status.not_supported(STATUSES));
    }
    let generation = condition.get("observedGeneration");
    if generation.int().is_some_and(|generation| generation < 0) {
        errors.push(generation.invalid("must be greater than or equal to zero"));
    }
    let time = condition.get("lastTransitionTime");
    if !time.is_set() {
        errors.push(time.required(""));
    }
    let reason = condition.get("reason");
    if reason.is_empty() {
        errors.push(reason.required(""));
    } else {
        reason.all_invalid(wrong_reason(reason.text()), errors);
        if reason.text().len() > REASON_LENGTH_MAX {
            let path = reason.path();
            errors.push(pintle_meta::field::Error::too_long(&path, REASON_LENGTH_MAX));
        }
    }
    let message = condition.get("message");
    if message.text().len() > MESSAGE_LENGTH_MAX {
        errors.push(pintle_meta::field::Error::too_long(&message.path(), MESSAGE_LENGTH_MAX));
    }
}

/// Returns the errors of a condition's reason, which is an identifier for programs.
fn wrong_reason(reason: &str) -> Vec<String> {
    let inner = |b: &u8| b.is_ascii_alphanumeric() || b"_,:".contains(b);
    let bytes = reason.as_bytes();
    let begins = bytes.first().is_some_and(u8::is_ascii_alphabetic);
    let ends = bytes.last().is_some_and(|b| b.is_ascii_alphanumeric() || *b == b'_');
    if begins && ends && bytes.iter().all(inner) {
        return Vec::new();
    }
    vec![
        "a condition reason must start with alphabetic character, optionally followed by a string \
         of alphanumeric characters or '_,:', and must end with an alphanumeric character or '_' \
         (e.g. 'my_name',  or 'MY_NAME',  or 'MyName',  or 'ReasonA,ReasonB',  or \
         'ReasonA:ReasonB', regex used for validation is \
         '[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?')"
            .to_owned(),
    ]
}
