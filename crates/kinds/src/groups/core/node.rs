//! Nodes.

mod annotations;
mod rules;
mod taints;

use pintle_registry::Owned;
use pintle_value::{Map, Value};

use crate::{
    defaults::{
        Defaults,
        Row::{At, Do, Rounded},
        first_of, is_set, set,
    },
    gates,
    strategy::{PLAIN, Part, Strategy, part, selectable, truth},
};

/// A kubelet registers its node with a status, so a create stores the status and an update does not
/// change it. Only writers of the `status` subresource own its fields.
pub(super) const NODE: Strategy = Strategy {
    fields: &[selectable!(
        "spec.unschedulable" by |node| truth(node, &["spec", "unschedulable"]), of "spec"."unschedulable"
    )],
    default: |object| {
        set(object, DEFAULTS);
    },
    // The feature of these fields is removed.
    gated: &[
        (&["spec"], &[gates::off(&[&["configSource"]])]),
        (&["status"], &[gates::off(&[&["config"]])]),
    ],
    prepare_update: |new, old| {
        let node = new.make_object();
        match old.get("status").cloned() {
            Some(status) => _ = node.insert("status", status),
            None => _ = node.remove("status"),
        }
    },
    validate: rules::validate,
    declared_rules: false,
    owned: &[("", Owned::Except(&[&["status"]]))],
    parts: &[Part { validate: rules::validate_update, ..part("status") }],
    warnings: |node, _| {
        let mut warnings = Vec::new();
        if node.at(&["spec", "configSource"]).is_some() {
            warnings.push("spec.configSource: the feature is removed".to_owned());
        }
        if !node.str_at(&["spec", "externalID"]).unwrap_or_default().is_empty() {
            let words = "this field is deprecated, and is unused by Kubernetes";
            warnings.push(format!("spec.externalID: {words}"));
        }
        warnings
    },
    ..PLAIN
};

const DEFAULTS: Defaults = &[
    At("spec", &[Do(pod_ranges)]),
    At("status", &[Do(allocatable_is_capacity), Rounded("capacity"), Rounded("allocatable")]),
];

/// `podCIDR` is the first of `podCIDRs`.
fn pod_ranges(spec: &mut Map) {
    first_of(spec, ("podCIDR", "podCIDRs"), Value::as_str, |range| Value::from(range));
}

fn allocatable_is_capacity(status: &mut Map) {
    if let Some(capacity) = status.get("capacity").cloned()
        && !is_set(status, "allocatable")
    {
        status.insert("allocatable", capacity);
    }
}
