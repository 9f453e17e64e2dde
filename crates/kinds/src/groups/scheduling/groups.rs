//! Pod groups and workloads, which are off by default. The table of types has the declared rules;
//! fields of disabled features are dropped.

use std::collections::BTreeSet;

use pintle_meta::field::Error;
use pintle_value::Value;

use crate::{
    checks::{frozen, same, unchanged},
    conditions,
    field::{Errors, Field},
    strategy::{AS_UPDATE, PLAIN, Part, STATUS_ALONE, Strategy, WITH_STATUS, part},
};

const TEMPLATES_MAX: usize = 8;

pub(super) const POD_GROUP: Strategy = Strategy {
    metadata: AS_UPDATE,
    owned: STATUS_ALONE,
    prepare_create: |group| drop_disabled(group.get_mut("spec"), None),
    prepare_update: |new, old| drop_disabled(new.get_mut("spec"), old.get("spec")),
    validate: |new, old| {
        let mut errors = Errors::new();
        let group = Field::root(new);
        check_policy(&group.at(&["spec", "schedulingPolicy"]), &mut errors);
        errors.extend(unchanged(new, old, &[frozen(&["spec", "schedulingPolicy"])]));
        errors
    },
    parts: &[Part { validate: |new, _| check_status(&Field::root(new)), ..part("status") }],
    ..WITH_STATUS
};

pub(super) const WORKLOAD: Strategy = Strategy {
    metadata: AS_UPDATE,
    prepare_create: |workload| drop_of_templates(workload, None),
    prepare_update: |new, old| drop_of_templates(new, Some(old)),
    validate: |new, old| match old {
        None => {
            let mut errors = Errors::new();
            check_templates(&Field::root(new).get("spec"), &mut errors);
            errors
        }
        Some(_) => unchanged(new, old, &[frozen(&["spec", "podGroupTemplates"])]),
    },
    ..PLAIN
};

/// Members of specs and templates that belong to features that are off.
const DISABLED: &[&str] =
    &["schedulingConstraints", "resourceClaims", "disruptionMode", "priorityClassName", "priority"];

fn drop_disabled(spec: Option<&mut Value>, stored: Option<&Value>) {
    if let Some(members) = spec.and_then(Value::as_object_mut) {
        let is_used = |member: &str| stored.is_some_and(|old| !same(old.get(member), None));
        members.retain(|member, _| {
            let member = member.as_str();
            !DISABLED.contains(&member) || is_used(member)
        });
    }
}

fn drop_of_templates(workload: &mut Value, old: Option<&Value>) {
    let stored = |i: usize| {
        old?.at(&["spec", "podGroupTemplates"])?.as_array().and_then(|templates| templates.get(i))
    };
    let templates = workload.get_mut("spec").and_then(|spec| spec.get_mut("podGroupTemplates"));
    let templates = templates.and_then(Value::as_array_mut).into_iter().flatten();
    for (i, template) in templates.enumerate() {
        drop_disabled(Some(template), stored(i));
    }
}

/// Checks that exactly one policy is set.
fn check_policy(policy: &Field<'_>, errors: &mut Errors) {
    let has = |member| policy.has(member);
    match (has("basic"), has("gang")) {
        (false, false) => {
            errors.push(policy.invalid_as("", "must specify one of: `basic`, `gang`"));
        }
        (true, true) => {
            let words = "must specify exactly one of: `basic`, `gang`";
            errors.push(policy.invalid_as("{`basic`, `gang`}", words));
        }
        _ => {}
    }
}

fn check_templates(spec: &Field<'_>, errors: &mut Errors) {
    let list = spec.get("podGroupTemplates");
    let count = spec.items("podGroupTemplates").len();
    match count {
        0 => return errors.push(list.required("")),
        1..=TEMPLATES_MAX => {}
        _ => return errors.push(Error::too_many(&list.path(), count, TEMPLATES_MAX)),
    }
    let mut seen = BTreeSet::new();
    for template in spec.items("podGroupTemplates") {
        check_policy(&template.get("schedulingPolicy"), errors);
        if !seen.insert(template.str("name").to_owned()) {
            errors.push(template.duplicate());
        }
    }
}

fn check_status(group: &Field<'_>) -> Errors {
    let mut errors = Errors::new();
    let status = group.get("status");
    conditions::check(&status, &mut errors);
    let spec = group.get("spec");
    let known: BTreeSet<&str> = spec.items("resourceClaims").map(|one| one.str("name")).collect();
    for claim in status.items("resourceClaimStatuses") {
        let name = claim.get("name");
        if !known.contains(name.text()) {
            let words = "must match the name of an entry in `spec.resourceClaims`";
            errors.push(name.invalid(words));
        }
    }
    errors
}
