//! The objects that pods and volumes refer to, which their node must be able to read.

use pintle_value::Value;

use super::object::{Object, Sort};

/// The annotation of a mirror pod, which represents a static pod.
const MIRROR: &str = "kubernetes.io/config.mirror";

/// The members of a pod's volume that name a secret.
const SECRETS_OF_POD_VOLUMES: &[&[&str]] = &[
    &["azureFile", "secretName"],
    &["cephfs", "secretRef", "name"],
    &["cinder", "secretRef", "name"],
    &["csi", "nodePublishSecretRef", "name"],
    &["flexVolume", "secretRef", "name"],
    &["iscsi", "secretRef", "name"],
    &["rbd", "secretRef", "name"],
    &["scaleIO", "secretRef", "name"],
    &["secret", "secretName"],
    &["storageos", "secretRef", "name"],
];

/// The members of a persistent volume that refer to secrets for kubelets. `true` means that a
/// reference without a namespace names a secret in the claim's namespace.
const SECRETS_OF_PERSISTENT_VOLUMES: &[(&[&str], bool)] = &[
    (&["cephfs", "secretRef"], true),
    (&["cinder", "secretRef"], false),
    (&["csi", "nodeExpandSecretRef"], false),
    (&["csi", "nodePublishSecretRef"], false),
    (&["csi", "nodeStageSecretRef"], false),
    (&["flexVolume", "secretRef"], true),
    (&["iscsi", "secretRef"], true),
    (&["rbd", "secretRef"], true),
    (&["scaleIO", "secretRef"], true),
    (&["storageos", "secretRef"], false),
];

/// The objects that a pod refers to (upstream: `Graph.AddPod`). A mirror pod refers to nothing: its
/// node creates it and must not get permissions through it.
pub(super) fn of_pod(pod: &Value, namespace: &str, name: &str) -> Vec<Object> {
    let mut found = Found { namespace, objects: Vec::new() };
    if pod.at(&["metadata", "annotations", MIRROR]).is_some() {
        return found.objects;
    }
    found.add(Sort::ServiceAccount, pod.str_at(&["spec", "serviceAccountName"]));
    for secret in list(pod, &["spec", "imagePullSecrets"]) {
        found.add(Sort::Secret, secret.str_at(&["name"]));
    }
    for member in ["initContainers", "containers", "ephemeralContainers"] {
        list(pod, &["spec", member]).iter().for_each(|container| found.container(container));
    }
    for volume in list(pod, &["spec", "volumes"]) {
        found.volume(volume, name);
    }
    for claim in list(pod, &["spec", "resourceClaims"]) {
        found.add(Sort::ResourceClaim, resource_claim(pod, claim));
    }
    let extended = ["status", "extendedResourceClaimStatus", "resourceClaimName"];
    found.add(Sort::ResourceClaim, pod.str_at(&extended));
    found.objects
}

/// The claim of a bound volume, and the secrets that kubelets need for it (upstream:
/// `Graph.AddPV`).
pub(super) fn of_volume(volume: &Value) -> Option<(Object, Vec<Object>)> {
    let claim = volume.at(&["spec", "claimRef"]).filter(|claim| !claim.is_null())?;
    let of = |value: &Value, member: &str| value.str_at(&[member]).unwrap_or_default().to_owned();
    let namespace = of(claim, "namespace");
    let mut secrets = Vec::new();
    let mut add = |namespace: &str, name: &str| {
        if !name.is_empty() {
            secrets.push(Object::new(Sort::Secret, namespace, name));
        }
    };
    if let Some(azure) = volume.at(&["spec", "azureFile"]) {
        let own = of(azure, "secretNamespace");
        add(if own.is_empty() { &namespace } else { &own }, &of(azure, "secretName"));
    }
    for (path, defaults_to_claim) in SECRETS_OF_PERSISTENT_VOLUMES {
        let Some(reference) = volume.get("spec").and_then(|spec| spec.at(path)) else { continue };
        let own = of(reference, "namespace");
        let of_secret = if own.is_empty() && *defaults_to_claim { &namespace } else { &own };
        add(of_secret, &of(reference, "name"));
    }
    Some((Object::new(Sort::Claim, &namespace, &of(claim, "name")), secrets))
}

/// The references found in a namespace.
struct Found<'a> {
    namespace: &'a str,
    objects: Vec<Object>,
}

impl Found<'_> {
    fn add(&mut self, sort: Sort, name: Option<&str>) {
        if let Some(name) = name.filter(|name| !name.is_empty()) {
            self.objects.push(Object::new(sort, self.namespace, name));
        }
    }

    fn container(&mut self, container: &Value) {
        for source in list(container, &["envFrom"]) {
            self.add(Sort::Secret, source.str_at(&["secretRef", "name"]));
            self.add(Sort::ConfigMap, source.str_at(&["configMapRef", "name"]));
        }
        for variable in list(container, &["env"]) {
            self.add(Sort::Secret, variable.str_at(&["valueFrom", "secretKeyRef", "name"]));
            self.add(Sort::ConfigMap, variable.str_at(&["valueFrom", "configMapKeyRef", "name"]));
        }
    }

    fn volume(&mut self, volume: &Value, pod: &str) {
        for path in SECRETS_OF_POD_VOLUMES {
            self.add(Sort::Secret, volume.str_at(path));
        }
        self.add(Sort::ConfigMap, volume.str_at(&["configMap", "name"]));
        for source in list(volume, &["projected", "sources"]) {
            self.add(Sort::Secret, source.str_at(&["secret", "name"]));
            self.add(Sort::ConfigMap, source.str_at(&["configMap", "name"]));
        }
        if volume.at(&["ephemeral"]).is_some_and(|source| !source.is_null()) {
            let of_pod = format!("{pod}-{}", volume.str_at(&["name"]).unwrap_or_default());
            self.add(Sort::Claim, Some(&of_pod));
        }
        self.add(Sort::Claim, volume.str_at(&["persistentVolumeClaim", "claimName"]));
    }
}

/// The name of a pod's ResourceClaim: from the spec, or from the status for a claim template.
fn resource_claim<'a>(pod: &'a Value, claim: &'a Value) -> Option<&'a str> {
    if let Some(name) = claim.str_at(&["resourceClaimName"]) {
        return Some(name);
    }
    let statuses = list(pod, &["status", "resourceClaimStatuses"]);
    let of_claim = |status: &&Value| status.get("name") == claim.get("name");
    statuses.iter().find(of_claim)?.str_at(&["resourceClaimName"])
}

fn list<'a>(value: &'a Value, path: &[&str]) -> &'a [Value] {
    value.at(path).and_then(Value::as_array).unwrap_or_default()
}
