//! The request policies of shared device capacities.

use std::collections::BTreeSet;

use pintle_meta::quantity::Quantity;
use pintle_value::Value;

use super::named;
use crate::{
    amounts,
    field::{Errors, Field},
};

const VALUES_MAX: usize = 10;

/// Checks the policy of a capacity: either listed values or a range, which must contain the
/// default.
pub(super) fn check_policy(capacity: &Field<'_>, policy: &Field<'_>, errors: &mut Errors) {
    let (values, range) = (policy.get("validValues"), policy.get("validRange"));
    if !values.is_empty() && range.is_set() {
        let words = "exactly one policy can be specified, cannot specify \"validValues\" and \
                     \"validRange\" at the same time";
        return errors.push(policy.forbidden(words));
    }
    let kind = match (values.is_empty(), range.is_set()) {
        (false, _) => "validValues",
        (true, true) => "validRange",
        (true, false) => return,
    };
    let default = policy.get("default");
    let Some(usual) = amounts::parse(&default) else {
        return errors.push(default.required(&format!("required when {kind} is defined")));
    };
    let Some(most) = amounts::parse(capacity) else { return };
    match kind {
        "validValues" => check_values(policy, &usual, &most, errors),
        _ => check_range(&range, &usual, &most, errors),
    }
}

fn check_values(policy: &Field<'_>, usual: &Quantity, most: &Quantity, errors: &mut Errors) {
    let values = policy.get("validValues");
    let amounts: Vec<Option<Quantity>> =
        policy.items("validValues").map(|value| amounts::parse(&value)).collect();
    for (field, pair) in policy.items("validValues").skip(1).zip(amounts.windows(2)) {
        if pair[0] > pair[1] {
            errors.push(field.invalid("values must be sorted in ascending order"));
        }
    }
    named::each(policy, "validValues", VALUES_MAX, errors, &mut |field, errors| {
        if amounts::parse(field).is_some_and(|amount| amount > *most) {
            errors.push(field.invalid(format!("option is larger than capacity value: {most}")));
        }
    });
    let mut seen = BTreeSet::new();
    for (field, amount) in policy.items("validValues").zip(&amounts) {
        if !seen.insert(amount) {
            errors.push(field.duplicate());
        }
    }
    if !amounts.iter().flatten().any(|amount| amount == usual) {
        let words = "default value is not valid according to the requestPolicy";
        errors.push(values.invalid_as(usual.to_string(), words));
    }
}

fn check_range(range: &Field<'_>, usual: &Quantity, most: &Quantity, errors: &mut Errors) {
    let (min, max, step) = (range.get("min"), range.get("max"), range.get("step"));
    let Some(least) = amounts::parse(&min) else {
        return errors.push(min.required("required when validRange is defined"));
    };
    let of_usual = Value::from(usual.to_string());
    let default = range.get("default");
    let default = default.of(&of_usual);
    if least > *most {
        errors.push(min.invalid(format!("min is larger than capacity value: {most}")));
    }
    if *usual < least {
        errors.push(default.invalid(format!("default is less than min: {least}")));
    }
    let greatest = amounts::parse(&max);
    if let Some(greatest) = &greatest {
        if least > *greatest {
            let words = format!("min is larger than max: {greatest}");
            errors.push(max.invalid_as(least.to_string(), words));
        }
        if greatest > most {
            errors.push(max.invalid(format!("max is larger than capacity value: {most}")));
        }
        if usual > greatest {
            errors.push(default.invalid(format!("default is more than max: {greatest}")));
        }
    }
    let Some(one) = amounts::parse(&step) else { return };
    if one.signum() <= 0 {
        return errors.push(step.invalid("must be greater than zero"));
    }
    let next = least + one;
    if next > *most {
        let words = format!("one step {next} is larger than capacity value: {most}");
        errors.push(step.invalid(words));
    }
    for amount in [Some(usual), greatest.as_ref()].into_iter().flatten() {
        let distance = amount.value().checked_sub(least.value());
        let is_reached = distance.and_then(|d| d.checked_rem(one.value())).is_none_or(|r| r == 0);
        if !is_reached {
            let words = format!("value is not a multiple of a given step ({one}) from ({least})");
            errors.push(step.invalid_as(amount.to_string(), words));
        }
    }
}
