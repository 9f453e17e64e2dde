//! References of pods to other API objects (upstream: `VisitPodSecretNames`,
//! `VisitPodConfigmapNames` and `HasAPIObjectReference` of `pkg/api/pod`).

use pintle_value::Value;

use crate::pods::items;

/// The lists of a pod's containers, each with the words for one of its containers in messages.
pub(crate) const CONTAINERS: [(&str, &str); 3] = [
    ("initContainers", "init container"),
    ("containers", "container"),
    ("ephemeralContainers", "ephemeral container"),
];

/// The paths at which a volume names a secret.
const SECRETS_OF_VOLUMES: [&[&str]; 10] = [
    &["azureFile", "secretName"],
    &["cephfs", "secretRef", "name"],
    &["cinder", "secretRef", "name"],
    &["flexVolume", "secretRef", "name"],
    &["rbd", "secretRef", "name"],
    &["secret", "secretName"],
    &["scaleIO", "secretRef", "name"],
    &["iscsi", "secretRef", "name"],
    &["storageos", "secretRef", "name"],
    &["csi", "nodePublishSecretRef", "name"],
];

/// Volume sources that refer to no API object.
const OWN_VOLUMES: [&str; 22] = [
    "awsElasticBlockStore",
    "azureDisk",
    "cephfs",
    "cinder",
    "downwardAPI",
    "emptyDir",
    "fc",
    "flexVolume",
    "flocker",
    "gcePersistentDisk",
    "gitRepo",
    "hostPath",
    "image",
    "iscsi",
    "nfs",
    "photonPersistentDisk",
    "portworxVolume",
    "quobyte",
    "rbd",
    "scaleIO",
    "storageos",
    "vsphereVolume",
];

/// Other volume sources, each with the words for the objects to which it refers.
const VOLUMES: [(&str, &str); 7] = [
    ("configMap", "configmaps (via configmap volumes)"),
    ("secret", "secrets (via secret volumes)"),
    ("csi", "csidrivers (via CSI volumes)"),
    ("glusterfs", "endpoints (via glusterFS volumes)"),
    ("persistentVolumeClaim", "persistentvolumeclaims"),
    ("ephemeral", "persistentvolumeclaims (via ephemeral volumes)"),
    ("azureFile", "secrets (via azureFile volumes)"),
];

/// The sources of projected volumes, each with the words for the objects to which it refers.
const SOURCES: [(&str, &str); 5] = [
    ("configMap", "configmaps (via projected volumes)"),
    ("secret", "secrets (via projected volumes)"),
    ("serviceAccountToken", "serviceaccounts (via projected volumes)"),
    ("clusterTrustBundle", "clustertrustbundles"),
    ("podCertificate", "podcertificates"),
];

/// Returns the words for the first API object to which a pod refers. An unknown volume source is
/// an error.
pub fn first(pod: &Value) -> Result<Option<&'static str>, String> {
    if pod.str_at(&["spec", "serviceAccountName"]).is_some_and(|name| !name.is_empty()) {
        return Ok(Some("serviceaccounts"));
    }
    if has_secrets(pod) {
        return Ok(Some("secrets"));
    }
    if has_config_maps(pod) {
        return Ok(Some("configmaps"));
    }
    if !items(pod, &["spec", "resourceClaims"]).is_empty() {
        return Ok(Some("resourceclaims"));
    }
    for volume in items(pod, &["spec", "volumes"]) {
        if let Some(kind) = of_volume(volume)? {
            return Ok(Some(kind));
        }
    }
    Ok(None)
}

fn of_volume(volume: &Value) -> Result<Option<&'static str>, String> {
    let name = volume.str_at(&["name"]).unwrap_or_default();
    if OWN_VOLUMES.iter().any(|member| is_set(volume, member)) {
        return Ok(None);
    }
    if let Some((_, kind)) = VOLUMES.iter().find(|(member, _)| is_set(volume, member)) {
        return Ok(Some(kind));
    }
    if !is_set(volume, "projected") {
        return Err(format!("unknown volume type for volume  {name:?}"));
    }
    for source in items(volume, &["projected", "sources"]) {
        if let Some((_, kind)) = SOURCES.iter().find(|(member, _)| is_set(source, member)) {
            return Ok(Some(kind));
        }
        if !is_set(source, "downwardAPI") {
            return Err(format!("unknown source for projected volume {name:?}"));
        }
    }
    Ok(None)
}

/// Whether a pod refers to a secret.
pub(crate) fn has_secrets(pod: &Value) -> bool {
    let mut pulls = items(pod, &["spec", "imagePullSecrets"]).iter();
    let volumes = items(pod, &["spec", "volumes"]);
    pulls.any(|secret| names(secret, &["name"]))
        || is_in_environment(pod, "secretRef", "secretKeyRef")
        || volumes.iter().any(|volume| {
            SECRETS_OF_VOLUMES.iter().any(|path| names(volume, path))
                || is_projected(volume, "secret")
        })
}

fn has_config_maps(pod: &Value) -> bool {
    let names_map =
        |volume: &Value| names(volume, &["configMap", "name"]) || is_projected(volume, "configMap");
    is_in_environment(pod, "configMapRef", "configMapKeyRef")
        || items(pod, &["spec", "volumes"]).iter().any(names_map)
}

/// Whether a container of a pod refers to an object by the member `whole` of an item of `envFrom`,
/// or by the member `variable` of a variable's `valueFrom`.
fn is_in_environment(pod: &Value, whole: &str, variable: &str) -> bool {
    let lists = CONTAINERS.iter().flat_map(|(list, _)| items(pod, &["spec", list]));
    lists.into_iter().any(|container| {
        items(container, &["envFrom"]).iter().any(|from| names(from, &[whole, "name"]))
            || items(container, &["env"])
                .iter()
                .any(|one| names(one, &["valueFrom", variable, "name"]))
    })
}

fn is_projected(volume: &Value, member: &str) -> bool {
    let sources = items(volume, &["projected", "sources"]);
    sources.iter().any(|source| names(source, &[member, "name"]))
}

fn names(value: &Value, path: &[&str]) -> bool {
    value.str_at(path).is_some_and(|name| !name.is_empty())
}

fn is_set(value: &Value, member: &str) -> bool {
    value.get(member).is_some_and(|value| !value.is_null())
}
