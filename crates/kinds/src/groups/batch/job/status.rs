//! The status of jobs: which changes controllers may make, and in which order.
//!
//! Unchanged members of the stored status are accepted.

use std::collections::BTreeSet;

use pintle_meta::field::Error;
use pintle_value::Value;

use super::indexes;
use crate::{
    field::{Errors, Field},
    rules::{Rule::NotNegative, Rules, check},
};

/// Tells which fields of a status have changed.
struct Changes<'a> {
    new: &'a Value,
    old: &'a Value,
}

impl Changes<'_> {
    fn of(&self, member: &str) -> bool {
        let at = |job: &Value| job.at(&["status", member]).cloned().unwrap_or_default();
        at(self.new) != at(self.old)
    }

    fn of_condition(&self, kind: &str) -> bool {
        is_true(self.new, kind) != is_true(self.old, kind)
    }

    fn of_end(&self) -> bool {
        is_finished(self.new) != is_finished(self.old)
    }
}

fn is_true(job: &Value, kind: &str) -> bool {
    let conditions = job.at(&["status", "conditions"]).and_then(Value::as_array);
    conditions.unwrap_or_default().iter().any(|condition| {
        condition.str_at(&["type"]) == Some(kind) && condition.str_at(&["status"]) == Some("True")
    })
}

fn is_finished(job: &Value) -> bool {
    is_true(job, "Complete") || is_true(job, "Failed")
}

const COUNTS: Rules = &[
    NotNegative("active"),
    NotNegative("succeeded"),
    NotNegative("failed"),
    NotNegative("ready"),
    NotNegative("terminating"),
];

/// Validates an update of a job's status.
pub(super) fn validate(new: &Value, old: &Value) -> Errors {
    let job = Field::root(new);
    let (spec, status) = (job.get("spec"), job.get("status"));
    let changes = Changes { new, old };
    let mut errors = Errors::new();
    check(&status, COUNTS, &mut errors);
    check_uncounted(&status, &mut errors);
    check_complete(&status, &changes, &mut errors);
    check_finished(&spec, &status, &changes, &mut errors);
    check_indexes(&spec, &status, &changes, &mut errors);
    check_rest(&spec, &status, &changes, &mut errors);
    check_order(&spec, &status, &changes, &mut errors);
    errors
}

fn check_uncounted(status: &Field<'_>, errors: &mut Errors) {
    let uncounted = status.get("uncountedTerminatedPods");
    let mut seen = BTreeSet::new();
    for list in ["succeeded", "failed"] {
        for uid in uncounted.items(list) {
            if uid.is_empty() {
                errors.push(uid.invalid("must not be empty"));
            } else if !seen.insert(uid.value().as_str()) {
                errors.push(uid.duplicate());
            }
        }
    }
}

/// Checks that conditions do not exclude each other, and that each has the condition that it
/// requires.
fn check_complete(status: &Field<'_>, changes: &Changes<'_>, errors: &mut Errors) {
    let is = |kind| is_true(changes.new, kind);
    let changed = |kinds: &[&str]| kinds.iter().any(|kind| changes.of_condition(kind));
    let conditions = status.get("conditions");
    let completion = status.get("completionTime");
    let completion_changed = changed(&["Complete"]) || changes.of("completionTime");
    let mut refuse = |words: &str| errors.push(conditions.invalid_without_value(words));
    if is("Complete") && is("Failed") && changed(&["Complete", "Failed"]) {
        refuse("cannot set Complete=True and Failed=true conditions");
    }
    if is("Complete") && is("FailureTarget") && changed(&["Complete", "FailureTarget"]) {
        refuse("cannot set Complete=True and FailureTarget=true conditions");
    }
    if completion_changed && completion.is_set() && !is("Complete") {
        let words = "cannot set completionTime when there is no Complete=True condition";
        errors.push(completion.invalid(words));
    }
    if completion_changed && !completion.is_set() && is("Complete") {
        errors.push(completion.required("completionTime is required for Complete jobs"));
    }
    let start = status.str("startTime");
    // All times have one format, in which the texts sort as the times do.
    let is_before = !start.is_empty() && completion.is_set() && completion.text() < start;
    if is_before && (changes.of("startTime") || changes.of("completionTime")) {
        errors.push(completion.invalid("must be equal to or after `startTime`"));
    }
    let mut refuse = |words: &str| errors.push(conditions.invalid_without_value(words));
    if is("Failed") && !is("FailureTarget") && changed(&["Failed", "FailureTarget"]) {
        refuse("cannot set Failed=True condition without the FailureTarget=true condition");
    }
    if is("Complete") && !is("SuccessCriteriaMet") && changed(&["Complete", "SuccessCriteriaMet"]) {
        refuse("cannot set Complete=True condition without the SuccessCriteriaMet=true condition");
    }
}

fn check_finished(
    spec: &Field<'_>,
    status: &Field<'_>,
    changes: &Changes<'_>,
    errors: &mut Errors,
) {
    if !is_finished(changes.new) {
        return;
    }
    let active = status.get("active");
    if active.int().unwrap_or(0) > 0 && (changes.of_end() || changes.of("active")) {
        errors.push(active.invalid("active>0 is invalid for finished job"));
    }
    let start = status.get("startTime");
    let never_started = spec.get("suspend").is_true() && spec.get("completions").int() == Some(0);
    if !start.is_set() && !never_started && (changes.of_end() || changes.of("startTime")) {
        errors.push(start.required("startTime is required for finished job"));
    }
    let uncounted = status.get("uncountedTerminatedPods");
    let is_left = ["failed", "succeeded"].iter().any(|list| !uncounted.get(list).is_empty());
    if is_left && (changes.of_end() || changes.of("uncountedTerminatedPods")) {
        let words = "must be empty for finished job";
        errors.push(uncounted.invalid(words));
    }
}

fn check_indexes(spec: &Field<'_>, status: &Field<'_>, changes: &Changes<'_>, errors: &mut Errors) {
    let (completed, failed) = (status.get("completedIndexes"), status.get("failedIndexes"));
    let completions = spec.get("completions").int();
    let per_index = spec.has("backoffLimitPerIndex");
    let completed_changed = changes.of("completedIndexes");
    let failed_changed = changes.of("failedIndexes");
    let wrong = |field: &Field<'_>| indexes::count(field.text(), completions?).err();
    if completed_changed && let Some(why) = wrong(&completed) {
        errors.push(completed.invalid(format!("error parsing completedIndexes: {why}")));
    }
    if failed_changed
        && per_index
        && failed.is_set()
        && let Some(why) = wrong(&failed)
    {
        errors.push(failed.invalid(format!("error parsing failedIndexes: {why}")));
    }
    if completed_changed && !completed.is_empty() && !super::is_indexed(spec) {
        let words = "cannot set non-empty completedIndexes when non-indexed completion mode";
        errors.push(completed.invalid(words));
    }
    if failed_changed && failed.is_set() && !per_index {
        let words = "cannot set non-null failedIndexes when backoffLimitPerIndex is null";
        errors.push(failed.invalid(words));
    }
    if (completed_changed || failed_changed)
        && let Some(index) = completions.and_then(|n| overlap(completed.text(), failed.text(), n))
    {
        let words = format!("failedIndexes and completedIndexes overlap at index: {index}");
        errors.push(failed.invalid(words));
    }
}

/// The first index that is both completed and failed. The intervals of a text should be in order; if
/// they are not, the text has an error of its own, and an overlap may be missed, as in upstream.
fn overlap(completed: &str, failed: &str, completions: i64) -> Option<i64> {
    let mut completed = indexes::intervals(completed, completions).peekable();
    let mut failed = indexes::intervals(failed, completions).peekable();
    while let Some((c, f)) = completed.peek().zip(failed.peek()) {
        if c.0 <= f.1 && f.0 <= c.1 {
            return Some(c.0.max(f.0));
        }
        let behind =
            if c.0 <= f.0 { &mut completed as &mut dyn Iterator<Item = _> } else { &mut failed };
        behind.next();
    }
    None
}

fn check_rest(spec: &Field<'_>, status: &Field<'_>, changes: &Changes<'_>, errors: &mut Errors) {
    let is = |kind| is_true(changes.new, kind);
    let (ready, terminating) = (status.get("ready"), status.get("terminating"));
    let active = status.get("active").int().unwrap_or(0);
    if is_finished(changes.new)
        && terminating.int().unwrap_or(0) > 0
        && (changes.of_end() || changes.of("terminating"))
    {
        errors.push(terminating.invalid("terminating>0 is invalid for finished job"));
    }
    if ready.int().is_some_and(|ready| ready > active)
        && (changes.of("ready") || changes.of("active"))
    {
        errors.push(ready.invalid("cannot set more ready pods than active"));
    }
    let conditions = status.get("conditions");
    let mut refuse = |words: &str| errors.push(conditions.invalid_without_value(words));
    if is("SuccessCriteriaMet") && is("Failed") {
        refuse("cannot set SuccessCriteriaMet=True and Failed=true conditions");
    }
    if is("SuccessCriteriaMet") && is("FailureTarget") {
        refuse("cannot set SuccessCriteriaMet=True and FailureTarget=true conditions");
    }
    if spec.has("successPolicy") && is("Complete") && !is("SuccessCriteriaMet") {
        refuse(
            "cannot set Complete=True for Job with SuccessPolicy unless SuccessCriteriaMet=True",
        );
    }
}

/// Checks that a status keeps its terminal conditions, its completion time and (unless the job is
/// suspended) its start time, and that its counts do not decrease.
fn check_order(spec: &Field<'_>, status: &Field<'_>, changes: &Changes<'_>, errors: &mut Errors) {
    let conditions = status.get("conditions");
    let was = |kind| is_true(changes.old, kind);
    let is = |kind| is_true(changes.new, kind);
    for kind in ["Failed", "Complete", "FailureTarget"] {
        if was(kind) && !is(kind) {
            let words = format!("cannot disable the terminal {kind}=True condition");
            errors.push(conditions.invalid_without_value(words));
        }
    }
    let before = |member| changes.old.at(&["status", member]);
    let is_scaled =
        super::is_indexed(spec) && spec.get("completions").int() == spec.get("parallelism").int();
    for (member, is_checked) in [("failed", true), ("succeeded", !is_scaled)] {
        let field = status.get(member);
        let number = field.int().unwrap_or(0);
        let old = before(member).and_then(Value::as_int).unwrap_or(0);
        if is_checked && number < old {
            let words = format!("cannot decrease the {member} counter");
            errors.push(field.invalid_as(number, words));
        }
    }
    let completion = status.get("completionTime");
    if completion.is_set() && before("completionTime").is_some_and(|old| old != completion.value())
    {
        errors.push(completion.invalid("field is immutable"));
    }
    let start = status.get("startTime");
    let had_started = before("startTime").is_some_and(|time| !time.is_null());
    if had_started && changes.of("startTime") && !spec.get("suspend").is_true() {
        errors.push(start.invalid("field is immutable for unsuspended job once set"));
    }
    let mut refuse = |words: &str| errors.push(Error { value: None, ..conditions.invalid(words) });
    if was("SuccessCriteriaMet") && !is("SuccessCriteriaMet") {
        refuse("cannot disable the SuccessCriteriaMet=True condition");
    }
    if was("Complete") && !was("SuccessCriteriaMet") && is("SuccessCriteriaMet") {
        refuse("cannot set SuccessCriteriaMet=True for Job already has Complete=true conditions");
    }
}

#[cfg(test)]
mod tests {
    use super::overlap;

    #[test]
    fn the_first_common_index() {
        for (completed, failed, expected) in [
            ("", "", None),
            ("1", "", None),
            ("1,3,5", "0,2,4,6", None),
            ("1,3,5-7", "0,2,4,6", Some(6)),
            ("0-9", "4-5", Some(4)),
            ("4-5", "0-9", Some(4)),
            ("1-2,5-6", "3-4,6", Some(6)),
            ("x,2", "2,y", Some(2)),
            ("2", "1-3-5,2", Some(2)),
            ("200", "200", None),
        ] {
            assert_eq!(overlap(completed, failed, 100), expected, "{completed} and {failed}");
        }
    }
}
