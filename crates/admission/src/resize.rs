//! PodResizeValidator: refuses a resize that does not fit the pod's node, or whose node does not
//! run Linux (upstream: `PodResizeValidator`).
//!
//! Autoscalers recognize by the cause in the Status that a resize can never fit, and create
//! another pod instead.

use pintle_meta::{Status, object};
use pintle_registry::Registry;
use pintle_registry::admission::{Admission, Attributes, Hook, Hooks};
use pintle_value::Value;

use crate::pods::{Amounts, SpecChange, add, amounts, total};

/// The plugin.
pub(crate) struct PodResize;

impl Admission for PodResize {
    fn hooks(&self) -> Hooks {
        Hooks::of(&[Hook::Validate])
    }

    fn validate(&self, write: &Attributes<'_>, registry: &Registry) -> Result<(), Status> {
        let Some(pod) = SpecChange::of(write, &["resize"]) else { return Ok(()) };
        let node = pod.node(registry)?;
        if let Some(why) = excess(pod.new, &node) {
            return Err(pod.refusal(&why).with_cause("NodeCapacity", "", ""));
        }
        let system = object::labels(&node).and_then(|labels| labels.get("kubernetes.io/os"));
        let system = system.and_then(Value::as_str).unwrap_or_default();
        if system != "linux" {
            let name = pod.node_name;
            let why =
                format!("pod resize is only supported on linux nodes, node {name:?} is {system:?}");
            return Err(pod.refusal(&why).with_cause("UnsupportedPlatform", "", ""));
        }
        Ok(())
    }
}

/// Returns an error that lists which of CPU and memory the pod requests more of than the node has
/// allocatable; `None` if the pod fits.
fn excess(pod: &Value, node: &Value) -> Option<String> {
    let mut requested = total(pod, "requests");
    add(&mut requested, &amounts(pod.at(&["spec", "overhead"])));
    let allocatable = amounts(node.at(&["status", "allocatable"]));
    let parts: Vec<String> = ["cpu", "memory"]
        .into_iter()
        .filter_map(|name| {
            let of = |all: &Amounts| {
                all.get(name).map_or(0, |one| match name {
                    "cpu" => one.milli_value(),
                    _ => one.value(),
                })
            };
            let (requested, allocatable) = (of(&requested), of(&allocatable));
            (requested > allocatable)
                .then(|| format!("{name}, requested: {requested}, allocatable: {allocatable}"))
        })
        .collect();
    (!parts.is_empty())
        .then(|| format!("node didn't have enough allocatable resources: {}", parts.join("; ")))
}
