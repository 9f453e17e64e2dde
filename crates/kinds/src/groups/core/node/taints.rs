//! The rules for taints.

use std::collections::BTreeSet;

use pintle_meta::{
    field::{Error, ErrorType},
    names,
};
use pintle_value::json;

use crate::{
    field::{Errors, Field},
    rules::choice,
};

const EFFECTS: &[&str] = &["NoSchedule", "PreferNoSchedule", "NoExecute"];

/// Checks the taints in the list of that name.
pub(super) fn check(holder: &Field<'_>, list: &str, errors: &mut Errors) {
    let mut seen = BTreeSet::new();
    for taint in holder.items(list) {
        let key = taint.get("key");
        key.all_invalid(names::qualified_name(key.text()), errors);
        let value = taint.get("value");
        let wrong = names::label_value(value.text());
        if !wrong.is_empty() {
            errors.push(value.invalid(wrong.join(";")));
        }
        choice(&taint.get("effect"), EFFECTS, errors);
        if !seen.insert((key.text().to_owned(), taint.str("effect").to_owned())) {
            errors.push(same_taint(&taint));
        }
    }
}

/// The error for a duplicate taint, which shows the taint in upstream's internal form.
fn same_taint(taint: &Field<'_>) -> Error {
    let shown = |member: &str| json::to_string(&taint.str(member).into());
    let time = taint.get("timeAdded");
    let time = json::to_string(time.value());
    Error {
        error_type: ErrorType::Duplicate,
        field: taint.path().as_str().to_owned(),
        value: Some(format!(
            r#"{{"Key":{},"Value":{},"Effect":{},"TimeAdded":{time}}}"#,
            shown("key"),
            shown("value"),
            shown("effect")
        )),
        detail: "taints must be unique by key and effect pair".to_owned(),
    }
}
