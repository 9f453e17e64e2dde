//! The rules for admission policies and their bindings, in upstream's order.
//!
//! Expressions are not parsed here: `pintle-admission` adds the errors of CEL.

use std::collections::BTreeSet;

use pintle_meta::{names, object, validation};
use pintle_value::Value;

use super::rules::{FAILURE_POLICIES, check_conditions, check_match};
use crate::{
    field::{Errors, Field},
    rules::{Rule::OneOf, check, choice, required},
};

const ACTIONS: &[&str] = &["Audit", "Deny", "Warn"];
const REASONS: &[&str] = &["Forbidden", "Invalid", "RequestEntityTooLarge"];
const ANNOTATIONS_MAX: usize = 20;
const EXPRESSION_LENGTH_MAX: usize = 5 * 1024;
/// How much of a policy's name becomes part of the keys of its audit annotations.
const POLICY_BYTES_MAX: usize = 4096;

/// Validates a ValidatingAdmissionPolicy.
pub(super) fn validate_validating(policy: &Value) -> Errors {
    let mut errors = Errors::new();
    let name = object::name(policy);
    let policy = Field::root(policy);
    let spec = policy.get("spec");
    check_head(&spec, &mut errors);
    check_steps(&spec, &mut errors);
    let (validations, annotations) = (spec.get("validations"), spec.get("auditAnnotations"));
    if validations.is_empty() && annotations.is_empty() {
        let words = "validations or auditAnnotations must contain at least one item";
        errors.push(validations.required(words));
        errors.push(annotations.required(words));
        return errors;
    }
    spec.items("validations").for_each(|validation| check_validation(&validation, &mut errors));
    if spec.items("auditAnnotations").len() > ANNOTATIONS_MAX {
        let words = format!("must not have more than {ANNOTATIONS_MAX} auditAnnotations");
        errors.push(annotations.invalid(words));
    }
    let mut seen = BTreeSet::new();
    for annotation in spec.items("auditAnnotations") {
        // The name of the policy is part of each key, so keys are not checked in vain.
        if errors.is_full() {
            break;
        }
        check_annotation(&annotation, name, &mut errors);
        let key = annotation.get("key");
        if !seen.insert(key.text().to_owned()) {
            errors.push(key.duplicate());
        }
    }
    errors
}

/// Checks the warnings about expressions in a policy's status.
pub(super) fn check_type_checking(status: &Field<'_>, errors: &mut Errors) {
    for warning in status.get("typeChecking").items("expressionWarnings") {
        required(&warning.get("warning"), "", errors);
        let reference = warning.get("fieldRef");
        let path = reference.text().trim();
        if path.is_empty() {
            errors.push(reference.required(""));
        } else if !pintle_crd::is_json_path(path) {
            errors.push(reference.invalid_as(path, "invalid JSONPath"));
        }
    }
}

/// Validates a MutatingAdmissionPolicy.
pub(super) fn validate_mutating(policy: &Value) -> Errors {
    let mut errors = Errors::new();
    let policy = Field::root(policy);
    let spec = policy.get("spec");
    check_head(&spec, &mut errors);
    check_mutating(&spec.get("matchConstraints"), &mut errors);
    check_steps(&spec, &mut errors);
    let mutations = spec.get("mutations");
    required(&mutations, "mutations must contain at least one item", &mut errors);
    for mutation in spec.items("mutations") {
        check_mutation(&mutation, &mut errors);
    }
    choice(&spec.get("reinvocationPolicy"), &["IfNeeded", "Never"], &mut errors);
    errors
}

/// Checks that a mutating policy matches no deletions. Upstream's paths do not have the index of
/// the rule.
fn check_mutating(constraints: &Field<'_>, errors: &mut Errors) {
    const OPERATIONS: &[&str] = &["*", "CONNECT", "CREATE", "UPDATE"];
    let path = constraints.at(&["resourceRules", "operations"]);
    for rule in constraints.items("resourceRules") {
        for operation in rule.items("operations") {
            if !OPERATIONS.contains(&operation.text()) {
                errors.push(path.of(operation.value()).not_supported(OPERATIONS));
            }
        }
    }
}

/// Checks what both kinds of policies say about failures, parameters and matching resources.
fn check_head(spec: &Field<'_>, errors: &mut Errors) {
    check(spec, &[OneOf("failurePolicy", FAILURE_POLICIES)], errors);
    if let Some(kind) = spec.find("paramKind") {
        check_param_kind(&kind, errors);
    }
    let constraints = spec.get("matchConstraints");
    if constraints.is_set() {
        check_match(&constraints, errors);
        required(&constraints.get("resourceRules"), "", errors);
    } else {
        errors.push(constraints.required(""));
    }
}

/// Checks the conditions and variables, which both kinds of policies have.
fn check_steps(spec: &Field<'_>, errors: &mut Errors) {
    check_conditions(spec, errors);
    for variable in spec.items("variables") {
        let (name, expression) = (variable.get("name"), variable.get("expression"));
        if name.text().trim().is_empty() {
            errors.push(name.required("name is not specified"));
        } else if !is_identifier(name.text()) {
            errors.push(name.invalid("must be a valid CEL identifier"));
        }
        if expression.text().trim().is_empty() {
            errors.push(expression.required("expression is not specified"));
        }
    }
}

fn is_identifier(name: &str) -> bool {
    let inner = |b: u8| b.is_ascii_alphanumeric() || b == b'_';
    !name.starts_with(|c: char| c.is_ascii_digit())
        && name.bytes().all(inner)
        && !pintle_cel::is_reserved(name)
}

fn check_param_kind(field: &Field<'_>, errors: &mut Errors) {
    let (version, kind) = (field.get("apiVersion"), field.get("kind"));
    let parts: Vec<&str> = version.text().split('/').collect();
    let (group, name) = match parts.as_slice() {
        [name] => ("", *name),
        [group, name] => (*group, *name),
        _ => {
            let words = format!("unexpected GroupVersion string: {}", version.text());
            errors.push(version.invalid(words));
            ("", "v1")
        }
    };
    if version.is_empty() {
        errors.push(version.required(""));
    } else {
        let wrong = names::dns1123_subdomain(group);
        if !group.is_empty() && !wrong.is_empty() {
            errors.push(version.invalid_as(group, wrong.join(",")));
        }
        let wrong = names::dns1035_label(name);
        if name.is_empty() {
            errors.push(version.invalid("version must be specified"));
        } else if !wrong.is_empty() {
            errors.push(version.invalid_as(name, wrong.join(",")));
        }
    }
    let wrong = names::dns1035_label(&kind.text().to_lowercase());
    if kind.is_empty() {
        errors.push(kind.required(""));
    } else if !wrong.is_empty() {
        let words = "may have mixed case, but should otherwise match: ";
        errors.push(kind.invalid(format!("{words}{}", wrong.join(","))));
    }
}

fn check_validation(validation: &Field<'_>, errors: &mut Errors) {
    let expression = validation.get("expression");
    if expression.text().trim().is_empty() {
        errors.push(expression.required("expression is not specified"));
    }
    let is_blank = |field: &Field<'_>| !field.is_empty() && field.text().trim().is_empty();
    let (dynamic, message) = (validation.get("messageExpression"), validation.get("message"));
    if is_blank(&dynamic) {
        errors.push(dynamic.invalid("must be non-empty if specified"));
    }
    if is_blank(&message) {
        errors.push(message.invalid("must be non-empty if specified"));
    } else if message.text().trim().contains(['\n', '\r']) {
        errors.push(message.invalid("must not contain line breaks"));
    }
    check(validation, &[OneOf("reason", REASONS)], errors);
}

fn check_annotation(annotation: &Field<'_>, policy: &str, errors: &mut Errors) {
    let (key, value) = (annotation.get("key"), annotation.get("valueExpression"));
    if policy.is_empty() {
        errors.push(key.invalid("requires metadata.name be non-empty"));
    } else {
        // A policy with a longer name is refused for that.
        let policy = &policy[..policy.floor_char_boundary(POLICY_BYTES_MAX)];
        let name = format!("{policy}/{}", key.text());
        key.all_invalid_as(&name, names::qualified_name(&name), errors);
    }
    let length = value.text().trim().len();
    if length == 0 {
        errors.push(value.required("valueExpression is not specified"));
    } else if length > EXPRESSION_LENGTH_MAX {
        let words = format!("must not exceed {EXPRESSION_LENGTH_MAX} bytes in length");
        errors.push(value.required(&words));
    }
}

/// Checks a mutation: it has one of two forms.
fn check_mutation(mutation: &Field<'_>, errors: &mut Errors) {
    let kind = mutation.get("patchType");
    let (own, other) = match kind.text() {
        "ApplyConfiguration" => ("applyConfiguration", "jsonPatch"),
        "JSONPatch" => ("jsonPatch", "applyConfiguration"),
        _ => return choice(&kind, &["ApplyConfiguration", "JSONPatch"], errors),
    };
    let (own, other) = (mutation.get(own), mutation.get(other));
    if !own.is_set() {
        errors.push(own.required(&format!("must be specified when patchType is {}", kind.text())));
    } else if own.str("expression").trim().is_empty() {
        errors.push(own.get("expression").required(""));
    }
    if other.is_set() {
        let words = format!("must not be specified when patchType is {}", kind.text());
        let shown = if kind.text() == "JSONPatch" { "{applyConfiguration}" } else { "{jsonPatch}" };
        errors.push(other.invalid_as(shown, words));
    }
}

/// Validates a binding; bindings of validating policies have actions.
pub(super) fn validate_binding(binding: &Value, has_actions: bool) -> Errors {
    let mut errors = Errors::new();
    let binding = Field::root(binding);
    let spec = binding.get("spec");
    let policy = spec.get("policyName");
    if policy.is_empty() {
        errors.push(policy.required(""));
    } else {
        policy.all_invalid(names::dns1123_subdomain(policy.text()), &mut errors);
    }
    if let Some(reference) = spec.find("paramRef") {
        check_param_ref(&reference, &mut errors);
    }
    let resources = spec.get("matchResources");
    if resources.is_set() {
        check_match(&resources, &mut errors);
    }
    if has_actions {
        check_actions(&spec, &mut errors);
    } else {
        check_mutating(&resources, &mut errors);
    }
    errors
}

fn check_param_ref(reference: &Field<'_>, errors: &mut Errors) {
    const EXCLUSIVE: &str = "name and selector are mutually exclusive";
    let (name, selector) = (reference.get("name"), reference.get("selector"));
    if !name.is_empty() {
        name.all_invalid(names::path_segment(name.text()), errors);
        if selector.is_set() {
            errors.push(name.forbidden(EXCLUSIVE));
        }
    }
    if selector.is_set() {
        errors.extend(validation::label_selector(selector.value(), &selector.path()));
        if !name.is_empty() {
            errors.push(selector.forbidden(EXCLUSIVE));
        }
    } else if name.is_empty() {
        errors.push(reference.required("one of name or selector must be specified"));
    }
    choice(&reference.get("parameterNotFoundAction"), &["Deny", "Allow"], errors);
}

fn check_actions(spec: &Field<'_>, errors: &mut Errors) {
    let list = spec.get("validationActions");
    let mut seen = BTreeSet::new();
    for action in spec.items("validationActions") {
        if !ACTIONS.contains(&action.text()) {
            errors.push(action.not_supported(ACTIONS));
        }
        if !seen.insert(action.text().to_owned()) {
            errors.push(action.duplicate());
        }
    }
    if seen.contains("Deny") && seen.contains("Warn") {
        let words = "must not contain both Deny and Warn (repeating the same validation failure \
                     information in the API response and headers serves no purpose)";
        errors.push(list.invalid(words));
    }
    required(&list, "at least one validation action is required", errors);
}
