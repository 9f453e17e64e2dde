//! Persistent volumes and the claims on them.

use pintle_value::Value;

use super::column::Cell::{AccessModes, By, QuantityOr, Text, TextOr};
use super::column::Description::{Field, Words};
use super::column::{AGE, Column, NAME, string};
use super::read::{annotation, at, deleting, items_at, str_at};
use super::text::{access_modes, amount};
use super::{Columns, Kind};

pub(super) const KINDS: &[Kind] = &[
    Kind::new("", "PersistentVolume", PERSISTENT_VOLUME),
    Kind::new("", "PersistentVolumeClaim", PERSISTENT_VOLUME_CLAIM),
];

const PERSISTENT_VOLUME: Columns = &[
    NAME,
    string(
        "Capacity",
        QuantityOr("spec.capacity.storage", "0"),
        Field("core.v1.PersistentVolumeSpec", "capacity"),
    ),
    string(
        "Access Modes",
        AccessModes("spec.accessModes"),
        Field("core.v1.PersistentVolumeSpec", "accessModes"),
    ),
    string(
        "Reclaim Policy",
        Text("spec.persistentVolumeReclaimPolicy"),
        Field("core.v1.PersistentVolumeSpec", "persistentVolumeReclaimPolicy"),
    ),
    string("Status", By(phase), Field("core.v1.PersistentVolumeStatus", "phase")),
    string("Claim", By(claim), Field("core.v1.PersistentVolumeSpec", "claimRef")),
    string("StorageClass", By(storage_class), Words("StorageClass of the pv")),
    volume_attributes_class("VolumeAttributesClass of the pv"),
    string("Reason", Text("status.reason"), Field("core.v1.PersistentVolumeStatus", "reason")),
    AGE,
    volume_mode("core.v1.PersistentVolumeSpec"),
];

const PERSISTENT_VOLUME_CLAIM: Columns = &[
    NAME,
    string("Status", By(phase), Field("core.v1.PersistentVolumeClaimStatus", "phase")),
    string(
        "Volume",
        Text("spec.volumeName"),
        Field("core.v1.PersistentVolumeClaimSpec", "volumeName"),
    ),
    string(
        "Capacity",
        By(claimed_capacity),
        Field("core.v1.PersistentVolumeClaimStatus", "capacity"),
    ),
    string(
        "Access Modes",
        By(claimed_access_modes),
        Field("core.v1.PersistentVolumeClaimStatus", "accessModes"),
    ),
    string("StorageClass", By(storage_class), Words("StorageClass of the pvc")),
    volume_attributes_class("VolumeAttributesClass of the pvc"),
    AGE,
    volume_mode("core.v1.PersistentVolumeClaimSpec"),
];

const fn volume_attributes_class(description: &'static str) -> Column {
    let class = TextOr("spec.volumeAttributesClassName", "<unset>");
    string("VolumeAttributesClass", class, Words(description))
}

const fn volume_mode(spec: &'static str) -> Column {
    let mode = TextOr("spec.volumeMode", "<unset>");
    string("VolumeMode", mode, Field(spec, "volumeMode")).wide()
}

fn phase(object: &Value) -> Value {
    if deleting(object) { "Terminating" } else { str_at(object, "status.phase") }.into()
}

fn claim(volume: &Value) -> Value {
    match at(volume, "spec.claimRef") {
        Some(claim) => format!("{}/{}", str_at(claim, "namespace"), str_at(claim, "name")).into(),
        None => "".into(),
    }
}

/// The storage class of a volume or a claim: the annotation, which is older than the member, takes
/// precedence.
fn storage_class(object: &Value) -> Value {
    annotation(object, "volume.beta.kubernetes.io/storage-class")
        .unwrap_or_else(|| str_at(object, "spec.storageClassName"))
        .into()
}

/// The capacity of a bound claim; its request is not shown.
fn claimed_capacity(claim: &Value) -> Value {
    if str_at(claim, "spec.volumeName").is_empty() {
        return "".into();
    }
    at(claim, "status.capacity.storage").map_or_else(|| "0".to_owned(), amount).into()
}

fn claimed_access_modes(claim: &Value) -> Value {
    if str_at(claim, "spec.volumeName").is_empty() {
        return "".into();
    }
    access_modes(items_at(claim, "status.accessModes")).into()
}
