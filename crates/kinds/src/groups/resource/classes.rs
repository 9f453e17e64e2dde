//! The rules for classes of devices and for rules that taint devices, in upstream's order.

use pintle_meta::{field::Error, names};
use pintle_value::Value;

use super::{
    claims::{EFFECTS, check_config},
    expressions::Selectors,
    named,
};
use crate::{
    amounts,
    checks::same,
    conditions,
    field::{Errors, Field},
    rules::{Rule::Do, Rules, check, choice},
};

const CONFIGS_MAX: usize = 32;
const CONDITIONS_MAX: usize = 8;

/// Validates a class. Unchanged selectors and configurations are not checked again.
pub(super) fn validate(new: &Value, old: Option<&Value>) -> Errors {
    let mut errors = Errors::new();
    let class = Field::root(new);
    let spec = class.get("spec");
    let is_new = |member: &str| {
        old.is_none_or(|old| !same(spec.value().get(member), old.at(&["spec", member])))
    };
    if is_new("selectors") {
        Selectors::new().check(&spec, &mut errors);
    }
    if is_new("config") {
        named::each(&spec, "config", CONFIGS_MAX, &mut errors, &mut check_config);
    }
    if let Some(name) = spec.find("extendedResourceName")
        && !amounts::is_extended(name.text())
    {
        errors.push(name.invalid("must be a valid extended resource name"));
    }
    errors
}

/// Validates a rule that taints devices.
pub(super) fn validate_taint_rule(rule: &Field<'_>, old: Option<&Value>) -> Errors {
    let mut errors = Errors::new();
    let spec = rule.get("spec");
    let selector = spec.get("deviceSelector");
    check(&selector, SELECTOR, &mut errors);
    check_taint(&spec.get("taint"), old.and_then(|old| old.at(&["spec", "taint"])), &mut errors);
    errors
}

const SELECTOR: Rules = &[
    Do(|selector, errors| if_set(selector, "driver", named::driver, errors)),
    Do(|selector, errors| if_set(selector, "pool", named::pool, errors)),
    Do(|selector, errors| if_set(selector, "device", named::label, errors)),
];

fn if_set(
    holder: &Field<'_>,
    member: &str,
    check: fn(&Field<'_>, &mut Errors),
    errors: &mut Errors,
) {
    if let Some(field) = holder.find(member) {
        check(&field, errors);
    }
}

/// Checks a taint; an unchanged effect is accepted.
pub(super) fn check_taint(taint: &Field<'_>, old: Option<&Value>, errors: &mut Errors) {
    let (key, value, effect) = (taint.get("key"), taint.get("value"), taint.get("effect"));
    key.all_invalid(names::qualified_name(key.text()), errors);
    if !value.is_empty() {
        value.all_invalid(names::label_value(value.text()), errors);
    }
    if old.is_some_and(|old| old.get("effect") == effect.some()) {
        return;
    }
    choice(&effect, EFFECTS, errors);
}

/// Validates the status of a rule that taints devices.
pub(super) fn validate_taint_status(rule: &Value) -> Errors {
    let mut errors = Errors::new();
    let rule = Field::root(rule);
    let status = rule.get("status");
    conditions::check(&status, &mut errors);
    let count = status.items("conditions").len();
    if count > CONDITIONS_MAX {
        let path = status.get("conditions").path();
        errors.push(Error::too_many(&path, count, CONDITIONS_MAX));
    }
    errors
}
