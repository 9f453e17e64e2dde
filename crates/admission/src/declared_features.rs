//! NodeDeclaredFeatureValidator: refuses a change of a pod that needs a feature which the pod's
//! node does not declare (upstream: `component-helpers/nodedeclaredfeatures`).
//!
//! A kubelet declares its features in its node's `status.declaredFeatures`.

use pintle_meta::Status;
use pintle_registry::Registry;
use pintle_registry::admission::{Admission, Attributes, Hook, Hooks};
use pintle_value::Value;

use crate::pods::{SpecChange, items};

/// Whether a change of a pod needs a feature.
type Takes = fn(&Value, &Value) -> bool;

/// The features that changes of pods need. Upstream's other features matter for scheduling only.
const FEATURES: [(&str, Takes); 2] = [
    ("InPlacePodLevelResourcesVerticalScaling", |old, new| {
        let whole = |pod: &Value| pod.at(&["spec", "resources"]).cloned();
        whole(old) != whole(new)
    }),
    ("InPlacePodVerticalScalingInitContainers", |old, new| {
        let containers = |pod| items(pod, &["spec", "initContainers"]).iter();
        let is_sidecar = |one: &Value| one.str_at(&["restartPolicy"]) == Some("Always");
        containers(old)
            .zip(containers(new))
            .any(|(old, new)| !is_sidecar(old) && old.get("resources") != new.get("resources"))
    }),
];

/// The plugin.
pub(crate) struct NodeDeclaredFeatures;

impl Admission for NodeDeclaredFeatures {
    fn hooks(&self) -> Hooks {
        Hooks::of(&[Hook::Validate])
    }

    fn validate(&self, write: &Attributes<'_>, registry: &Registry) -> Result<(), Status> {
        let Some(pod) = SpecChange::of(write, &["", "resize"]) else { return Ok(()) };
        let takes = |(_, takes): &&(&str, Takes)| takes(pod.old, pod.new);
        let mut needed: Vec<&str> = FEATURES.iter().filter(takes).map(|(name, _)| *name).collect();
        if needed.is_empty() {
            return Ok(());
        }
        let node = pod.node(registry)?;
        let declared = items(&node, &["status", "declaredFeatures"]);
        needed.retain(|feature| !declared.iter().any(|known| known.as_str() == Some(feature)));
        if needed.is_empty() {
            return Ok(());
        }
        Err(pod.refusal(&format!(
            "pod update requires features {} which are not available on node {:?}",
            needed.join(", "),
            pod.node_name
        )))
    }
}
