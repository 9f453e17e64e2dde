//! Validation of a `metav1.LabelSelector` in an object, and of single requirements.

use pintle_value::{Path, Value};

use super::{all_invalid, labels};
use crate::{
    field::{Error, Errors},
    names,
};

/// Validates a label selector.
pub fn label_selector(selector: &Value, path: &Path) -> Errors {
    let match_labels = selector.get("matchLabels").and_then(Value::as_object);
    let mut errors = labels(match_labels, &path.field("matchLabels"));
    let expressions = selector.get("matchExpressions").and_then(Value::as_array);
    for (i, expression) in expressions.unwrap_or_default().iter().enumerate() {
        let path = path.field("matchExpressions").index(i);
        known_operator(&mut errors, expression, &path);
        errors.extend(label_requirement(expression, &path));
    }
    errors
}

/// Validates a requirement on labels, except that an unknown operator is accepted.
pub fn label_requirement(requirement: &Value, path: &Path) -> Errors {
    let mut errors = Errors::new();
    values(&mut errors, requirement, path);
    let key = requirement.str_at(&["key"]).unwrap_or_default();
    all_invalid(&mut errors, &path.field("key"), key, names::qualified_name(key));
    let values = requirement.get("values").and_then(Value::as_array).unwrap_or_default();
    for (i, value) in values.iter().enumerate() {
        let value = value.as_str().unwrap_or_default();
        let path = path.field("values").index(i);
        all_invalid(&mut errors, &path, value, names::label_value(value));
    }
    errors
}

/// Validates a requirement on fields, except that an unknown operator is accepted.
pub fn field_requirement(requirement: &Value, path: &Path) -> Errors {
    let mut errors = Errors::new();
    if requirement.str_at(&["key"]).unwrap_or_default().is_empty() {
        errors.push(Error::required(&path.field("key"), "must be specified"));
    }
    values(&mut errors, requirement, path);
    errors
}

fn known_operator(errors: &mut Errors, requirement: &Value, path: &Path) {
    let operator = requirement.str_at(&["operator"]).unwrap_or_default();
    if !matches!(operator, "In" | "NotIn" | "Exists" | "DoesNotExist") {
        const DETAIL: &str = "not a valid selector operator";
        errors.push(Error::invalid(&path.field("operator"), &operator.into(), DETAIL));
    }
}

/// Validates the number of values for the operator.
fn values(errors: &mut Errors, requirement: &Value, path: &Path) {
    let operator = requirement.str_at(&["operator"]).unwrap_or_default();
    let values = requirement.get("values").and_then(Value::as_array).unwrap_or_default();
    let path = path.field("values");
    match (operator, values.is_empty()) {
        ("In" | "NotIn", true) => {
            const DETAIL: &str = "must be specified when `operator` is 'In' or 'NotIn'";
            errors.push(Error::required(&path, DETAIL));
        }
        ("Exists" | "DoesNotExist", false) => {
            const DETAIL: &str =
                "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";
            errors.push(Error::forbidden(&path, DETAIL));
        }
        _ => {}
    }
}
