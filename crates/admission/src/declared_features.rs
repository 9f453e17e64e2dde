//! What is changed of a pod must be something that its node can do (upstream:
//! `NodeDeclaredFeatureValidator`, `component-helpers/nodedeclaredfeatures`).
//!
//! A kubelet says in its node's `status.declaredFeatures` what it can do that older ones cannot.

use pintle_meta::{Status, object};
use pintle_registry::Registry;
use pintle_registry::admission::{Admission, Attributes, Operation};
use pintle_value::Value;

use crate::pods::{items, read};
use crate::{find, forbidden};

/// Whether a change from one state of a pod to another takes a feature.
type Takes = fn(&Value, &Value) -> bool;

/// What changes of pods take of their nodes. Upstream knows more features, which matter where a pod is to
/// run, and not when it changes.
const FEATURES: [(&str, Takes); 2] = [
    ("GuaranteedQoSPodCPUResize", |old, new| {
        old.str_at(&["status", "qosClass"]) == Some("Guaranteed") && asks_for_other_cpu(old, new)
    }),
    ("InPlacePodLevelResourcesVerticalScaling", |old, new| {
        let whole = |pod: &Value| pod.at(&["spec", "resources"]).cloned();
        whole(old) != whole(new)
    }),
];

/// The plugin.
pub(crate) struct NodeDeclaredFeatures;

impl Admission for NodeDeclaredFeatures {
    fn judge(&self, write: &Attributes<'_>, registry: &Registry) -> Result<Vec<String>, Status> {
        let of = &write.resource.resource;
        let is_it = of.resource == "pods"
            && of.group.is_empty()
            && matches!(write.subresource, "" | "resize")
            && write.operation == Operation::Update;
        let (Some(new), Some(old)) = (write.object.filter(|_| is_it), write.old) else {
            return Ok(Vec::new());
        };
        let name = new.str_at(&["spec", "nodeName"]).unwrap_or_default();
        if name.is_empty() || object::generation(new) == object::generation(old) {
            return Ok(Vec::new());
        }
        let mut needed: Vec<&str> =
            FEATURES.iter().filter(|(_, takes)| takes(old, new)).map(|(name, _)| *name).collect();
        if needed.is_empty() {
            return Ok(Vec::new());
        }
        let Some(node) = find(registry, ("", "nodes"), "", name) else {
            return Err(forbidden(write, new, &format!("node {name:?} not found")));
        };
        let declared = items(&node, &["status", "declaredFeatures"]);
        needed.retain(|feature| !declared.iter().any(|known| known.as_str() == Some(feature)));
        if needed.is_empty() {
            return Ok(Vec::new());
        }
        let why = format!(
            "pod update requires features {} which are not available on node {name:?}",
            needed.join(", ")
        );
        Err(forbidden(write, new, &why))
    }
}

/// Whether a container asks for another amount of processor time than before.
fn asks_for_other_cpu(old: &Value, new: &Value) -> bool {
    let containers = |pod| items(pod, &["spec", "containers"]).iter();
    let cpu = |one: &Value| one.at(&["resources", "requests", "cpu"]).and_then(read);
    containers(old).zip(containers(new)).any(|(old, new)| cpu(old) != cpu(new))
}
