//! Validation of a list of `metav1.Condition` (META-15).

use std::collections::BTreeSet;

use pintle_value::{Path, Value};

use super::all_invalid;
use crate::{
    field::{Error, Errors},
    names,
};

const REASON_LENGTH_MAX: usize = 1024;
const MESSAGE_LENGTH_MAX: usize = 32 * 1024;

/// Validates a list of conditions.
pub fn conditions(conditions: &[Value], path: &Path) -> Errors {
    let mut errors = Errors::new();
    let mut types = BTreeSet::new();
    for (i, condition) in conditions.iter().enumerate() {
        let path = path.index(i);
        let condition_type = condition.str_at(&["type"]).unwrap_or_default();
        if !types.insert(condition_type) {
            errors.push(Error::duplicate(&path.field("type"), &condition_type.into()));
        }
        check(&mut errors, condition, &path);
    }
    errors
}

fn check(errors: &mut Errors, condition: &Value, path: &Path) {
    let text = |member: &str| condition.str_at(&[member]).unwrap_or_default();
    let condition_type = text("type");
    let wrong = names::qualified_name(condition_type);
    all_invalid(errors, &path.field("type"), condition_type, wrong);

    let status = text("status");
    if !matches!(status, "True" | "False" | "Unknown") {
        let supported = ["False", "True", "Unknown"];
        errors.push(Error::not_supported(&path.field("status"), &status.into(), &supported));
    }
    let generation = condition.get("observedGeneration").and_then(Value::as_int).unwrap_or(0);
    if generation < 0 {
        const DETAIL: &str = "must be greater than or equal to zero";
        errors.push(Error::invalid(&path.field("observedGeneration"), &generation.into(), DETAIL));
    }
    if text("lastTransitionTime").is_empty() {
        errors.push(Error::required(&path.field("lastTransitionTime"), ""));
    }
    let reason = text("reason");
    let at = path.field("reason");
    if reason.is_empty() {
        errors.push(Error::required(&at, ""));
    } else {
        all_invalid(errors, &at, reason, wrong_reason(reason));
        if reason.len() > REASON_LENGTH_MAX {
            errors.push(Error::too_long(&at, REASON_LENGTH_MAX));
        }
    }
    if text("message").len() > MESSAGE_LENGTH_MAX {
        errors.push(Error::too_long(&path.field("message"), MESSAGE_LENGTH_MAX));
    }
}

fn wrong_reason(reason: &str) -> Vec<String> {
    let inner = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b',' | b':');
    let ends = |b: u8| b.is_ascii_alphanumeric() || b == b'_';
    let fits = reason.starts_with(|c: char| c.is_ascii_alphabetic())
        && reason.bytes().next_back().is_some_and(ends)
        && reason.bytes().all(inner);
    if fits {
        return Vec::new();
    }
    vec![names::pattern_error(
        "a condition reason must start with alphabetic character, optionally followed by a string \
         of alphanumeric characters or '_,:', and must end with an alphanumeric character or '_'",
        "[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?",
        &["my_name", "MY_NAME", "MyName", "ReasonA,ReasonB", "ReasonA:ReasonB"],
    )]
}
