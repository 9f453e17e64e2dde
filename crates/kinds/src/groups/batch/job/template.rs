//! A job's template is immutable, except for scheduling directives and resources while the job is
//! suspended.

use pintle_value::Value;

use crate::{
    checks::IMMUTABLE,
    field::{Errors, Field},
};

/// Scheduling directives of the pods' spec. Upstream compares only the metadata that may change, so
/// metadata is not compared at all.
const DIRECTIVES: &[&[&str]] =
    &[&["spec", "nodeSelector"], &["spec", "tolerations"], &["spec", "schedulingGates"]];

/// Checks that only the mutable members of the template have changed.
pub(super) fn check_change(spec: &Field<'_>, old: &Value, errors: &mut Errors) {
    let template = spec.get("template");
    let mut allowed = old.at(&["spec", "template"]).cloned().unwrap_or_default();
    if !may_change(old) {
        if allowed != *template.value() {
            errors.push(template.invalid(IMMUTABLE));
        }
        return;
    }
    for path in DIRECTIVES {
        take(&mut allowed, template.value(), path);
    }
    take_node_affinity(&mut allowed, template.value());
    take_resources(&mut allowed, template.value());
    let pod = template.get("spec");
    if allowed.get("spec") != pod.some() {
        errors.push(pod.invalid(IMMUTABLE));
    }
}

/// True if the job has no running pods and will start none.
fn may_change(job: &Value) -> bool {
    let has_started = job.at(&["status", "startTime"]).is_some_and(|time| !time.is_null());
    let has_pods = job.at(&["status", "active"]).and_then(Value::as_int).unwrap_or(0) > 0;
    let conditions = job.at(&["status", "conditions"]).and_then(Value::as_array);
    let has_condition = conditions.unwrap_or_default().iter().any(|condition| {
        condition.str_at(&["type"]) == Some("Suspended")
            && condition.str_at(&["status"]) == Some("True")
    });
    let is_suspended = job.at(&["spec", "suspend"]).and_then(Value::as_bool) == Some(true);
    is_suspended && (!has_started || has_condition) && !has_pods
}

fn take(to: &mut Value, from: &Value, path: &[&str]) {
    let Some((last, parents)) = path.split_last() else { return };
    let parent = parents.iter().fold(to.make_object(), |map, key| map.entry_object(key));
    match from.at(path) {
        Some(value) => parent.insert(*last, value.clone()),
        None => parent.remove(last),
    };
}

fn take_node_affinity(to: &mut Value, from: &Value) {
    let had = to.at(&["spec", "affinity"]).is_some();
    let has = from.at(&["spec", "affinity"]).is_some();
    if !had && !has {
        return;
    }
    take(to, from, &["spec", "affinity", "nodeAffinity"]);
    // An affinity that becomes empty is removed.
    let spec = to.object_entry("spec");
    if !has && spec.get("affinity").and_then(Value::as_object).is_some_and(|left| left.is_empty()) {
        spec.remove("affinity");
    }
}

fn take_resources(to: &mut Value, from: &Value) {
    for list in ["containers", "initContainers"] {
        let new = from.at(&["spec", list]).and_then(Value::as_array).unwrap_or_default();
        let old = to.get_mut("spec").and_then(|spec| spec.get_mut(list));
        let old = old.and_then(Value::as_array_mut).into_iter().flatten();
        old.zip(new).for_each(|(old, new)| take(old, new, &["resources"]));
    }
}
