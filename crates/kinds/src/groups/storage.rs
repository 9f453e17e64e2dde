//! `storage.k8s.io/v1`.

use pintle_meta::{field::Error, names, object};
use pintle_registry::NameRule;
use pintle_value::Path;

use crate::{
    checks::{forbidden, frozen, unchanged},
    conversion::renamed,
    defaults::{
        Constant::{Bool, Text, Texts},
        Defaults,
        Row::{Also, At, Empty, In, Unset},
        set,
    },
    kind::{Form, Kind, kind},
    pods,
    strategy::{PLAIN, STATUS_ALONE, Strategy, WITH_STATUS},
};

const STORAGE: &str = "storage.k8s.io";

pub(crate) const KINDS: &[Kind] = &[
    kind(STORAGE, "csidrivers", DRIVER),
    kind(STORAGE, "csinodes", CSI_NODE),
    kind(STORAGE, "csistoragecapacities", CAPACITY),
    kind(STORAGE, "storageclasses", CLASS),
    kind(STORAGE, "volumeattachments", ATTACHMENT),
    Kind {
        conversions: &[renamed!("v1beta1", "storage.k8s.io/v1beta1" => "storage.k8s.io/v1")],
        ..kind(STORAGE, "volumeattributesclasses", ATTRIBUTES_CLASS)
    },
];

const DRIVER: Strategy = Strategy {
    name: NameRule::Custom(driver_name),
    unconditional_update: false,
    delete_returns_object: true,
    default: |object| set(object, DRIVER_DEFAULTS),
    // Upstream raises a generation that it does not start.
    prepare_update: |new, old| {
        if new.get("spec") != old.get("spec") {
            let next = object::generation(old).saturating_add(1);
            new.object_entry("metadata").insert("generation", next);
        }
    },
    ..PLAIN
};

const DRIVER_DEFAULTS: Defaults = &[In(
    "spec",
    &[
        Unset("attachRequired", Bool(true)),
        Unset("podInfoOnMount", Bool(false)),
        Unset("storageCapacity", Bool(false)),
        Unset("fsGroupPolicy", Text("ReadWriteOnceWithFSType")),
        Empty("volumeLifecycleModes", Texts(&["Persistent"])),
        Unset("requiresRepublish", Bool(false)),
        Unset("seLinuxMount", Bool(false)),
    ],
)];

const CSI_NODE: Strategy =
    Strategy { unconditional_update: false, delete_returns_object: true, ..PLAIN };

const CAPACITY: Strategy = Strategy {
    unconditional_update: false,
    validate: |new, old| {
        unchanged(new, old, &[frozen(&["nodeTopology"]), frozen(&["storageClassName"])])
    },
    ..PLAIN
};

const CLASS: Strategy = Strategy {
    delete_returns_object: true,
    default: |object| set(object, CLASS_DEFAULTS),
    ..PLAIN
};

const CLASS_DEFAULTS: Defaults =
    &[Unset("reclaimPolicy", Text("Delete")), Unset("volumeBindingMode", Text("Immediate"))];

const ATTACHMENT: Strategy = Strategy {
    owned: STATUS_ALONE,
    unconditional_update: false,
    delete_returns_object: true,
    default: |object| set(object, ATTACHMENT_DEFAULTS),
    ..WITH_STATUS
};

const ATTACHMENT_DEFAULTS: Defaults =
    &[At("spec", &[At("source", &[At("inlineVolumeSpec", &[Also(pods::DISKS)])])])];

const ATTRIBUTES_CLASS: Strategy = Strategy {
    delete_returns_object: true,
    validate: |new, old| {
        let frozen = [
            forbidden(&["driverName"], "updates to driverName are forbidden."),
            forbidden(&["parameters"], "updates to parameters are forbidden."),
        ];
        unchanged(new, old, &frozen)
    },
    ..PLAIN
};

/// A driver's name is a subdomain but for the case of its letters, and short.
fn driver_name(name: &str, prefix: bool) -> Vec<String> {
    const LENGTH_MAX: usize = 63;
    let mut wrong = Vec::new();
    if name.len() > LENGTH_MAX {
        wrong.push(Error::too_long(&Path::root(), LENGTH_MAX).detail);
    }
    wrong.extend(names::subdomain_rule(&name.to_lowercase(), prefix));
    wrong
}
