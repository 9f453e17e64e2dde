//! Node affinity, pod affinity and anti-affinity.

use std::collections::{BTreeMap, BTreeSet};

use pintle_meta::{names, validation};

use super::Options;
use crate::field::{Errors, Field};

const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
const PREFERRED: &str = "preferredDuringSchedulingIgnoredDuringExecution";

/// Checks `affinity`.
pub(super) fn check_affinity(spec: &Field<'_>, options: Options, errors: &mut Errors) {
    let affinity = spec.get("affinity");
    if let Some(nodes) = affinity.find("nodeAffinity") {
        if let Some(selector) = nodes.find(REQUIRED) {
            check_node_selector(&selector, options.invalid_node_values, errors);
        }
        for term in nodes.items(PREFERRED) {
            check_weight(&term, errors);
            // Preferred terms may have values that no node can have.
            check_node_selector_term(&term.get("preference"), true, errors);
        }
    }
    for member in ["podAffinity", "podAntiAffinity"] {
        let pods = affinity.get(member);
        for term in pods.items(REQUIRED) {
            check_pod_term(&term, options, errors);
        }
        for term in pods.items(PREFERRED) {
            check_weight(&term, errors);
            check_pod_term(&term.get("podAffinityTerm"), options, errors);
        }
    }
}

fn check_weight(term: &Field<'_>, errors: &mut Errors) {
    let weight = term.get("weight");
    let number = weight.int().unwrap_or(0);
    if !(1..=100).contains(&number) {
        errors.push(weight.invalid_as(number, "must be in the range 1-100"));
    }
}

/// Checks a NodeSelector, wherever it is embedded.
pub(crate) fn check_node_selector(selector: &Field<'_>, any_values: bool, errors: &mut Errors) {
    let terms = selector.get("nodeSelectorTerms");
    if terms.is_empty() {
        errors.push(terms.required("must have at least one node selector term"));
    }
    for term in selector.items("nodeSelectorTerms") {
        check_node_selector_term(&term, any_values, errors);
    }
}

fn check_node_selector_term(term: &Field<'_>, any_values: bool, errors: &mut Errors) {
    for requirement in term.items("matchExpressions") {
        check_requirement(&requirement, any_values, errors);
    }
    for requirement in term.items("matchFields") {
        check_field_requirement(&requirement, errors);
    }
}

fn check_requirement(requirement: &Field<'_>, any_values: bool, errors: &mut Errors) {
    let (operator, values) = (requirement.get("operator"), requirement.get("values"));
    let count = requirement.items("values").len();
    match (operator.text(), count) {
        ("In" | "NotIn", 0) => {
            let words = "must be specified when `operator` is 'In' or 'NotIn'";
            errors.push(values.required(words));
        }
        ("Exists" | "DoesNotExist", 1..) => {
            let words = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";
            errors.push(values.forbidden(words));
        }
        ("Gt" | "Lt", 0 | 2..) => {
            let words = "must be specified single value when `operator` is 'Lt' or 'Gt'";
            errors.push(values.required(words));
        }
        ("In" | "NotIn" | "Exists" | "DoesNotExist" | "Gt" | "Lt", _) => {}
        (other, _) => errors.push(operator.invalid_as(other, "not a valid selector operator")),
    }
    let key = requirement.get("key");
    key.all_invalid(names::qualified_name(key.text()), errors);
    if !any_values {
        for value in requirement.items("values") {
            value.all_invalid(names::label_value(value.text()), errors);
        }
    }
}

fn check_field_requirement(requirement: &Field<'_>, errors: &mut Errors) {
    let (operator, key) = (requirement.get("operator"), requirement.get("key"));
    match operator.text() {
        "In" | "NotIn" => {
            if requirement.items("values").len() != 1 {
                let words = "must be only one value when `operator` is 'In' or 'NotIn' for node \
                             field selector";
                errors.push(requirement.get("values").required(words));
            }
        }
        other => errors.push(operator.invalid_as(other, "not a valid selector operator")),
    }
    if key.text() != "metadata.name" {
        errors.push(key.invalid_as(key.text(), "not a valid field selector key"));
        return;
    }
    for value in requirement.items("values") {
        value.all_invalid(names::dns1123_subdomain(value.text()), errors);
    }
}

fn check_pod_term(term: &Field<'_>, options: Options, errors: &mut Errors) {
    for selector in ["labelSelector", "namespaceSelector"].map(|member| term.get(member)) {
        if !options.invalid_affinity_selectors {
            errors.extend(validation::label_selector(selector.value(), &selector.path()));
        }
    }
    let namespace = term.get("namespace");
    for name in term.items("namespaces") {
        namespace.all_invalid_as(name.text(), names::dns1123_label(name.text()), errors);
    }
    check_label_keys(term, errors);
    let key = term.get("topologyKey");
    if key.is_empty() {
        errors.push(key.required("can not be empty"));
    }
    key.all_invalid(names::qualified_name(key.text()), errors);
}

/// Checks the keys of the pod's own labels whose values other pods must or must not have.
fn check_label_keys(term: &Field<'_>, errors: &mut Errors) {
    for member in ["matchLabelKeys", "mismatchLabelKeys"] {
        let list = term.get(member);
        if !list.is_empty() && !term.has("labelSelector") {
            errors.push(list.forbidden("must not be specified when labelSelector is not set"));
            continue;
        }
        for key in term.items(member) {
            key.all_invalid(names::qualified_name(key.text()), errors);
        }
    }
    // Upstream leaves the list out of this path.
    check_merged_keys(term, &term.path(), errors);
    let others: BTreeSet<&str> = term.items("mismatchLabelKeys").map(|key| key.text()).collect();
    for key in term.items("matchLabelKeys") {
        if others.contains(key.text()) {
            errors.push(key.invalid("exists in both matchLabelKeys and mismatchLabelKeys"));
        }
    }
}

/// A create merges keys into the selector: a key that the selector already has is an error.
pub(super) fn check_merged_keys(term: &Field<'_>, path: &pintle_value::Path, errors: &mut Errors) {
    let selector = term.get("labelSelector");
    let mut seen: BTreeSet<&str> =
        selector.map("matchLabels").keys().map(|key| key.as_str()).collect();
    let listed: BTreeMap<&str, usize> =
        term.items("matchLabelKeys").enumerate().map(|(i, key)| (key.text(), i)).collect();
    for expression in selector.items("matchExpressions") {
        let key = expression.str("key");
        if let Some(&i) = listed.get(key)
            && seen.contains(key)
        {
            let words = "exists in both matchLabelKeys and labelSelector";
            errors.push(pintle_meta::field::Error::invalid(&path.index(i), &key.into(), words));
        }
        seen.insert(key);
    }
}
