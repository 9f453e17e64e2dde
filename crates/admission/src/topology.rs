//! PodTopologyLabels: copies the zone and region labels of a node to its pods (upstream:
//! `PodTopologyLabels`).

use pintle_meta::{GroupVersionResource, Status, object};
use pintle_registry::Registry;
use pintle_registry::admission::{Admission, Attributes, Hook, Hooks, Operation};
use pintle_value::Value;

/// The labels that are copied.
const LABELS: [&str; 2] = ["topology.kubernetes.io/region", "topology.kubernetes.io/zone"];

/// The plugin.
pub(crate) struct PodTopologyLabels;

impl Admission for PodTopologyLabels {
    fn hooks(&self) -> Hooks {
        Hooks::of(&[Hook::Mutate])
    }

    fn mutate(
        &self,
        write: &Attributes<'_>,
        posted: &mut Value,
        registry: &Registry,
    ) -> Result<(), Status> {
        let of = &write.resource.resource;
        if write.operation != Operation::Create || of.resource != "pods" || !of.group.is_empty() {
            return Ok(());
        }
        let node = match write.subresource {
            "" => posted.str_at(&["spec", "nodeName"]),
            // Labels of a binding become labels of the pod.
            "binding" if posted.str_at(&["target", "kind"]) == Some("Node") => {
                posted.str_at(&["target", "name"])
            }
            _ => None,
        };
        if let Some(node) = node.filter(|name| !name.is_empty()).map(str::to_owned) {
            label(posted, &node, registry)?;
        }
        Ok(())
    }
}

/// Copies the labels of a node to an object, replacing labels of the same names. Nothing is copied
/// if the node does not exist.
fn label(to: &mut Value, node: &str, registry: &Registry) -> Result<(), Status> {
    let Some(nodes) = registry.resource(&GroupVersionResource::new("", "v1", "nodes")) else {
        return Ok(());
    };
    let Some(node) = registry.peek(&nodes, "", node) else { return Ok(()) };
    let index = node.indexed(nodes.strategy.fields())?;
    for (name, value) in LABELS.iter().filter_map(|name| Some((*name, index.label(name)?))) {
        object::metadata_mut(to).entry_object("labels").insert(name, value);
    }
    Ok(())
}
