//! The objects to measure with: a ConfigMap of 1 KB and a realistic pod of 14 KB.
//!
//! The pod is made here, by count and length like those that run in large clusters: an application
//! with side containers, probes, many variables and volumes. One's own can be given instead.

use std::path::Path;

use anyhow::{Result, anyhow};
use serde_json::{Map, Value, json};

use crate::call::{NAME, VALUE};

/// A kind of object to measure with.
#[derive(Clone, Debug)]
pub struct Sample {
    /// Its resource in `/api/v1`.
    pub resource: &'static str,
    /// For people.
    pub label: &'static str,
    /// The object as JSON, with holes for its name's number and for a value that changes.
    pub body: String,
    /// A merge patch with a hole for a value that changes.
    pub patch: String,
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

/// The pod to measure with: a given one, or one of our own.
pub fn pod(given: Option<&Path>) -> Result<Sample> {
    let mut object = match given {
        Some(path) => {
            let text = std::fs::read_to_string(path)?;
            serde_saphyr::from_str(&text).map_err(|e| anyhow!("{}: {e}", path.display()))?
        }
        None => own_pod(),
    };
    prepare(&mut object)?;
    let patch = json!({"metadata": {"labels": {"changing": VALUE}}}).to_string();
    Ok(Sample { resource: "pods", label: "pod", body: object.to_string(), patch })
}

/// Takes away what belongs to one server, and makes the holes.
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

fn own_pod() -> Value {
    let containers: Vec<Value> = ["app", "proxy", "logs", "metrics"].map(container).into();
    let volumes: Vec<Value> = (0..14)
        .map(|n| match n % 3 {
            0 => json!({"name": format!("volume-{n}"), "emptyDir": {"sizeLimit": "1Gi"}}),
            1 => json!({"name": format!("volume-{n}"), "configMap": {"name": format!("settings-{n}"), "defaultMode": 420, "items": [{"key": "a", "path": "b"}]}}),
            _ => json!({"name": format!("volume-{n}"), "secret": {"secretName": format!("secret-{n}"), "defaultMode": 420}}),
        })
        .collect();
    let text = |length: usize| "a sentence about this deployment, ".repeat(length / 34 + 1);
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {
            "labels": {"app.kubernetes.io/name": "shop", "app.kubernetes.io/instance": "shop-eu", "app.kubernetes.io/version": "2.14.3", "pod-template-hash": "6d4cf56db6", "tier": "backend"},
            "annotations": {"example.com/config-hash": "8f14e45fceea167a5a36dedd4bea2543".repeat(2), "example.com/notes": text(700), "example.com/owner": "team-checkout@example.com"},
        },
        "spec": {
            "containers": containers,
            "initContainers": [container("prepare")],
            "volumes": volumes,
            "nodeSelector": {"kubernetes.io/os": "linux", "example.com/pool": "general"},
            "tolerations": [
                {"key": "example.com/dedicated", "operator": "Equal", "value": "shop", "effect": "NoSchedule"},
                {"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300},
                {"key": "node.kubernetes.io/unreachable", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300},
            ],
            "affinity": {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 100, "podAffinityTerm": {"labelSelector": {"matchLabels": {"app.kubernetes.io/name": "shop"}}, "topologyKey": "kubernetes.io/hostname"}}]}},
            "topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": "topology.kubernetes.io/zone", "whenUnsatisfiable": "ScheduleAnyway", "labelSelector": {"matchLabels": {"app.kubernetes.io/name": "shop"}}}],
            "terminationGracePeriodSeconds": 30, "dnsPolicy": "ClusterFirst", "restartPolicy": "Always",
            "securityContext": {"runAsNonRoot": true, "runAsUser": 1000, "fsGroup": 1000, "seccompProfile": {"type": "RuntimeDefault"}},
        },
    })
}

fn container(name: &str) -> Value {
    let variables: Vec<Value> = (0..9)
        .map(|n| match n % 4 {
            0 => json!({"name": format!("SETTING_{n}"), "valueFrom": {"configMapKeyRef": {"name": "settings", "key": format!("setting-{n}")}}}),
            1 => json!({"name": format!("SECRET_{n}"), "valueFrom": {"secretKeyRef": {"name": "secrets", "key": format!("secret-{n}")}}}),
            _ => json!({"name": format!("VALUE_{n}"), "value": format!("https://service-{n}.example.com:8443/api/v{n}")}),
        })
        .collect();
    let mounts: Vec<Value> = (0..8)
        .map(|n| json!({"name": format!("volume-{n}"), "mountPath": format!("/var/run/shop/volume-{n}"), "readOnly": n % 2 == 0}))
        .collect();
    let mut container = Map::new();
    for (key, value) in [
        ("name", json!(name)),
        (
            "image",
            json!(format!(
                "registry.example.com/shop/{name}:2.14.3@sha256:{}",
                "0123456789abcdef".repeat(4)
            )),
        ),
        ("imagePullPolicy", json!("IfNotPresent")),
        (
            "args",
            json!([
                "--listen=:8080",
                "--log-level=info",
                "--config=/etc/shop/config.yaml",
                "--metrics=:9090"
            ]),
        ),
        ("env", json!(variables)),
        ("volumeMounts", json!(mounts)),
        (
            "ports",
            json!([{"name": "http", "containerPort": 8080, "protocol": "TCP"}, {"name": "metrics", "containerPort": 9090, "protocol": "TCP"}]),
        ),
        (
            "resources",
            json!({"requests": {"cpu": "250m", "memory": "512Mi"}, "limits": {"cpu": "1", "memory": "1Gi"}}),
        ),
        (
            "securityContext",
            json!({"allowPrivilegeEscalation": false, "readOnlyRootFilesystem": true, "capabilities": {"drop": ["ALL"]}}),
        ),
    ] {
        container.insert(key.to_owned(), value);
    }
    if name != "prepare" {
        let probe = json!({"httpGet": {"path": "/healthz", "port": 8080, "scheme": "HTTP"}, "initialDelaySeconds": 5, "periodSeconds": 10, "timeoutSeconds": 2, "successThreshold": 1, "failureThreshold": 3});
        container.insert("livenessProbe".to_owned(), probe.clone());
        container.insert("readinessProbe".to_owned(), probe);
    }
    Value::Object(container)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_have_their_sizes_and_holes() {
        let map = config_map();
        assert!((950..1_100).contains(&map.body.len()), "{}", map.body.len());
        let pod = pod(None).unwrap();
        assert!((13_000..15_500).contains(&pod.body.len()), "{}", pod.body.len());
        for sample in [map, pod] {
            assert_eq!(sample.body.matches(NAME).count(), 1);
            assert_eq!(sample.body.matches(VALUE).count(), 1);
            assert_eq!(sample.patch.matches(VALUE).count(), 1);
        }
    }
}
