//! LimitRanger: checks the resources of containers, pods and claims against their namespace's
//! limits, and sets default resources.

#[cfg(test)]
mod tests;

use std::collections::HashSet;
use std::fmt::Write as _;

use pintle_meta::quantity::Quantity;
use pintle_meta::{Status, object};
use pintle_registry::admission::{Admission, Attributes, Hook, Hooks, Operation};
use pintle_registry::{Object, Registry};
use pintle_value::{Map, Value};

use crate::known::Known;
use crate::pods::{Amounts, amounts, items, total};
use crate::{creates, forbidden, is_at, is_of};

/// The annotation that lists the defaults that were set.
const ANNOTATION: &str = "kubernetes.io/limit-ranger";

/// The plugin.
pub(crate) struct LimitRanger {
    ranges: Known<Vec<Limit>>,
}

/// One item of a LimitRange.
#[derive(Debug)]
struct Limit {
    /// The type of objects that the item limits: `Pod`, `Container`, `PersistentVolumeClaim`.
    of: String,
    min: Amounts,
    max: Amounts,
    ratio: Amounts,
    default: Map,
    default_request: Map,
}

impl Default for LimitRanger {
    fn default() -> Self {
        Self {
            ranges: Known::new("", "limitranges", |range: &Object| Ok(Limit::all(&range.tree()?))),
        }
    }
}

impl Admission for LimitRanger {
    fn hooks(&self) -> Hooks {
        Hooks::of(&[Hook::Mutate, Hook::Validate])
    }

    fn mutate(
        &self,
        write: &Attributes<'_>,
        object: &mut Value,
        registry: &Registry,
    ) -> Result<(), Status> {
        if limits_pod(write) && !is_terminating(write) {
            for range in self.ranges.within(write.namespace, registry)? {
                set_defaults(object, &range);
            }
        }
        Ok(())
    }

    fn validate(&self, write: &Attributes<'_>, registry: &Registry) -> Result<Vec<String>, Status> {
        let is_claim =
            write.operation != Operation::Delete && is_of(write, "", "persistentvolumeclaims");
        let is_limited = (is_claim || limits_pod(write)) && !is_terminating(write);
        let Some(object) = write.object.filter(|_| is_limited) else { return Ok(Vec::new()) };
        for range in self.ranges.within(write.namespace, registry)? {
            let errors =
                if is_claim { check_claim(object, &range) } else { check_pod(object, &range) };
            if !errors.is_empty() {
                return Err(forbidden(write, object, &aggregate(errors)));
            }
        }
        Ok(Vec::new())
    }
}

/// True for a write that sets the resources of a pod's containers: a create or a resize. No other
/// update can change them.
fn limits_pod(write: &Attributes<'_>) -> bool {
    creates(write, "", "pods")
        || write.operation == Operation::Update && is_at(write, "", "pods", "resize")
}

fn is_terminating(write: &Attributes<'_>) -> bool {
    write.old().is_some_and(object::is_terminating)
}

impl Limit {
    fn all(range: &Value) -> Vec<Self> {
        items(range, &["spec", "limits"]).iter().map(Self::of).collect()
    }

    fn of(limit: &Value) -> Self {
        let map =
            |member| limit.get(member).and_then(Value::as_object).cloned().unwrap_or_default();
        Self {
            of: limit.str_at(&["type"]).unwrap_or_default().to_owned(),
            min: amounts(limit.get("min")),
            max: amounts(limit.get("max")),
            ratio: amounts(limit.get("maxLimitRequestRatio")),
            default: map("default"),
            default_request: map("defaultRequest"),
        }
    }
}

/// Several errors as one (upstream: `NewAggregate`).
fn aggregate(mut errors: Vec<String>) -> String {
    let mut seen = HashSet::new();
    errors.retain(|error| seen.insert(error.clone()));
    match errors.as_slice() {
        [error] => error.clone(),
        _ => format!("[{}]", errors.join(", ")),
    }
}

/// Sets missing resources of containers, and annotates the pod.
fn set_defaults(pod: &mut Value, range: &[Limit]) {
    let of_containers = || range.iter().filter(|limit| limit.of == "Container");
    if of_containers().all(|limit| limit.default.is_empty() && limit.default_request.is_empty()) {
        return;
    }
    let mut notes = Vec::new();
    for (member, kind) in [("containers", "container"), ("initContainers", "init container")] {
        let containers = pod.object_entry("spec").get_mut(member).and_then(Value::as_array_mut);
        for container in containers.into_iter().flatten() {
            let mut set = |part: &str, of: fn(&Limit) -> &Map| {
                let mut names = Vec::new();
                for (name, amount) in of_containers().flat_map(|limit| of(limit).iter()) {
                    let known = container.object_entry("resources").entry_object(part);
                    if !known.contains_key(name) {
                        known.insert(name.clone(), amount.clone());
                        names.push(name.to_string());
                    }
                }
                names.sort_unstable();
                names.join(", ")
            };
            let limits = set("limits", |limit| &limit.default);
            let requests = set("requests", |limit| &limit.default_request);
            tidy(container);
            let name = container.str_at(&["name"]).unwrap_or_default();
            for (names, what) in [(requests, "request"), (limits, "limit")] {
                if !names.is_empty() {
                    notes.push(format!("{names} {what} for {kind} {name}"));
                }
            }
        }
    }
    if !notes.is_empty() {
        let annotations = object::metadata_mut(pod).entry_object("annotations");
        annotations.insert(ANNOTATION, format!("LimitRanger plugin set: {}", notes.join("; ")));
    }
}

/// Removes empty maps from the resources of a container.
fn tidy(container: &mut Value) {
    let resources = container.object_entry("resources");
    resources.retain(|_, value| !value.as_object().is_some_and(Map::is_empty));
}

/// The violations of a range by a pod.
fn check_pod(pod: &Value, range: &[Limit]) -> Vec<String> {
    let mut errors = Vec::new();
    for limit in range {
        match limit.of.as_str() {
            "Container" => {
                for member in ["containers", "initContainers"] {
                    for container in items(pod, &["spec", member]) {
                        let of = |part| amounts(container.at(&["resources", part]));
                        check(limit, &of("requests"), &of("limits"), &mut errors);
                    }
                }
            }
            "Pod" => check(limit, &total(pod, "requests"), &total(pod, "limits"), &mut errors),
            _ => {}
        }
    }
    errors
}

/// The violations of a range by a claim. Only the requests of a claim are checked.
fn check_claim(claim: &Value, range: &[Limit]) -> Vec<String> {
    let requests = amounts(claim.at(&["spec", "resources", "requests"]));
    let mut errors = Vec::new();
    for limit in range.iter().filter(|limit| limit.of == "PersistentVolumeClaim") {
        for (name, min) in &limit.min {
            let resource = RequestAndLimit { request: requests.get(name), limit: None };
            errors.extend(too_little(limit, name, min, resource));
        }
        for (name, max) in &limit.max {
            let head = format!("maximum {name} usage per {} is {max}", limit.of);
            errors.extend(match requests.get(name) {
                None => Some(format!("{head}.  No request is specified")),
                Some(request) if request > max => Some(format!("{head}, but request is {request}")),
                Some(_) => None,
            });
        }
    }
    errors
}

fn check(limit: &Limit, requests: &Amounts, limits: &Amounts, errors: &mut Vec<String>) {
    let resource =
        |name: &String| RequestAndLimit { request: requests.get(name), limit: limits.get(name) };
    for (name, min) in &limit.min {
        errors.extend(too_little(limit, name, min, resource(name)));
    }
    for (name, max) in &limit.max {
        errors.extend(too_much(limit, name, max, resource(name)));
    }
    for (name, ratio) in &limit.ratio {
        errors.extend(too_uneven(limit, name, ratio, resource(name)));
    }
}

/// The request and limit of one resource.
#[derive(Clone, Copy)]
struct RequestAndLimit<'a> {
    request: Option<&'a Quantity>,
    limit: Option<&'a Quantity>,
}

fn too_little(
    of: &Limit,
    name: &str,
    min: &Quantity,
    resource: RequestAndLimit<'_>,
) -> Option<String> {
    let mut text = format!("minimum {name} usage per {} is {min}", of.of);
    match (resource.request, resource.limit) {
        (None, _) => text.push_str(".  No request is specified"),
        (Some(request), _) if request < min => write!(text, ", but request is {request}").ok()?,
        (_, Some(limit)) if limit < min => write!(text, ", but limit is {limit}").ok()?,
        _ => return None,
    }
    Some(text)
}

fn too_much(
    of: &Limit,
    name: &str,
    max: &Quantity,
    resource: RequestAndLimit<'_>,
) -> Option<String> {
    let mut text = format!("maximum {name} usage per {} is {max}", of.of);
    match (resource.request, resource.limit) {
        (_, None) => text.push_str(".  No limit is specified"),
        (_, Some(limit)) if limit > max => write!(text, ", but limit is {limit}").ok()?,
        (Some(request), _) if request > max => write!(text, ", but request is {request}").ok()?,
        _ => return None,
    }
    Some(text)
}

fn too_uneven(
    of: &Limit,
    name: &str,
    max: &Quantity,
    resource: RequestAndLimit<'_>,
) -> Option<String> {
    let head = format!("{name} max limit to request ratio per {} is {max}", of.of);
    let Some(request) = resource.request.filter(|request| !request.is_zero()) else {
        return Some(format!("{head}, but no request is specified or request is 0"));
    };
    let Some(limit) = resource.limit.filter(|limit| !limit.is_zero()) else {
        return Some(format!("{head}, but no limit is specified or limit is 0"));
    };
    let ratio = limit.to_f64() / request.to_f64();
    (ratio > max.to_f64()).then(|| format!("{head}, but provided ratio is {ratio:.6}"))
}
