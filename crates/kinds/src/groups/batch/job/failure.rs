//! The pod failure policy of a job.

use std::collections::BTreeSet;

use pintle_meta::{field::Error, names};

use crate::field::{Errors, Field};

const RULES_MAX: usize = 20;
const PATTERNS_MAX: usize = 20;
const EXIT_CODES_MAX: usize = 255;

/// The message for a missing choice, with the possible values.
fn valid_values(values: &[&str]) -> String {
    let quoted: Vec<String> = values.iter().map(|value| format!("{value:?}")).collect();
    format!("valid values: [{}]", quoted.join(" "))
}

fn check_choice(field: &Field<'_>, allowed: &[&str], errors: &mut Errors) {
    if field.is_empty() {
        errors.push(field.required(&valid_values(allowed)));
    } else if !allowed.contains(&field.text()) {
        errors.push(field.not_supported(allowed));
    }
}

/// Checks `podFailurePolicy`.
pub(super) fn check_policy(spec: &Field<'_>, errors: &mut Errors) {
    let Some(policy) = spec.find("podFailurePolicy") else { return };
    let rules = policy.items("rules");
    if rules.len() > RULES_MAX {
        errors.push(Error::too_many(&policy.get("rules").path(), rules.len(), RULES_MAX));
    }
    let pod = spec.at(&["template", "spec"]);
    let names: BTreeSet<&str> = ["containers", "initContainers"]
        .iter()
        .flat_map(|list| pod.items(list).map(|container| container.str("name")))
        .collect();
    for rule in rules {
        check_rule(spec, &names, &rule, errors);
    }
}

/// `names` are those of the containers in the template.
fn check_rule(spec: &Field<'_>, names: &BTreeSet<&str>, rule: &Field<'_>, errors: &mut Errors) {
    let action = rule.get("action");
    if action.text() == "FailIndex" && !spec.has("backoffLimitPerIndex") {
        errors.push(action.invalid("requires the backoffLimitPerIndex to be set"));
    }
    check_choice(&action, &["Count", "FailIndex", "FailJob", "Ignore"], errors);
    let conditions = rule.get("onPodConditions");
    if let Some(codes) = rule.find("onExitCodes") {
        check_exit_codes(names, &codes, errors);
    }
    check_conditions(rule, errors);
    let words = match (rule.has("onExitCodes"), !conditions.is_empty()) {
        (true, true) => "specifying both OnExitCodes and OnPodConditions is not supported",
        (false, false) => "specifying one of OnExitCodes and OnPodConditions is required",
        _ => return,
    };
    errors.push(rule.invalid_without_value(words));
}

fn check_conditions(rule: &Field<'_>, errors: &mut Errors) {
    let patterns = rule.items("onPodConditions");
    if patterns.len() > PATTERNS_MAX {
        let path = rule.get("onPodConditions").path();
        errors.push(Error::too_many(&path, patterns.len(), PATTERNS_MAX));
    }
    for pattern in patterns {
        let kind = pattern.get("type");
        kind.all_invalid(names::qualified_name(kind.text()), errors);
        check_choice(&pattern.get("status"), &["False", "True", "Unknown"], errors);
    }
}

fn check_exit_codes(names: &BTreeSet<&str>, codes: &Field<'_>, errors: &mut Errors) {
    check_choice(&codes.get("operator"), &["In", "NotIn"], errors);
    let name = codes.get("containerName");
    if name.is_set() && !names.contains(name.text()) {
        let words = "must be one of the container or initContainer names in the pod template";
        errors.push(name.invalid(words));
    }
    let (list, values) = (codes.get("values"), codes.items("values"));
    match values.len() {
        0 => errors.push(list.invalid("at least one value is required")),
        count if count > EXIT_CODES_MAX => {
            errors.push(Error::too_many(&list.path(), count, EXIT_CODES_MAX));
        }
        _ => {}
    }
    let mut seen = BTreeSet::new();
    let (mut last, mut is_ordered) = (i64::MIN, true);
    for value in values {
        let code = value.int().unwrap_or(0);
        if code == 0 && codes.str("operator") == "In" {
            errors.push(value.invalid("must not be 0 for the In operator"));
        }
        if !seen.insert(code) {
            errors.push(value.duplicate());
        }
        is_ordered &= last <= code;
        last = code;
    }
    if !is_ordered {
        errors.push(list.invalid("must be ordered"));
    }
}
