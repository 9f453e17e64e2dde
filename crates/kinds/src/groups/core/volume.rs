//! PersistentVolumes and PersistentVolumeClaims.

use pintle_meta::field::Error;
use pintle_value::{Path, Value};

use crate::{
    checks::{items, same},
    defaults::{
        Constant::Text,
        Defaults, Row,
        Row::{Also, Empty, In, Unset},
        set,
    },
    pods,
    strategy::{Strategy, WITH_STATUS},
};

pub(super) const VOLUME: Strategy = Strategy {
    delete_returns_object: true,
    default: |object| set(object, VOLUME_DEFAULTS),
    prepare_create: pending,
    validate: |new, _| {
        let spec = Path::new("spec");
        let mut errors = Vec::new();
        if items(new, &["spec", "accessModes"]).is_empty() {
            errors.push(Error::required(&spec.field("accessModes"), ""));
        }
        if same(new.at(&["spec", "capacity"]), None) {
            errors.push(Error::required(&spec.field("capacity"), ""));
        }
        errors
    },
    ..WITH_STATUS
};

pub(super) const CLAIM: Strategy = Strategy {
    delete_returns_object: true,
    default: |object| set(object, CLAIM_DEFAULTS),
    prepare_create: pending,
    validate: |new, old| {
        let spec = Path::new("spec");
        let mut errors = Vec::new();
        if items(new, &["spec", "accessModes"]).is_empty() {
            let words = "at least 1 access mode is required";
            errors.push(Error::required(&spec.field("accessModes"), words));
        }
        if new.at(&["spec", "resources", "requests", "storage"]).is_none() {
            errors.push(Error::required(&spec.field("resources").key("storage"), ""));
        }
        if old.is_some_and(|old| frozen_part(new, old) != frozen_part(old, old)) {
            let words = "spec is immutable after creation except resources.requests and \
                         volumeAttributesClassName for bound claims";
            errors.push(Error::forbidden(&spec, words));
        }
        errors
    },
    ..WITH_STATUS
};

const VOLUME_DEFAULTS: Defaults = &[
    PENDING,
    In(
        "spec",
        &[
            Empty("persistentVolumeReclaimPolicy", Text("Retain")),
            Unset("volumeMode", Text("Filesystem")),
            Also(pods::DISKS),
        ],
    ),
];

const CLAIM_DEFAULTS: Defaults = &[PENDING, In("spec", pods::CLAIM_SPEC)];

const PENDING: Row = In("status", &[Empty("phase", Text("Pending"))]);

fn pending(object: &mut Value) {
    object.object_entry("status").insert("phase", "Pending");
}

/// A claim's spec without what may change: the volume when it is first bound, and for bound claims
/// the size and the volume attributes class.
fn frozen_part(claim: &Value, stored: &Value) -> Value {
    let mut spec = claim.get("spec").cloned().unwrap_or_default();
    let members = spec.make_object();
    let is_bound = stored.str_at(&["status", "phase"]) == Some("Bound");
    let was_bound = stored.str_at(&["spec", "volumeName"]).is_some_and(|name| !name.is_empty());
    if !was_bound {
        members.remove("volumeName");
    }
    if is_bound {
        members.remove("volumeAttributesClassName");
        if let Some(Value::Object(requests)) =
            members.get_mut("resources").and_then(|resources| resources.get_mut("requests"))
        {
            requests.remove("storage");
        }
    }
    spec
}
