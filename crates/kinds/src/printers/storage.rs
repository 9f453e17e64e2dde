//! storage.k8s.io: storage classes, and objects about drivers.

use pintle_value::Value;

use super::column::Cell::{BoolOr, By, Count, JoinedOr, Text, TextOr};
use super::column::Description::{Field, Words};
use super::column::{AGE, NAME, NAME_TEXT, boolean, integer, string};
use super::read::{annotation, at, items_at, str_at};
use super::text::joined;
use super::{Columns, Kind};

const GROUP: &str = "storage.k8s.io";

pub(super) const KINDS: &[Kind] = &[
    Kind::new(GROUP, "CSIDriver", CSI_DRIVER),
    Kind::new(GROUP, "CSINode", CSI_NODE),
    Kind::new(GROUP, "StorageClass", STORAGE_CLASS),
    Kind::new(GROUP, "VolumeAttachment", VOLUME_ATTACHMENT),
    Kind::new(GROUP, "VolumeAttributesClass", VOLUME_ATTRIBUTES_CLASS),
];

const CSI_DRIVER: Columns = &[
    NAME,
    boolean(
        "AttachRequired",
        BoolOr("spec.attachRequired", true),
        Field("storage.v1.CSIDriverSpec", "attachRequired"),
    ),
    boolean(
        "PodInfoOnMount",
        BoolOr("spec.podInfoOnMount", false),
        Field("storage.v1.CSIDriverSpec", "podInfoOnMount"),
    ),
    boolean(
        "StorageCapacity",
        BoolOr("spec.storageCapacity", false),
        Field("storage.v1.CSIDriverSpec", "storageCapacity"),
    ),
    string("TokenRequests", By(audiences), Field("storage.v1.CSIDriverSpec", "tokenRequests")),
    boolean(
        "RequiresRepublish",
        BoolOr("spec.requiresRepublish", false),
        Field("storage.v1.CSIDriverSpec", "requiresRepublish"),
    ),
    string(
        "Modes",
        JoinedOr("spec.volumeLifecycleModes", "<none>"),
        Field("storage.v1.CSIDriverSpec", "volumeLifecycleModes"),
    ),
    AGE,
];

const CSI_NODE: Columns = &[
    NAME,
    integer(
        "Drivers",
        Count("spec.drivers"),
        Words("Drivers indicates the number of CSI drivers registered on the node"),
    ),
    AGE,
];

const STORAGE_CLASS: Columns = &[
    string("Name", By(storage_class_name), NAME_TEXT).named(),
    string("Provisioner", Text("provisioner"), Field("storage.v1.StorageClass", "provisioner")),
    string(
        "ReclaimPolicy",
        TextOr("reclaimPolicy", "Delete"),
        Field("storage.v1.StorageClass", "reclaimPolicy"),
    ),
    string(
        "VolumeBindingMode",
        TextOr("volumeBindingMode", "Immediate"),
        Field("storage.v1.StorageClass", "volumeBindingMode"),
    ),
    string(
        "AllowVolumeExpansion",
        BoolOr("allowVolumeExpansion", false),
        Field("storage.v1.StorageClass", "allowVolumeExpansion"),
    ),
    AGE,
];

const VOLUME_ATTACHMENT: Columns = &[
    NAME,
    string("Attacher", Text("spec.attacher"), Field("storage.v1.VolumeAttachmentSpec", "attacher"))
        .named(),
    string(
        "PV",
        Text("spec.source.persistentVolumeName"),
        Field("storage.v1.VolumeAttachmentSource", "persistentVolumeName"),
    ),
    string("Node", Text("spec.nodeName"), Field("storage.v1.VolumeAttachmentSpec", "nodeName")),
    boolean(
        "Attached",
        BoolOr("status.attached", false),
        Field("storage.v1.VolumeAttachmentStatus", "attached"),
    ),
    AGE,
];

const VOLUME_ATTRIBUTES_CLASS: Columns = &[
    NAME,
    string(
        "DriverName",
        Text("driverName"),
        Field("storage.v1.VolumeAttributesClass", "driverName"),
    ),
    AGE,
];

fn audiences(driver: &Value) -> Value {
    match at(driver, "spec.tokenRequests") {
        Some(_) => {
            let requests = items_at(driver, "spec.tokenRequests").iter();
            joined(requests.map(|request| str_at(request, "audience"))).into()
        }
        None => "<unset>".into(),
    }
}

fn storage_class_name(class: &Value) -> Value {
    let name = str_at(class, "metadata.name");
    let is_default = |key| annotation(class, key) == Some("true");
    if is_default("storageclass.kubernetes.io/is-default-class")
        || is_default("storageclass.beta.kubernetes.io/is-default-class")
    {
        format!("{name} (default)").into()
    } else {
        name.into()
    }
}
