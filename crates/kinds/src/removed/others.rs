//! Kinds whose removed versions differ little or not at all from the current one, with their
//! differences.

use pintle_meta::field::Errors;
use pintle_value::{Map, Value};

use super::{Removed, lenient, members_at, same};
use crate::{
    conversion::{event, rename, set_api_version},
    defaults::{
        Constant::{EmptyObject, Int, Text, Texts},
        Defaults, Row,
        Row::{Also, At, Each, Empty, Unset},
        set,
    },
    kind::Form,
    strategy::Strategy,
};

pub(super) const ROWS: &[Removed] = &[
    Removed {
        strategy: |today| Strategy {
            default: |object| set(object, MUTATING_WEBHOOKS),
            validate: |new, old| webhooks("mutatingwebhookconfigurations", new, old),
            ..today.clone()
        },
        ..same!(
            "admissionregistration.k8s.io" / "v1beta1",
            "admissionregistration",
            "mutatingwebhookconfigurations",
            "MutatingWebhookConfiguration",
            "admissionregistration.k8s.io" / "v1",
            16..22
        )
    },
    Removed {
        strategy: |today| Strategy {
            default: |object| set(object, VALIDATING_WEBHOOKS),
            validate: |new, old| webhooks("validatingwebhookconfigurations", new, old),
            ..today.clone()
        },
        ..same!(
            "admissionregistration.k8s.io" / "v1beta1",
            "admissionregistration",
            "validatingwebhookconfigurations",
            "ValidatingWebhookConfiguration",
            "admissionregistration.k8s.io" / "v1",
            16..22
        )
    },
    Removed {
        replacement: "",
        ..same!(
            "admissionregistration.k8s.io" / "v1beta1",
            "admissionregistration",
            "validatingadmissionpolicies",
            "ValidatingAdmissionPolicy",
            "admissionregistration.k8s.io" / "v1",
            31..34
        )
    },
    Removed {
        replacement: "",
        ..same!(
            "admissionregistration.k8s.io" / "v1beta1",
            "admissionregistration",
            "validatingadmissionpolicybindings",
            "ValidatingAdmissionPolicyBinding",
            "admissionregistration.k8s.io" / "v1",
            31..34
        )
    },
    same!("batch" / "v1beta1", "batch", "cronjobs", "CronJob", "batch" / "v1", 21..25),
    Removed {
        replacement: "",
        ..same!("batch" / "v2alpha1", "batch", "cronjobs", "CronJob", "batch" / "v1", 20..21)
    },
    same!(
        "coordination.k8s.io" / "v1beta1",
        "coordination",
        "leases",
        "Lease",
        "coordination.k8s.io" / "v1",
        19..22
    ),
    Removed {
        form: Form { version: "v1beta1", to_stored: slice_to_v1, from_stored: slice_from_v1 },
        // Only v1 ignores the topology that clients send.
        strategy: |today| Strategy {
            prepare_create: |_| {},
            prepare_update: |_, _| {},
            ..today.clone()
        },
        ..same!(
            "discovery.k8s.io" / "v1beta1",
            "discovery",
            "endpointslices",
            "EndpointSlice",
            "discovery.k8s.io" / "v1",
            21..25
        )
    },
    Removed {
        replacement: "",
        form: Form {
            version: "v1alpha1",
            to_stored: |slice| {
                // This version has the name of the node only in the topology.
                each_endpoint(slice, node_from_topology);
                slice_to_v1(slice);
            },
            from_stored: |slice| {
                slice_from_v1(slice);
                set_api_version(slice, "discovery.k8s.io/v1alpha1");
            },
        },
        strategy: |today| Strategy {
            prepare_create: |_| {},
            prepare_update: |_, _| {},
            ..today.clone()
        },
        ..same!(
            "discovery.k8s.io" / "v1alpha1",
            "discovery",
            "endpointslices",
            "EndpointSlice",
            "discovery.k8s.io" / "v1",
            20..21
        )
    },
    Removed {
        form: Form {
            version: "v1beta1",
            to_stored: event::to_core,
            from_stored: |object| {
                event::from_core(object);
                set_api_version(object, "events.k8s.io/v1beta1");
            },
        },
        replacement: "",
        // Only v1 requires complete events.
        strategy: |today| Strategy {
            validate: |new, old| lenient(("", "events"), new, old, |_, _| false),
            ..today.clone()
        },
        ..same!(
            "events.k8s.io" / "v1beta1",
            "events",
            "events",
            "Event",
            "events.k8s.io" / "v1",
            22..25
        )
    },
    Removed {
        replacement: "",
        ..same!(
            "node.k8s.io" / "v1beta1",
            "node",
            "runtimeclasses",
            "RuntimeClass",
            "node.k8s.io" / "v1",
            22..25
        )
    },
    Removed {
        form: Form { version: "v1alpha1", to_stored: runtime_to_v1, from_stored: runtime_from_v1 },
        ..same!(
            "node.k8s.io" / "v1alpha1",
            "node",
            "runtimeclasses",
            "RuntimeClass",
            "node.k8s.io" / "v1",
            22..25
        )
    },
    Removed {
        form: Form { version: "v1beta1", to_stored: budget_to_v1, from_stored: budget_from_v1 },
        ..same!(
            "policy" / "v1beta1",
            "policy",
            "poddisruptionbudgets",
            "PodDisruptionBudget",
            "policy" / "v1",
            21..25
        )
    },
    same!(
        "scheduling.k8s.io" / "v1beta1",
        "scheduling",
        "priorityclasses",
        "PriorityClass",
        "scheduling.k8s.io" / "v1",
        14..22
    ),
    same!(
        "scheduling.k8s.io" / "v1alpha1",
        "scheduling",
        "priorityclasses",
        "PriorityClass",
        "scheduling.k8s.io" / "v1",
        14..22
    ),
    same!(
        "storage.k8s.io" / "v1beta1",
        "storage",
        "csidrivers",
        "CSIDriver",
        "storage.k8s.io" / "v1",
        19..22
    ),
    same!(
        "storage.k8s.io" / "v1beta1",
        "storage",
        "csinodes",
        "CSINode",
        "storage.k8s.io" / "v1",
        17..22
    ),
    same!(
        "storage.k8s.io" / "v1beta1",
        "storage",
        "csistoragecapacities",
        "CSIStorageCapacity",
        "storage.k8s.io" / "v1",
        24..27
    ),
    same!(
        "storage.k8s.io" / "v1beta1",
        "storage",
        "storageclasses",
        "StorageClass",
        "storage.k8s.io" / "v1",
        19..22
    ),
    same!(
        "storage.k8s.io" / "v1beta1",
        "storage",
        "volumeattachments",
        "VolumeAttachment",
        "storage.k8s.io" / "v1",
        19..22
    ),
    Removed {
        replacement: "storage.k8s.io/v1beta1 CSIStorageCapacity",
        ..same!(
            "storage.k8s.io" / "v1alpha1",
            "storage",
            "csistoragecapacities",
            "CSIStorageCapacity",
            "storage.k8s.io" / "v1",
            21..24
        )
    },
    Removed {
        strategy: |today| Strategy { default: |_| {}, ..today.clone() },
        ..same!(
            "storage.k8s.io" / "v1alpha1",
            "storage",
            "volumeattachments",
            "VolumeAttachment",
            "storage.k8s.io" / "v1",
            21..24
        )
    },
    same!(
        "storage.k8s.io" / "v1alpha1",
        "storage",
        "volumeattributesclasses",
        "VolumeAttributesClass",
        "storage.k8s.io" / "v1",
        32..35
    ),
];

const MUTATING_WEBHOOKS: Defaults =
    &[Each("webhooks", &[Also(WEBHOOK), Unset("reinvocationPolicy", Text("Never"))])];

const VALIDATING_WEBHOOKS: Defaults = &[Each("webhooks", WEBHOOK)];

const WEBHOOK: Defaults = &[
    Unset("failurePolicy", Text("Ignore")),
    Unset("matchPolicy", Text("Exact")),
    Unset("namespaceSelector", EmptyObject),
    Unset("objectSelector", EmptyObject),
    Unset("sideEffects", Text("Unknown")),
    Unset("timeoutSeconds", Int(30)),
    Empty("admissionReviewVersions", Texts(&["v1beta1"])),
    Each("rules", &[Unset("scope", Text("*"))]),
    At("clientConfig", &[SERVICE]),
];

const SERVICE: Row = At("service", &[Unset("port", Int(443))]);

/// Validates by v1's rules, but allows every value of `sideEffects`, as v1beta1 does.
fn webhooks(resource: &str, new: &Value, old: Option<&Value>) -> Errors {
    let kind = ("admissionregistration.k8s.io", resource);
    lenient(kind, new, old, |field, _| field.ends_with("].sideEffects"))
}

const ZONE: &str = "topology.kubernetes.io/zone";
const HOST: &str = "kubernetes.io/hostname";

fn slice_to_v1(slice: &mut Value) {
    set_api_version(slice, "discovery.k8s.io/v1");
    each_endpoint(slice, |endpoint| {
        let Some(Value::Object(mut topology)) = endpoint.remove("topology") else { return };
        if let Some(zone) = topology.remove(ZONE) {
            endpoint.insert("zone", zone);
        }
        // A host label equal to `nodeName` is redundant and dropped.
        if topology.get(HOST).is_some() && topology.get(HOST) == endpoint.get("nodeName") {
            topology.remove(HOST);
        }
        if !topology.is_empty() {
            endpoint.insert("deprecatedTopology", topology);
        }
    });
}

fn node_from_topology(endpoint: &mut Map) {
    let host = endpoint.get("topology").and_then(|topology| topology.get(HOST)).cloned();
    host.into_iter().for_each(|host| _ = endpoint.insert("nodeName", host));
}

fn slice_from_v1(slice: &mut Value) {
    set_api_version(slice, "discovery.k8s.io/v1beta1");
    each_endpoint(slice, |endpoint| {
        let mut topology = match endpoint.remove("deprecatedTopology") {
            Some(Value::Object(topology)) => topology,
            _ => Map::new(),
        };
        if let Some(zone) = endpoint.remove("zone") {
            topology.insert(ZONE, zone);
        }
        let has_host = topology.get(HOST).and_then(Value::as_str).is_some_and(|h| !h.is_empty());
        if let Some(node) = endpoint.get("nodeName").filter(|_| !has_host).cloned() {
            topology.insert(HOST, node);
        }
        if !topology.is_empty() {
            endpoint.insert("topology", topology);
        }
    });
}

fn each_endpoint(slice: &mut Value, change: fn(&mut Map)) {
    let endpoints = slice.get_mut("endpoints").and_then(Value::as_array_mut);
    endpoints.into_iter().flatten().filter_map(Value::as_object_mut).for_each(change);
}

fn runtime_to_v1(class: &mut Value) {
    set_api_version(class, "node.k8s.io/v1");
    let class = class.make_object();
    if let Some(Value::Object(mut spec)) = class.remove("spec") {
        rename(&mut spec, [("runtimeHandler", "handler")]);
        for member in ["handler", "overhead", "scheduling"] {
            if let Some(value) = spec.remove(member) {
                class.insert(member, value);
            }
        }
    }
}

fn runtime_from_v1(class: &mut Value) {
    set_api_version(class, "node.k8s.io/v1alpha1");
    let class = class.make_object();
    rename(class, [("handler", "runtimeHandler")]);
    for member in ["runtimeHandler", "overhead", "scheduling"] {
        if let Some(value) = class.remove(member) {
            class.entry_object("spec").insert(member, value);
        }
    }
}

/// The label that marks an empty selector whose meaning differs between v1beta1 and v1.
const MATCHED: &str = "pdb.kubernetes.io/deprecated-v1beta1-empty-selector-match";

fn budget_to_v1(budget: &mut Value) {
    set_api_version(budget, "policy/v1");
    let spec = members_at(budget, &["spec"]);
    let Some(selector) = spec.get_mut("selector").filter(|selector| !selector.is_null()) else {
        return;
    };
    if is_empty(selector) {
        *selector = on_label("Exists");
    } else if *selector == on_label("DoesNotExist") {
        *selector = Value::object();
    } else {
        strip_label(selector);
    }
}

fn budget_from_v1(budget: &mut Value) {
    set_api_version(budget, "policy/v1beta1");
    let spec = members_at(budget, &["spec"]);
    let Some(selector) = spec.get_mut("selector").filter(|selector| !selector.is_null()) else {
        return;
    };
    if *selector == on_label("Exists") {
        *selector = Value::object();
    } else if is_empty(selector) {
        *selector = on_label("DoesNotExist");
    }
}

fn is_empty(selector: &Value) -> bool {
    ["matchLabels", "matchExpressions"].iter().all(|member| match selector.get(member) {
        Some(Value::Object(labels)) => labels.is_empty(),
        Some(Value::Array(expressions)) => expressions.is_empty(),
        _ => true,
    })
}

fn on_label(operator: &'static str) -> Value {
    let requirement = Value::from([("key", MATCHED), ("operator", operator)]);
    Value::from([("matchExpressions", vec![requirement])])
}

/// Removes the label that marks an empty selector in v1beta1; selectors of users never have it.
fn strip_label(selector: &mut Value) {
    let selector = selector.make_object();
    if let Some(labels) = selector.get_mut("matchLabels").and_then(Value::as_object_mut) {
        labels.remove(MATCHED);
    }
    let expressions = selector.get_mut("matchExpressions").and_then(Value::as_array_mut);
    if let Some(expressions) = expressions {
        expressions.retain(|one| one.str_at(&["key"]) != Some(MATCHED));
    }
}
