//! The kinds of the core group that have no file of their own.

use pintle_value::Value;

use super::column::Cell::{By, Count, Int, Labels, Text};
use super::column::Description::{Field, Words};
use super::column::{AGE, NAME, NAME_AND_AGE, containers, images, integer, string};
use super::read::{count_at, is_true, items_at, str_at};
use super::text::{amount, joined_with};
use super::{Columns, Kind};

pub(super) const KINDS: &[Kind] = &[
    Kind::new("", "ComponentStatus", COMPONENT_STATUS),
    Kind::new("", "ConfigMap", CONFIG_MAP),
    Kind::new("", "Namespace", NAMESPACE),
    Kind::new("", "PodTemplate", POD_TEMPLATE),
    Kind::new("", "ReplicationController", REPLICATION_CONTROLLER),
    Kind::new("", "ResourceQuota", RESOURCE_QUOTA),
    Kind::new("", "Secret", SECRET),
    Kind::new("", "ServiceAccount", NAME_AND_AGE),
    Kind::new("", "Status", STATUS),
];

const COMPONENT_STATUS: Columns = &[
    NAME,
    string("Status", By(component_status), Words("Status of the component conditions")),
    string("Message", By(|c| healthy(c, "message")), Words("Message of the component conditions")),
    string("Error", By(|c| healthy(c, "error")), Words("Error of the component conditions")),
];

const CONFIG_MAP: Columns =
    &[NAME, string("Data", By(config_map_data), Field("core.v1.ConfigMap", "data")), AGE];

const NAMESPACE: Columns =
    &[NAME, string("Status", Text("status.phase"), Words("The status of the namespace")), AGE];

const POD_TEMPLATE: Columns = &[
    NAME,
    containers("template.spec.containers"),
    images("template.spec.containers"),
    string(
        "Pod Labels",
        Labels("template.metadata.labels"),
        Words("The labels for the pod template."),
    ),
];

const REPLICATION_CONTROLLER: Columns = &[
    NAME,
    integer(
        "Desired",
        Int("spec.replicas"),
        Field("core.v1.ReplicationControllerSpec", "replicas"),
    ),
    integer(
        "Current",
        Int("status.replicas"),
        Field("core.v1.ReplicationControllerStatus", "replicas"),
    ),
    integer(
        "Ready",
        Int("status.readyReplicas"),
        Field("core.v1.ReplicationControllerStatus", "readyReplicas"),
    ),
    AGE,
    containers("spec.template.spec.containers").wide(),
    images("spec.template.spec.containers").wide(),
    string(
        "Selector",
        Labels("spec.selector"),
        Field("core.v1.ReplicationControllerSpec", "selector"),
    )
    .wide(),
];

const RESOURCE_QUOTA: Columns = &[
    NAME,
    string(
        "Request",
        By(|q| used_of_hard(q, false)),
        Words("Request represents a minimum amount of cpu/memory that a container may consume."),
    ),
    string(
        "Limit",
        By(|q| used_of_hard(q, true)),
        Words(
            "Limits control the maximum amount of cpu/memory that a container may use independent of contention on the node.",
        ),
    ),
    AGE,
];

const SECRET: Columns = &[
    NAME,
    string("Type", Text("type"), Field("core.v1.Secret", "type")),
    string("Data", Count("data"), Field("core.v1.Secret", "data")),
    AGE,
];

/// The columns of a Status, the response to failures and deletions.
const STATUS: Columns = &[
    string("Status", Text("status"), Field("meta.v1.Status", "status")),
    string("Reason", Text("reason"), Field("meta.v1.Status", "reason")),
    string("Message", Text("message"), Words("")),
];

/// The first `Healthy` condition of a component, whose conditions are not in a `status`.
fn health(component: &Value) -> Option<&Value> {
    items_at(component, "conditions").iter().find(|c| str_at(c, "type") == "Healthy")
}

fn healthy(component: &Value, member: &str) -> Value {
    health(component).map_or("", |condition| str_at(condition, member)).into()
}

fn component_status(component: &Value) -> Value {
    match health(component) {
        Some(condition) if is_true(condition) => "Healthy",
        Some(_) => "Unhealthy",
        None => "Unknown",
    }
    .into()
}

fn config_map_data(config_map: &Value) -> Value {
    (count_at(config_map, "data") + count_at(config_map, "binaryData")).into()
}

/// The used and hard amounts of the limits, or of all other resources of the quota.
fn used_of_hard(quota: &Value, limits: bool) -> Value {
    let hard = quota.at(&["status", "hard"]).and_then(Value::as_object);
    let resources = hard.into_iter().flat_map(|hard| hard.iter());
    let resources = resources.filter(|(name, _)| name.starts_with("limits.") == limits);
    let texts = resources.map(|(name, hard)| {
        let used = quota.at(&["status", "used", name]).map_or_else(|| "0".to_owned(), amount);
        format!("{name}: {used}/{}", amount(hard))
    });
    joined_with(texts, ", ").into()
}
