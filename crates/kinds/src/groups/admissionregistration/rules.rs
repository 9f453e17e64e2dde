//! Rules that webhooks and policies share: the rules that match requests, and match conditions.
//!
//! Expressions are not parsed here: `pintle-admission` adds the errors of CEL.

use std::collections::BTreeSet;

use pintle_meta::{field::Error, names};

use crate::{
    field::{Errors, Field},
    rules::{
        Rule::{Do, OneOf},
        Rules, check, required,
    },
};

pub(super) const FAILURE_POLICIES: &[&str] = &["Fail", "Ignore"];
pub(super) const MATCH_POLICIES: &[&str] = &["Equivalent", "Exact"];
const OPERATIONS: &[&str] = &["*", "CONNECT", "CREATE", "DELETE", "UPDATE"];
const CONDITIONS_MAX: usize = 64;

/// The rules for a RuleWithOperations.
pub(super) const RULE: Rules = &[
    Do(|rule, errors| stars(rule, "operations", "operations", errors)),
    Do(|rule, errors| {
        for operation in rule.items("operations") {
            if !OPERATIONS.contains(&operation.text()) {
                errors.push(operation.not_supported(OPERATIONS));
            }
        }
    }),
    Do(|rule, errors| stars(rule, "apiGroups", "API groups", errors)),
    Do(|rule, errors| stars(rule, "apiVersions", "API versions", errors)),
    Do(|rule, errors| {
        rule.items("apiVersions").for_each(|version| required(&version, "", errors));
    }),
    Do(check_resources),
    OneOf("scope", &["*", "Cluster", "Namespaced"]),
];

/// Checks a list that must not be empty, and in which `*` must be alone.
fn stars(rule: &Field<'_>, list: &str, what: &str, errors: &mut Errors) {
    let field = rule.get(list);
    required(&field, "", errors);
    let has_star = rule.items(list).any(|item| item.text() == "*");
    if has_star && rule.items(list).len() > 1 {
        let words = format!("if '*' is present, must not specify other {what}");
        errors.push(field.invalid(words));
    }
}

/// Checks resources and subresources such as `pods`, `pods/log`, `pods/*`, `*/scale`, `*`, `*/*`.
fn check_resources(rule: &Field<'_>, errors: &mut Errors) {
    let list = rule.get("resources");
    required(&list, "", errors);
    let (mut all_of, mut every) = (BTreeSet::new(), BTreeSet::new());
    let mut last_is_plain = false;
    for resource in rule.items("resources") {
        let text = resource.text();
        if text.is_empty() {
            errors.push(resource.required(""));
            continue;
        }
        let Some((name, sub)) = text.split_once('/') else {
            last_is_plain = text != "*";
            continue;
        };
        if all_of.contains(name) {
            let words = format!("if '{name}/*' is present, must not specify {text}");
            errors.push(resource.invalid(words));
        }
        if every.contains(sub) {
            let words = format!("if '*/{sub}' is present, must not specify {text}");
            errors.push(resource.invalid(words));
        }
        if sub == "*" {
            all_of.insert(name.to_owned());
        }
        if name == "*" {
            every.insert(sub.to_owned());
        }
    }
    let has = |wanted: &str| rule.items("resources").any(|resource| resource.text() == wanted);
    if has("*/*") && rule.items("resources").len() > 1 {
        errors.push(list.invalid("if '*/*' is present, must not specify other resources"));
    }
    if has("*") && last_is_plain {
        let words = "if '*' is present, must not specify other resources without subresources";
        errors.push(list.invalid(words));
    }
}

/// Checks the MatchResources of policies and bindings.
pub(super) fn check_match(field: &Field<'_>, errors: &mut Errors) {
    check(field, &[OneOf("matchPolicy", MATCH_POLICIES)], errors);
    for member in ["namespaceSelector", "objectSelector"] {
        let selector = field.get(member);
        if selector.is_set() {
            let wrong = pintle_meta::validation::label_selector(selector.value(), &selector.path());
            errors.extend(wrong);
        } else {
            errors.push(selector.required(""));
        }
    }
    for list in ["resourceRules", "excludeResourceRules"] {
        for rule in field.items(list) {
            let mut seen = BTreeSet::new();
            for name in rule.items("resourceNames") {
                name.all_invalid(names::path_segment(name.text()), errors);
                if !seen.insert(name.text().to_owned()) {
                    errors.push(name.duplicate());
                }
            }
            check(&rule, RULE, errors);
        }
    }
}

/// Checks the match conditions of webhooks and policies.
pub(super) fn check_conditions(holder: &Field<'_>, errors: &mut Errors) {
    let list = holder.get("matchConditions");
    let count = holder.items("matchConditions").len();
    if count > CONDITIONS_MAX {
        errors.push(Error::too_many(&list.path(), count, CONDITIONS_MAX));
    }
    let mut seen = BTreeSet::new();
    for condition in holder.items("matchConditions") {
        let (expression, name) = (condition.get("expression"), condition.get("name"));
        if expression.text().trim().is_empty() {
            errors.push(expression.required(""));
        }
        if name.is_empty() {
            errors.push(name.required(""));
            continue;
        }
        name.all_invalid(names::qualified_name(name.text()), errors);
        if !seen.insert(name.text().to_owned()) {
            errors.push(name.duplicate());
        }
    }
}
