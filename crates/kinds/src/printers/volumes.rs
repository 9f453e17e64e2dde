//! Persistent volumes and the claims on them.

use pintle_value::Value;

use super::column::Cell::{AccessModes, By, QuantityOr, Text, TextOr};
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
    string("Capacity", QuantityOr("spec.capacity.storage", "0"), "How much it can hold."),
    string("Access Modes", AccessModes("spec.accessModes"), "How it can be mounted."),
    string(
        "Reclaim Policy",
        Text("spec.persistentVolumeReclaimPolicy"),
        "What becomes of it when its claim is gone.",
    ),
    string("Status", By(phase), "Whether it is free, taken or on its way out."),
    string("Claim", By(claim), "The claim that has it."),
    string("StorageClass", By(storage_class), "The class it belongs to."),
    VOLUME_ATTRIBUTES_CLASS,
    string("Reason", Text("status.reason"), "Why it is in a failed state."),
    AGE,
    VOLUME_MODE,
];

const PERSISTENT_VOLUME_CLAIM: Columns = &[
    NAME,
    string("Status", By(phase), "Whether it has a volume or is on its way out."),
    string("Volume", Text("spec.volumeName"), "The volume it has."),
    string("Capacity", By(claimed_capacity), "How much the volume can hold."),
    string("Access Modes", By(claimed_access_modes), "How the volume can be mounted."),
    string("StorageClass", By(storage_class), "The class of volumes that it asks for."),
    VOLUME_ATTRIBUTES_CLASS,
    AGE,
    VOLUME_MODE,
];

const VOLUME_ATTRIBUTES_CLASS: Column = string(
    "VolumeAttributesClass",
    TextOr("spec.volumeAttributesClassName", "<unset>"),
    "The class of attributes that the volume can be given.",
);
const VOLUME_MODE: Column =
    string("VolumeMode", TextOr("spec.volumeMode", "<unset>"), "A file system or a block device.")
        .wide();

fn phase(object: &Value) -> Value {
    if deleting(object) { "Terminating" } else { str_at(object, "status.phase") }.into()
}

fn claim(volume: &Value) -> Value {
    match at(volume, "spec.claimRef") {
        Some(claim) => format!("{}/{}", str_at(claim, "namespace"), str_at(claim, "name")).into(),
        None => "".into(),
    }
}

/// The storage class of a volume or a claim: the annotation from before there was a member wins.
fn storage_class(object: &Value) -> Value {
    annotation(object, "volume.beta.kubernetes.io/storage-class")
        .unwrap_or_else(|| str_at(object, "spec.storageClassName"))
        .into()
}

/// What a claim has got; what it asks for is not shown.
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
