//! The rules for the requests of claims, in upstream's order.

use std::collections::{BTreeMap, BTreeSet};

use pintle_meta::{field::Error, names, validation};
use pintle_value::Value;

use super::{expressions::Selectors, named};
use crate::{
    checks::{IMMUTABLE, frozen, items, path, unchanged},
    field::{Errors, Field},
    pods,
    rules::{
        Rule::{Formatted, OneOf},
        check,
    },
};

/// The effects of taints on pods.
pub(super) const EFFECTS: &[&str] = &["NoExecute", "NoSchedule", "None"];

const REQUESTS_MAX: usize = 32;
const ALTERNATIVES_MAX: usize = 8;
const CONSTRAINTS_MAX: usize = 32;
const CONFIGS_MAX: usize = 32;
const PARAMETERS_LENGTH_MAX: usize = 10 * 1024;

/// Validates the spec of a new claim.
pub(super) fn validate(spec: &Field<'_>) -> Errors {
    let mut errors = Errors::new();
    check_devices(&spec.get("devices"), &mut errors);
    errors
}

/// Validates the spec of a template: the metadata and the spec of a claim.
pub(super) fn validate_template(spec: &Field<'_>) -> Errors {
    let metadata = spec.get("metadata");
    let at = |member| metadata.get(member).path();
    let mut errors = validation::annotations(Some(metadata.map("annotations")), &at("annotations"));
    errors.extend(validation::labels(Some(metadata.map("labels")), &at("labels")));
    pods::check_claim_metadata(&metadata, &mut errors);
    errors.extend(validate(&spec.get("spec")));
    errors
}

/// The names of requests, and of the alternatives within each.
pub(super) struct Requests<'a>(BTreeMap<&'a str, BTreeSet<&'a str>>);

impl<'a> Requests<'a> {
    /// The names in a claim's `devices`.
    pub(super) fn of(devices: &'a Value) -> Self {
        let list = |holder: &'a Value, member: &str| {
            holder.get(member).and_then(Value::as_array).unwrap_or_default()
        };
        let name = |holder: &'a Value| holder.str_at(&["name"]).unwrap_or_default();
        let requests = list(devices, "requests").iter();
        let alternatives = |request| list(request, "firstAvailable").iter().map(name).collect();
        Self(requests.map(|request| (name(request), alternatives(request))).collect())
    }

    fn has(&self, name: &str) -> bool {
        match name.split_once('/') {
            None => self.0.contains_key(name),
            Some((request, alternative)) => {
                self.0.get(request).is_some_and(|names| names.contains(alternative))
            }
        }
    }

    /// Checks the name of a request, or of an alternative within one.
    pub(super) fn check(&self, field: &Field<'_>, errors: &mut Errors) {
        const WORDS: &str = "must be the name of a request in the claim or the name of a request \
                             and a subrequest separated by '/'";
        let name = field.text();
        if name.split('/').count() > 2 {
            return errors.push(field.invalid_as(name, WORDS));
        }
        for part in name.split('/') {
            field.all_invalid_as(part, names::dns1123_label(part), errors);
        }
        if !self.has(name) {
            errors.push(field.invalid_as(name, WORDS));
        }
    }

    /// Checks the list of requests that a constraint or a configuration is about.
    pub(super) fn check_all(&self, holder: &Field<'_>, errors: &mut Errors) {
        let mut check = |name: &Field<'_>, errors: &mut Errors| self.check(name, errors);
        named::each_of_set(holder, "requests", (REQUESTS_MAX, ""), errors, &mut check);
    }
}

/// Checks that the spec is unchanged; `devices` is the path of its requests. As in Go, requirements
/// of capacity without requests are not equal to absent ones.
pub(super) fn spec_unchanged(new: &Value, old: Option<&Value>, devices: &[&str]) -> Errors {
    let errors = unchanged(new, old, &[frozen(&["spec"])]);
    let Some(old) = old.filter(|_| errors.is_empty()) else { return errors };
    let has_capacity = |request: &Value| request.get("capacity").is_some_and(|it| !it.is_null());
    let capacities = |object: &Value| -> Vec<bool> {
        let devices = object.at(devices).unwrap_or(&Value::Null);
        let requests = items(devices, &["requests"]).iter();
        let wanted = |request| {
            let alternatives = items(request, &["firstAvailable"]).iter();
            alternatives.chain(request.get("exactly"))
        };
        requests.flat_map(wanted).map(has_capacity).collect()
    };
    if capacities(new) == capacities(old) {
        return errors;
    }
    Error::invalid(&path(&["spec"]), new.get("spec").unwrap_or(&Value::Null), IMMUTABLE).into()
}

fn check_devices(devices: &Field<'_>, errors: &mut Errors) {
    let requests = Requests::of(devices.value());
    let mut selectors = Selectors::new();
    let mut check =
        |request: &Field<'_>, errors: &mut Errors| check_request(request, &mut selectors, errors);
    named::each_of_set(devices, "requests", (REQUESTS_MAX, "name"), errors, &mut check);
    named::each(devices, "constraints", CONSTRAINTS_MAX, errors, &mut |constraint, errors| {
        requests.check_all(constraint, errors);
        check_constraint(constraint, errors);
    });
    named::each(devices, "config", CONFIGS_MAX, errors, &mut |config, errors| {
        requests.check_all(config, errors);
        check_config(config, errors);
    });
}

fn check_request(request: &Field<'_>, selectors: &mut Selectors, errors: &mut Errors) {
    const ONE_OF: &str = "exactly one of `exactly` or `firstAvailable` is required";
    named::label(&request.get("name"), errors);
    let has_alternatives = !request.get("firstAvailable").is_empty();
    match (request.find("exactly"), has_alternatives) {
        (None, false) => errors.push(request.required(ONE_OF)),
        (Some(_), true) => {
            let words = format!("{ONE_OF}, but multiple fields are set");
            errors.push(request.invalid_as(Value::Null, words));
        }
        (None, true) => {
            let bounds = (ALTERNATIVES_MAX, "name");
            let check = &mut |alternative: &Field<'_>, errors: &mut Errors| {
                named::label(&alternative.get("name"), errors);
                check_wanted(alternative, selectors, errors);
            };
            named::each_of_set(request, "firstAvailable", bounds, errors, check);
        }
        (Some(exactly), false) => check_wanted(&exactly, selectors, errors),
    }
}

/// Checks a device request, exact or an alternative.
fn check_wanted(wanted: &Field<'_>, selectors: &mut Selectors, errors: &mut Errors) {
    let class = wanted.get("deviceClassName");
    if class.is_empty() {
        errors.push(class.required(""));
    } else {
        class.all_invalid(names::dns1123_subdomain(class.text()), errors);
    }
    selectors.check(wanted, errors);
    let (mode, count) = (wanted.get("allocationMode"), wanted.get("count"));
    let number = count.int().unwrap_or(0);
    match mode.text() {
        "All" if number != 0 => {
            let words = "must not be specified when allocationMode is 'All'";
            errors.push(count.invalid(words));
        }
        "ExactCount" if number <= 0 => {
            errors.push(count.invalid_as(number, "must be greater than zero"));
        }
        "All" | "ExactCount" => {}
        _ => errors.push(mode.not_supported(&["All", "ExactCount"])),
    }
    wanted.items("tolerations").for_each(|toleration| check_toleration(&toleration, errors));
}

/// Checks a toleration of device taints.
pub(super) fn check_toleration(toleration: &Field<'_>, errors: &mut Errors) {
    let (value, operator) = (toleration.get("value"), toleration.get("operator"));
    check(toleration, &[Formatted("key", names::qualified_name)], errors);
    match operator.text() {
        "Exists" if !value.is_empty() => {
            errors.push(value.invalid("must be empty for operator `Exists`"));
        }
        "Exists" => {}
        "Equal" => value.all_invalid(names::label_value(value.text()), errors),
        "" => errors.push(operator.required("")),
        _ => errors.push(operator.not_supported(&["Equal", "Exists"])),
    }
    if !toleration.get("effect").is_empty() {
        check(toleration, &[OneOf("effect", EFFECTS)], errors);
    }
}

fn check_constraint(constraint: &Field<'_>, errors: &mut Errors) {
    let found = ["matchAttribute", "distinctAttribute"].into_iter().find(|m| constraint.has(m));
    match found {
        Some(member) => named::fully_qualified(&constraint.get(member), errors),
        None => {
            let words = "exactly one of \"matchAttribute\" or \"distinctAttribute\" is required, \
                         but multiple fields are set";
            errors.push(constraint.required(words));
        }
    }
}

/// Checks the opaque configuration for a driver.
pub(super) fn check_config(config: &Field<'_>, errors: &mut Errors) {
    let Some(opaque) = config.find("opaque") else {
        return errors.push(config.get("opaque").required(""));
    };
    named::driver(&opaque.get("driver"), errors);
    check_raw(&opaque.get("parameters"), PARAMETERS_LENGTH_MAX, errors);
}

/// Checks that a value is an object, with any members, whose JSON is not too long.
pub(super) fn check_raw(raw: &Field<'_>, length_max: usize, errors: &mut Errors) {
    match raw.value() {
        Value::Null => errors.push(raw.required("")),
        Value::Object(_) => {
            if pintle_value::json::to_string(raw.value()).len() > length_max {
                errors.push(Error::too_long(&raw.path(), length_max));
            }
        }
        _ => errors.push(raw.invalid_as("<value omitted>", "must be a valid JSON object")),
    }
}
