//! storage.k8s.io: classes of volumes, and what drivers say of themselves.

use pintle_value::Value;

use super::column::Cell::{BoolOr, By, Count, JoinedOr, Text, TextOr};
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
        "Whether volumes are attached to nodes first.",
    ),
    boolean(
        "PodInfoOnMount",
        BoolOr("spec.podInfoOnMount", false),
        "Whether the driver is told of the pod.",
    ),
    boolean(
        "StorageCapacity",
        BoolOr("spec.storageCapacity", false),
        "Whether pods are placed by the space there is.",
    ),
    string("TokenRequests", By(audiences), "Audiences of the tokens that the driver gets."),
    boolean(
        "RequiresRepublish",
        BoolOr("spec.requiresRepublish", false),
        "Whether volumes are mounted again and again.",
    ),
    string("Modes", JoinedOr("spec.volumeLifecycleModes", "<none>"), "How long volumes live."),
    AGE,
];

const CSI_NODE: Columns =
    &[NAME, integer("Drivers", Count("spec.drivers"), "Number of drivers on the node."), AGE];

const STORAGE_CLASS: Columns = &[
    string("Name", By(storage_class_name), NAME_TEXT).named(),
    string("Provisioner", Text("provisioner"), "What makes the volumes."),
    string("ReclaimPolicy", TextOr("reclaimPolicy", "Delete"), "What becomes of them at the end."),
    string(
        "VolumeBindingMode",
        TextOr("volumeBindingMode", "Immediate"),
        "When claims get their volumes.",
    ),
    string(
        "AllowVolumeExpansion",
        BoolOr("allowVolumeExpansion", false),
        "Whether claims may grow.",
    ),
    AGE,
];

const VOLUME_ATTACHMENT: Columns = &[
    NAME,
    string("Attacher", Text("spec.attacher"), "The driver that attaches the volume.").named(),
    string("PV", Text("spec.source.persistentVolumeName"), "The volume."),
    string("Node", Text("spec.nodeName"), "The node that the volume is attached to."),
    boolean("Attached", BoolOr("status.attached", false), "Whether that is done."),
    AGE,
];

const VOLUME_ATTRIBUTES_CLASS: Columns =
    &[NAME, string("DriverName", Text("driverName"), "The driver that knows the attributes."), AGE];

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
