//! Nodes.

use std::collections::BTreeSet;

use pintle_value::Value;

use super::column::Cell::{By, FilledOr, Text};
use super::column::Description::{Field, Words};
use super::column::{AGE, NAME, string};
use super::read::{bool_at, is_true, items_at, str_at};
use super::text::{filled, joined};
use super::{Columns, Kind};

pub(super) const KINDS: &[Kind] = &[Kind::new("", "Node", NODE)];

const NODE: Columns = &[
    NAME,
    string("Status", By(status), Words("The status of the node")),
    string("Roles", By(roles), Words("The roles of the node")),
    AGE,
    string(
        "Version",
        Text("status.nodeInfo.kubeletVersion"),
        Field("core.v1.NodeSystemInfo", "kubeletVersion"),
    ),
    string(
        "Internal-IP",
        By(|n| address(n, "InternalIP")),
        Field("core.v1.NodeStatus", "addresses"),
    )
    .wide(),
    string(
        "External-IP",
        By(|n| address(n, "ExternalIP")),
        Field("core.v1.NodeStatus", "addresses"),
    )
    .wide(),
    string(
        "OS-Image",
        FilledOr("status.nodeInfo.osImage", "<unknown>"),
        Field("core.v1.NodeSystemInfo", "osImage"),
    )
    .wide(),
    string("Kernel-Version", By(kernel), Field("core.v1.NodeSystemInfo", "kernelVersion")).wide(),
    string(
        "Container-Runtime",
        FilledOr("status.nodeInfo.containerRuntimeVersion", "<unknown>"),
        Field("core.v1.NodeSystemInfo", "containerRuntimeVersion"),
    )
    .wide(),
];

fn status(node: &Value) -> Value {
    // If a type has several conditions, upstream uses the last one here and the first elsewhere.
    let conditions = items_at(node, "status.conditions");
    let ready = match conditions.iter().rfind(|condition| str_at(condition, "type") == "Ready") {
        Some(condition) if is_true(condition) => "Ready",
        Some(_) => "NotReady",
        None => "Unknown",
    };
    match bool_at(node, "spec.unschedulable") {
        Some(true) => format!("{ready},SchedulingDisabled").into(),
        _ => ready.into(),
    }
}

fn roles(node: &Value) -> Value {
    let labels = node.at(&["metadata", "labels"]).and_then(Value::as_object);
    let labels = labels.into_iter().flat_map(|labels| labels.iter());
    let roles =
        labels.filter_map(|(key, value)| match key.strip_prefix("node-role.kubernetes.io/") {
            Some(role) => Some(role),
            None if key == "kubernetes.io/role" => value.as_str(),
            None => None,
        });
    let roles = joined(roles.filter(|role| !role.is_empty()).collect::<BTreeSet<_>>());
    filled(&roles, "<none>").into()
}

fn address(node: &Value, kind: &str) -> Value {
    let mut addresses = items_at(node, "status.addresses").iter();
    let found = addresses.find(|address| str_at(address, "type") == kind);
    found.map_or("<none>", |address| str_at(address, "address")).into()
}

fn kernel(node: &Value) -> Value {
    let version = filled(str_at(node, "status.nodeInfo.kernelVersion"), "<unknown>");
    match str_at(node, "status.nodeInfo.architecture") {
        "" => version.into(),
        architecture => format!("{version} ({architecture})").into(),
    }
}
