//! Helpers for pods.

use std::sync::Arc;

use pintle_meta::{GroupVersionResource, Status, object, time};
use pintle_registry::request::{Now, Target};
use pintle_registry::{Registry, Resource};
use pintle_value::{Map, Value};

/// The resource of pods.
pub(crate) fn pods(registry: &Registry) -> Result<Arc<Resource>, Status> {
    resource(registry, "", "pods")
}

/// A resource of version v1.
pub(crate) fn resource(
    registry: &Registry,
    group: &'static str,
    plural: &'static str,
) -> Result<Arc<Resource>, Status> {
    let found = registry.resource(&GroupVersionResource::new(group, "v1", plural));
    found.ok_or_else(|| Status::internal(format!("{plural} are not served")))
}

/// The target of a pod.
pub(crate) fn pod(pods: &Arc<Resource>, namespace: &str, name: &str) -> Target {
    Target {
        resource: pods.clone(),
        namespace: namespace.into(),
        name: name.into(),
        subresource: "".into(),
    }
}

/// Whether a condition of a pod is true.
pub(crate) fn has_condition(pod: &Value, condition: &str) -> bool {
    let conditions = pod.at(&["status", "conditions"]).and_then(Value::as_array);
    let of_type = |c: &&Value| c.str_at(&["type"]) == Some(condition);
    let found = conditions.unwrap_or_default().iter().find(of_type);
    found.and_then(|c| c.str_at(&["status"])) == Some("True")
}

/// Sets a condition of a pod to true; the transition time changes only if it was not true
/// (upstream: `UpdatePodCondition`).
pub(crate) fn set_condition(pod: &mut Value, condition: &[(&'static str, &str)], now: Now) {
    let kind = condition.iter().find(|(member, _)| *member == "type").map_or("", |(_, kind)| kind);
    let was_true = has_condition(pod, kind);
    let status = pod.object_entry("status");
    let conditions = status.entry_or("conditions", || Value::Array(Vec::new()));
    let Some(conditions) = conditions.as_array_mut() else { return };
    let at = conditions.iter().position(|c| c.str_at(&["type"]) == Some(kind));
    let before = at.and_then(|at| conditions[at].get("lastTransitionTime").cloned());
    let since = before.filter(|_| was_true).unwrap_or_else(|| time::format(now.unix_micros).into());
    let mut new = Map::new();
    new.insert("lastProbeTime", Value::Null);
    new.insert("lastTransitionTime", since);
    for (member, text) in condition {
        new.insert(*member, *text);
    }
    match at {
        Some(at) => conditions[at] = Value::Object(new),
        None => conditions.push(Value::Object(new)),
    }
}

/// Checks that the posted object has the name in the URL, if the URL has a name.
pub(crate) fn same_name(target: &Target, posted: &Value, kind: &str) -> Result<(), Status> {
    if target.name.is_empty() || object::name(posted) == target.name {
        return Ok(());
    }
    Err(Status::bad_request(format!("name in URL does not match name in {kind} object")))
}
