//! Resizes of pods on nodes: what a pod asks for must fit its node (upstream: `PodResizeValidator`).
//!
//! Autoscalers know by the cause that a resize will never fit, and make another pod instead.

use pintle_meta::{Status, object};
use pintle_registry::Registry;
use pintle_registry::admission::{Admission, Attributes, Operation};
use pintle_value::Value;

use crate::pods::{Amounts, add, amounts, total};
use crate::{find, forbidden};

/// The plugin.
pub(crate) struct PodResize;

impl Admission for PodResize {
    fn judge(&self, write: &Attributes<'_>, registry: &Registry) -> Result<Vec<String>, Status> {
        let of = &write.resource.resource;
        let is_it = of.resource == "pods"
            && of.group.is_empty()
            && write.subresource == "resize"
            && write.operation == Operation::Update;
        let (Some(new), Some(old)) = (write.object.filter(|_| is_it), write.old) else {
            return Ok(Vec::new());
        };
        let name = new.str_at(&["spec", "nodeName"]).unwrap_or_default();
        if name.is_empty() || object::generation(new) == object::generation(old) {
            return Ok(Vec::new());
        }
        let Some(node) = find(registry, ("", "nodes"), "", name) else {
            return Err(forbidden(write, new, &format!("node {name:?} not found")));
        };
        if let Some(why) = excess(new, &node) {
            return Err(forbidden(write, new, &why).with_cause("NodeCapacity", "", ""));
        }
        let system = object::labels(&node).and_then(|labels| labels.get("kubernetes.io/os"));
        let system = system.and_then(Value::as_str).unwrap_or_default();
        if system != "linux" {
            let why =
                format!("pod resize is only supported on linux nodes, node {name:?} is {system:?}");
            return Err(forbidden(write, new, &why).with_cause("UnsupportedPlatform", "", ""));
        }
        Ok(Vec::new())
    }
}

/// Of what a pod asks for more than its node has for pods.
fn excess(pod: &Value, node: &Value) -> Option<String> {
    let mut asked = total(pod, "requests");
    add(&mut asked, &amounts(pod.at(&["spec", "overhead"])));
    let given = amounts(node.at(&["status", "allocatable"]));
    let parts: Vec<String> = ["cpu", "memory"]
        .into_iter()
        .filter_map(|name| {
            let of = |all: &Amounts| {
                all.get(name).map_or(0, |one| match name {
                    "cpu" => one.milli_value(),
                    _ => one.value(),
                })
            };
            let (asked, given) = (of(&asked), of(&given));
            (asked > given).then(|| format!("{name}, requested: {asked}, allocatable: {given}"))
        })
        .collect();
    (!parts.is_empty())
        .then(|| format!("Node didn't have enough allocatable resources: {}", parts.join("; ")))
}
