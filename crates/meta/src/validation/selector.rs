//! The rules for a `metav1.LabelSelector` in an object.

use pintle_value::{Path, Value};

use super::{all_invalid, labels};
use crate::{field::Error, names};

/// What is wrong with a label selector.
pub fn label_selector(selector: &Value, path: &Path) -> Vec<Error> {
    let match_labels = selector.get("matchLabels").and_then(Value::as_object);
    let mut errors = labels(match_labels, &path.field("matchLabels"));
    let expressions = selector.get("matchExpressions").and_then(Value::as_array);
    for (i, expression) in expressions.unwrap_or_default().iter().enumerate() {
        requirement(&mut errors, expression, &path.field("matchExpressions").index(i));
    }
    errors
}

fn requirement(errors: &mut Vec<Error>, expression: &Value, path: &Path) {
    let text = |member: &str| expression.str_at(&[member]).unwrap_or_default();
    let values = expression.get("values").and_then(Value::as_array).unwrap_or_default();
    let at = path.field("values");
    match (text("operator"), values.is_empty()) {
        ("In" | "NotIn", true) => {
            const DETAIL: &str = "must be specified when `operator` is 'In' or 'NotIn'";
            errors.push(Error::required(&at, DETAIL));
        }
        ("Exists" | "DoesNotExist", false) => {
            const DETAIL: &str =
                "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";
            errors.push(Error::forbidden(&at, DETAIL));
        }
        ("In" | "NotIn", false) | ("Exists" | "DoesNotExist", true) => {}
        (other, _) => {
            const DETAIL: &str = "not a valid selector operator";
            errors.push(Error::invalid(&path.field("operator"), &other.into(), DETAIL));
        }
    }
    let key = text("key");
    all_invalid(errors, &path.field("key"), key, names::qualified_name(key));
    for (i, value) in values.iter().enumerate() {
        let value = value.as_str().unwrap_or_default();
        all_invalid(errors, &at.index(i), value, names::label_value(value));
    }
}
