//! The kinds of the core group that have no file of their own.

use pintle_value::Value;

use super::column::Cell::{By, Count, Int, Labels, Text};
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
    string("Status", By(component_status), "Whether the component is healthy."),
    string("Message", By(|c| healthy(c, "message")), "What the health check answered."),
    string("Error", By(|c| healthy(c, "error")), "Why the health check failed."),
];

const CONFIG_MAP: Columns =
    &[NAME, string("Data", By(config_map_data), "Number of entries, textual and binary."), AGE];

const NAMESPACE: Columns =
    &[NAME, string("Status", Text("status.phase"), "Whether it is in use or on its way out."), AGE];

const POD_TEMPLATE: Columns = &[
    NAME,
    containers("template.spec.containers"),
    images("template.spec.containers"),
    string("Pod Labels", Labels("template.metadata.labels"), "Labels of its pods."),
];

const REPLICATION_CONTROLLER: Columns = &[
    NAME,
    integer("Desired", Int("spec.replicas"), "Pods wanted."),
    integer("Current", Int("status.replicas"), "Pods there are."),
    integer("Ready", Int("status.readyReplicas"), "Pods that are ready."),
    AGE,
    containers("spec.template.spec.containers").wide(),
    images("spec.template.spec.containers").wide(),
    string("Selector", Labels("spec.selector"), "Labels of the pods that belong to it.").wide(),
];

const RESOURCE_QUOTA: Columns = &[
    NAME,
    string("Request", By(|q| used_of_hard(q, false)), "Used of what may be requested."),
    string("Limit", By(|q| used_of_hard(q, true)), "Used of what limits may add up to."),
    AGE,
];

const SECRET: Columns = &[
    NAME,
    string("Type", Text("type"), "What the secret is for."),
    string("Data", Count("data"), "Number of entries."),
    AGE,
];

/// What a request that failed or deleted something answers.
const STATUS: Columns = &[
    string("Status", Text("status"), "Success or Failure."),
    string("Reason", Text("reason"), "Why, in one word for programs."),
    string("Message", Text("message"), "Why, in words for people."),
];

/// The first `Healthy` condition of a component: those have no `status` around them.
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

/// What is used of the limits, or of everything else that the quota is for.
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
