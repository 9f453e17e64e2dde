//! Scheduling, but for affinity: tolerations, topology spread, gates.

use std::collections::{BTreeMap, BTreeSet};

use pintle_meta::{field::Error, names, validation};

use super::{Options, affinity};
use crate::{
    field::{Errors, Field},
    rules::{
        Rule::{Do, OneOf},
        Rules, check,
    },
};

/// Checks `tolerations`.
pub(crate) fn check_tolerations(spec: &Field<'_>, errors: &mut Errors) {
    spec.items("tolerations").for_each(|toleration| check(&toleration, TOLERATION, errors));
}

const TOLERATION: Rules = &[Do(toleration_key), Do(toleration_value), Do(toleration_effect)];

/// The effects of taints, in upstream's order.
const EFFECTS: &[&str] = &["NoSchedule", "PreferNoSchedule", "NoExecute"];

fn toleration_key(toleration: &Field<'_>, errors: &mut Errors) {
    let (key, operator) = (toleration.get("key"), toleration.get("operator"));
    if !key.is_empty() {
        key.all_invalid(names::qualified_name(key.text()), errors);
    } else if operator.text() != "Exists" {
        let words = "operator must be Exists when `key` is empty, which means \"match all values \
                     and all keys\"";
        errors.push(operator.invalid_as(operator.text(), words));
    }
    let effect = toleration.get("effect");
    if toleration.has("tolerationSeconds") && effect.text() != "NoExecute" {
        let words = "effect must be 'NoExecute' when `tolerationSeconds` is set";
        errors.push(effect.invalid_as(effect.text(), words));
    }
}

/// As in upstream, errors about the value have the path of the operator.
fn toleration_value(toleration: &Field<'_>, errors: &mut Errors) {
    let (operator, value) = (toleration.get("operator"), toleration.str("value"));
    match operator.text() {
        "" | "Equal" => {
            let wrong = names::label_value(value);
            if !wrong.is_empty() {
                errors.push(operator.invalid_as(value, wrong.join(";")));
            }
        }
        "Exists" => {
            if !value.is_empty() {
                let words = "value must be empty when `operator` is 'Exists'";
                errors.push(operator.invalid_as(value, words));
            }
        }
        // The feature gate of these two operators is off, but upstream's error for them lists all
        // four.
        "Lt" | "Gt" => errors.push(operator.not_supported(&["Equal", "Exists", "Lt", "Gt"])),
        _ => errors.push(operator.not_supported(&["Equal", "Exists"])),
    }
}

fn toleration_effect(toleration: &Field<'_>, errors: &mut Errors) {
    let effect = toleration.get("effect");
    if !effect.is_empty() && !EFFECTS.contains(&effect.text()) {
        errors.push(effect.not_supported(EFFECTS));
    }
}

/// Checks `readinessGates`.
pub(super) fn check_readiness_gates(spec: &Field<'_>, errors: &mut Errors) {
    for gate in spec.items("readinessGates") {
        let condition = gate.get("conditionType");
        condition.all_invalid(names::qualified_name(condition.text()), errors);
    }
}

/// Checks `schedulingGates`. As in upstream, errors about the name have the path of the gate.
pub(super) fn check_scheduling_gates(spec: &Field<'_>, errors: &mut Errors) {
    let mut seen = BTreeSet::new();
    for gate in spec.items("schedulingGates") {
        let name = gate.str("name");
        gate.all_invalid_as(name, names::qualified_name(name), errors);
        if !seen.insert(name) {
            errors.push(Error::duplicate(&gate.path(), &name.into()));
        }
    }
}

/// The members that identify a constraint.
fn pair<'a>(constraint: &Field<'a>) -> (&'a str, &'a str) {
    (constraint.str("topologyKey"), constraint.str("whenUnsatisfiable"))
}

/// Checks `topologySpreadConstraints`.
pub(super) fn check_topology_spread(spec: &Field<'_>, options: Options, errors: &mut Errors) {
    let constraints: Vec<Field<'_>> = spec.items("topologySpreadConstraints").collect();
    // Of constraints with the same pair, upstream refuses all but the last.
    let last: BTreeMap<_, usize> =
        constraints.iter().enumerate().map(|(i, constraint)| (pair(constraint), i)).collect();
    for (i, constraint) in constraints.iter().enumerate() {
        let (key, action) = pair(constraint);
        check(constraint, CONSTRAINT, errors);
        if last.get(&(key, action)) != Some(&i) {
            let path = constraint.path().field("{topologyKey, whenUnsatisfiable}");
            errors.push(Error::duplicate(&path, &format!("{{{key}, {action}}}").into()));
        }
        check(constraint, POLICIES, errors);
        if !options.invalid_spread_keys {
            check_label_keys(constraint, errors);
        }
        if !options.invalid_spread_selectors {
            let selector = constraint.get("labelSelector");
            errors.extend(validation::label_selector(selector.value(), &selector.path()));
        }
    }
}

const CONSTRAINT: Rules = &[
    Do(|constraint, errors| {
        let skew = constraint.get("maxSkew");
        let number = skew.int().unwrap_or(0);
        if number <= 0 {
            errors.push(skew.invalid_as(number, "must be greater than zero"));
        }
    }),
    Do(|constraint, errors| {
        let key = constraint.get("topologyKey");
        if key.is_empty() {
            errors.push(key.required("can not be empty"));
        }
    }),
    Do(|constraint, errors| {
        const ACTIONS: &[&str] = &["DoNotSchedule", "ScheduleAnyway"];
        let action = constraint.get("whenUnsatisfiable");
        if !ACTIONS.contains(&action.text()) {
            errors.push(action.not_supported(ACTIONS));
        }
    }),
];

const POLICIES: Rules = &[
    Do(min_domains),
    OneOf("nodeAffinityPolicy", &["Honor", "Ignore"]),
    OneOf("nodeTaintsPolicy", &["Honor", "Ignore"]),
];

fn min_domains(constraint: &Field<'_>, errors: &mut Errors) {
    let domains = constraint.get("minDomains");
    let Some(number) = domains.int() else { return };
    if number <= 0 {
        errors.push(domains.invalid("must be greater than zero"));
    }
    let action = constraint.str("whenUnsatisfiable");
    if action != "DoNotSchedule" {
        let words =
            format!("can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {action}");
        errors.push(domains.invalid(words));
    }
}

fn check_label_keys(constraint: &Field<'_>, errors: &mut Errors) {
    let list = constraint.get("matchLabelKeys");
    if list.is_empty() {
        return;
    }
    if !constraint.has("labelSelector") {
        return errors.push(list.forbidden("must not be specified when labelSelector is not set"));
    }
    for key in constraint.items("matchLabelKeys") {
        key.all_invalid(names::qualified_name(key.text()), errors);
    }
    // Upstream leaves the list out of this path.
    affinity::check_merged_keys(constraint, &constraint.path(), errors);
}
