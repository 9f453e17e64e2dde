//! The objects of the measurements: a ConfigMap of 1 KB and a realistic pod of 14 KB.
//!
//! The pod is like those of large clusters: an application with sidecars, probes, many variables
//! and volumes. A file can replace it.

use std::path::Path;

use anyhow::{Context as _, Result, anyhow};
use serde_json::{Value, json};

use crate::call::{NAME, VALUE};

/// The default pod.
const POD: &str = include_str!("../pod.yaml");

/// The ReplicaSet that owns the pods.
pub const OWNER: &str = "owner";

/// A kind of object.
#[derive(Clone, Debug)]
pub struct Sample {
    /// Its resource in `/api/v1`.
    pub resource: &'static str,
    /// Its name in the report.
    pub label: &'static str,
    /// The object as JSON, with gaps for the number in its name and for a changing value.
    pub body: String,
    /// A merge patch with a gap for a changing value.
    pub patch: String,
}

impl Sample {
    /// The sample with an owner, as most pods have; the garbage collector reads the reference.
    pub fn owned(&self, uid: &str) -> Result<Self> {
        let mut object: Value = serde_json::from_str(&self.body)?;
        object["metadata"]["ownerReferences"] = json!([{
            "apiVersion": "apps/v1", "kind": "ReplicaSet", "name": OWNER, "uid": uid,
            "controller": true, "blockOwnerDeletion": true,
        }]);
        Ok(Self { body: object.to_string(), ..self.clone() })
    }

    /// A pod's sample with each pod on a node of its own, named by the pod's number.
    pub fn on_nodes(&self) -> Result<Self> {
        let mut object: Value = serde_json::from_str(&self.body)?;
        object["spec"]["nodeName"] = json!(format!("node-{NAME}"));
        Ok(Self { body: object.to_string(), ..self.clone() })
    }

    /// The node of a pod of [`Self::on_nodes`].
    pub fn node(number: usize) -> String {
        format!("node-{}", crate::call::digits(number as u64))
    }
}

/// A ConfigMap whose JSON has about 1 KB.
pub fn config_map() -> Sample {
    let filler = "0123456789abcdef".repeat(55);
    let object = json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": format!("a{NAME}"), "labels": {"app": "bench"}},
        "data": {"filler": filler, "changing": VALUE},
    });
    let patch = json!({"data": {"changing": VALUE}}).to_string();
    Sample { resource: "configmaps", label: "1 KB ConfigMap", body: object.to_string(), patch }
}

/// The same with the changing value in a label, for representations that have no data.
pub fn config_map_by_label() -> Sample {
    let filler = "0123456789abcdef".repeat(55);
    let object = json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": format!("a{NAME}"), "labels": {"app": "bench", "changing": VALUE}},
        "data": {"filler": filler},
    });
    let patch = json!({"metadata": {"labels": {"changing": VALUE}}}).to_string();
    Sample { resource: "configmaps", label: "1 KB ConfigMap", body: object.to_string(), patch }
}

/// The pod: the given one, or the default.
pub fn pod(given: Option<&Path>) -> Result<Sample> {
    let text = match given {
        Some(path) => {
            std::fs::read_to_string(path).with_context(|| format!("reading {}", path.display()))?
        }
        None => POD.to_owned(),
    };
    let mut object: Value =
        serde_saphyr::from_str(&text).map_err(|error| anyhow!("the pod: {error}"))?;
    prepare(&mut object)?;
    let patch = json!({"metadata": {"labels": {"changing": VALUE}}}).to_string();
    Ok(Sample { resource: "pods", label: "pod", body: object.to_string(), patch })
}

/// Removes members that belong to one server, and makes the gaps.
fn prepare(object: &mut Value) -> Result<()> {
    let no_object = || anyhow!("the pod is no object with metadata and spec");
    let spec = object.get_mut("spec").and_then(Value::as_object_mut).ok_or_else(no_object)?;
    // A service account or a priority class of another cluster would be refused.
    for foreign in
        ["serviceAccount", "serviceAccountName", "priority", "priorityClassName", "nodeName"]
    {
        spec.remove(foreign);
    }
    spec.insert("automountServiceAccountToken".to_owned(), json!(false));
    let metadata =
        object.get_mut("metadata").and_then(Value::as_object_mut).ok_or_else(no_object)?;
    for foreign in [
        "namespace",
        "uid",
        "resourceVersion",
        "creationTimestamp",
        "ownerReferences",
        "generateName",
    ] {
        metadata.remove(foreign);
    }
    metadata.insert("name".to_owned(), json!(format!("a{NAME}")));
    let labels = metadata.entry("labels").or_insert_with(|| json!({}));
    labels["changing"] = json!(VALUE);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_have_their_sizes_and_gaps() {
        let map = config_map();
        assert!((950..1_100).contains(&map.body.len()), "{}", map.body.len());
        let pod = pod(None).unwrap();
        assert!((13_000..15_500).contains(&pod.body.len()), "{}", pod.body.len());
        for sample in [map, config_map_by_label(), pod] {
            assert_eq!(sample.body.matches(NAME).count(), 1);
            assert_eq!(sample.body.matches(VALUE).count(), 1);
            assert_eq!(sample.patch.matches(VALUE).count(), 1);
        }
    }
}
