//! The annotations in which nodes once had their taints, and the pods that they avoid. Nothing reads
//! them, but upstream checks them.

use pintle_value::{Value, json};

use super::taints;
use crate::field::{Errors, Field};

const TAINTS: &str = "scheduler.alpha.kubernetes.io/taints";
const AVOIDED: &str = "scheduler.alpha.kubernetes.io/preferAvoidPods";

/// Checks a node's annotations.
pub(super) fn check(annotations: &Field<'_>, errors: &mut Errors) {
    let [taints, avoided] = [TAINTS, AVOIDED].map(|name| annotations.str(name));
    if !taints.is_empty() {
        match taints_in(taints) {
            Ok(taints) => {
                let read = Value::from([(TAINTS, taints)]);
                taints::check(&annotations.of(&read), TAINTS, errors);
            }
            Err(why) => errors.push(annotations.invalid_as(TAINTS, why)),
        }
    }
    if !avoided.is_empty() {
        match avoided_in(avoided) {
            Ok(avoided) => {
                let read = Value::from([(AVOIDED, avoided)]);
                let read = annotations.of(&read);
                read.items(AVOIDED).for_each(|entry| check_avoided(&entry, errors));
            }
            Err(why) => errors.push(annotations.get("AvoidPods").invalid_as(AVOIDED, why)),
        }
    }
}

/// Checks that an avoided pod is named by its controller.
fn check_avoided(entry: &Field<'_>, errors: &mut Errors) {
    let owner = entry.value().at(&["podSignature", "podController"]).unwrap_or(&Value::Null);
    let signature = entry.under("PodSignature");
    if owner.is_null() {
        errors.push(signature.required(""));
    } else if owner.get("controller").and_then(Value::as_bool) != Some(true) {
        let controller = signature.at(&["PodController", "Controller"]);
        errors.push(controller.invalid_as(false, "must point to a controller"));
    }
}

fn taints_in(text: &str) -> Result<Value, String> {
    match parsed(text)? {
        list @ (Value::Null | Value::Array(_)) => Ok(list),
        other => Err(mismatch(&other, "value of type []core.Taint")),
    }
}

fn avoided_in(text: &str) -> Result<Value, String> {
    let list = match parsed(text)? {
        list @ (Value::Null | Value::Object(_)) => list.get("preferAvoidPods").cloned(),
        other => return Err(mismatch(&other, "value of type v1.AvoidPods")),
    };
    match list.unwrap_or_default() {
        list @ (Value::Null | Value::Array(_)) => Ok(list),
        other => {
            let wanted = "struct field AvoidPods.preferAvoidPods of type []v1.PreferAvoidPodsEntry";
            Err(mismatch(&other, wanted))
        }
    }
}

fn parsed(text: &str) -> Result<Value, String> {
    json::parse(text.as_bytes()).map_err(|error| error.to_string())
}

/// The error text of Go's decoder for JSON of the wrong type.
fn mismatch(found: &Value, wanted: &str) -> String {
    format!("json: cannot unmarshal {} into Go {wanted}", found.type_name())
}
