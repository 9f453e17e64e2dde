//! Rules that workloads share: selectors, templates, rollouts, counts of the status.

use pintle_meta::{labels::Selector, validation};
use pintle_value::Value;

use crate::{
    checks::IMMUTABLE,
    field::{Errors, Field},
    formats, pods,
    rules::not_negative,
};

/// Checks that a workload has a selector that is not empty.
pub(super) fn check_selector(spec: &Field<'_>, empty: &str, errors: &mut Errors) {
    let selector = spec.get("selector");
    if !selector.is_set() {
        errors.push(selector.required(""));
        return;
    }
    errors.extend(validation::label_selector(selector.value(), &selector.path()));
    if ["matchLabels", "matchExpressions"].iter().all(|m| selector.get(m).is_empty()) {
        errors.push(selector.invalid(empty));
    }
}

/// Checks that a selector matches the labels of a workload's pod template. An empty selector has an
/// error of its own.
pub(super) fn check_labels(spec: &Field<'_>, selector: &Selector, errors: &mut Errors) {
    let labels = spec.at(&["template", "metadata", "labels"]);
    if !selector.matches_map(labels.value().as_object()) {
        errors.push(labels.invalid(pods::LABELS_MISMATCH));
    }
}

/// Checks the template of a workload whose pods run for ever and match its selector.
pub(super) fn check_template(
    spec: &Field<'_>,
    old: Option<&Value>,
    kind: &str,
    errors: &mut Errors,
) {
    let selector = spec.get("selector");
    let Ok(labels) = Selector::from_label_selector(selector.some()) else {
        errors.push(selector.invalid("invalid label selector"));
        return;
    };
    if !labels.is_everything() {
        check_labels(spec, &labels, errors);
    }
    pods::check_template(&spec.get("template"), old_template(old), errors);
    check_lasting(spec, kind, errors);
}

/// The template that an update replaces.
pub(super) fn old_template(old: Option<&Value>) -> Option<&Value> {
    old?.at(&["spec", "template"])
}

/// Checks that the pods of a template run for ever, as those of most workloads do.
pub(super) fn check_lasting(spec: &Field<'_>, kind: &str, errors: &mut Errors) {
    let pod = spec.at(&["template", "spec"]);
    let policy = pod.get("restartPolicy");
    if policy.text() != "Always" {
        errors.push(policy.not_supported(&["Always"]));
    }
    if let Some(deadline) = pod.find("activeDeadlineSeconds") {
        let words = format!("activeDeadlineSeconds in {kind} is not Supported");
        errors.push(deadline.forbidden(words));
    }
}

/// Checks that a workload's selector is unchanged.
pub(super) fn check_same_selector(spec: &Field<'_>, old: Option<&Value>, errors: &mut Errors) {
    let selector = spec.get("selector");
    let is_changed = |old: &Value| old.at(&["spec", "selector"]) != selector.some();
    if old.is_some_and(is_changed) {
        errors.push(selector.invalid(IMMUTABLE));
    }
}

/// Checks a number, or a share of the replicas such as `25%`.
pub(super) fn check_share(share: &Field<'_>, errors: &mut Errors) {
    match share.value().as_str() {
        Some(text) => share.all_invalid(formats::percent(text), errors),
        None => not_negative(share, errors),
    }
}

/// Checks that a share is at most 100 percent.
pub(super) fn check_not_above_all(share: &Field<'_>, errors: &mut Errors) {
    if percentage(share).is_some_and(|percent| percent > 100) {
        errors.push(share.invalid("must not be greater than 100%"));
    }
}

/// Whether the number or percentage is zero. A text without `%` is invalid, but counts as its
/// number.
pub(super) fn is_zero(share: &Field<'_>) -> bool {
    let number = || share.int().or_else(|| share.text().parse().ok());
    percentage(share).or_else(number).unwrap_or(0) == 0
}

fn percentage(share: &Field<'_>) -> Option<i64> {
    let digits = share.value().as_str()?.strip_suffix('%')?;
    let number = digits.bytes().try_fold(0_i64, |number, digit| {
        digit
            .is_ascii_digit()
            .then(|| number.saturating_mul(10).saturating_add(i64::from(digit - b'0')))
    });
    number.filter(|_| !digits.is_empty())
}

/// The counts of a status.
pub(super) struct Counts {
    /// Members that may not be negative.
    pub(super) members: &'static [&'static str],
    /// Pairs of members, the first of which may not be greater than the second, with the message.
    pub(super) within: &'static [(&'static str, &'static str, &'static str)],
    /// Whether there is a `collisionCount`, which may only grow.
    pub(super) collisions: bool,
}

/// Checks the counts of a status.
pub(super) fn check_counts(object: &Value, old: &Value, counts: &Counts) -> Errors {
    let object = Field::root(object);
    let status = object.get("status");
    let mut errors = Errors::new();
    let number = |member: &str| status.get(member).int().unwrap_or(0);
    for member in counts.members {
        not_negative(&status.get(member), &mut errors);
    }
    let collisions = status.get("collisionCount");
    if counts.collisions {
        not_negative(&collisions, &mut errors);
    }
    for (member, most, words) in counts.within {
        if number(member) > number(most) {
            errors.push(status.get(member).invalid_as(number(member), *words));
        }
    }
    let before = old.at(&["status", "collisionCount"]).and_then(Value::as_int);
    if counts.collisions && before.is_some_and(|before| collisions.int().is_none_or(|n| n < before))
    {
        let words = "cannot be decremented";
        errors.push(collisions.invalid_as(collisions.int().unwrap_or(0), words));
    }
    errors
}

/// Warnings about a workload's name and template: for a new one, and when its spec has changed.
/// `name` is the warning for a name that is not a DNS label.
pub(super) fn warn(
    new: &Value,
    old: Option<&Value>,
    template: &[&str],
    name: Option<&str>,
) -> Vec<String> {
    let generation =
        |object: &Value| object.at(&["metadata", "generation"]).and_then(Value::as_int);
    let object = Field::root(new);
    let mut warnings = Vec::new();
    if old.is_none() {
        warnings.extend(name.into_iter().flat_map(|words| pods::warn_of_name(new, words)));
    }
    if old.is_none_or(|old| generation(old) != generation(new)) {
        warnings.extend(pods::warn_of_template(&object.at(template)));
    }
    warnings
}

/// The warning for a name that is not a DNS label.
pub(super) const NAME_WORDS: &str =
    "this is used in Pod names and hostnames, which can result in surprising behavior";

/// The path of the template in most workloads.
pub(super) const TEMPLATE: &[&str] = &["spec", "template"];

/// The counts of workloads that maintain a number of replicas.
pub(super) const REPLICA_COUNTS: &Counts = &Counts {
    members: &[
        "replicas",
        "fullyLabeledReplicas",
        "readyReplicas",
        "availableReplicas",
        "observedGeneration",
        "terminatingReplicas",
    ],
    within: &[
        ("fullyLabeledReplicas", "replicas", "cannot be greater than status.replicas"),
        ("readyReplicas", "replicas", "cannot be greater than status.replicas"),
        ("availableReplicas", "replicas", "cannot be greater than status.replicas"),
        ("availableReplicas", "readyReplicas", "cannot be greater than readyReplicas"),
    ],
    collisions: false,
};
