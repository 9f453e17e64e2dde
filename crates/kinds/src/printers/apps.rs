//! apps.

use pintle_meta::GroupVersion;
use pintle_meta::labels::Selector;
use pintle_value::Value;

use super::column::Cell::{By, Int, Labels};
use super::column::Description::{Field, Words};
use super::column::{AGE, NAME, containers, images, integer, selector, string};
use super::read::{at, bool_at, int_at, items_at, str_at};
use super::text::qualified;
use super::{Columns, Kind};

const GROUP: &str = "apps";

pub(super) const KINDS: &[Kind] = &[
    Kind::new(GROUP, "ControllerRevision", CONTROLLER_REVISION),
    Kind::new(GROUP, "DaemonSet", DAEMON_SET),
    Kind::new(GROUP, "Deployment", DEPLOYMENT),
    Kind::new(GROUP, "ReplicaSet", REPLICA_SET),
    Kind::new(GROUP, "StatefulSet", STATEFUL_SET),
];

const CONTROLLER_REVISION: Columns = &[
    NAME,
    string("Controller", By(controller), Words("Controller of the object")),
    string("Revision", Int("revision"), Field("apps.v1.ControllerRevision", "revision")),
    AGE,
];

const DAEMON_SET: Columns = &[
    NAME,
    integer(
        "Desired",
        Int("status.desiredNumberScheduled"),
        Field("apps.v1.DaemonSetStatus", "desiredNumberScheduled"),
    ),
    integer(
        "Current",
        Int("status.currentNumberScheduled"),
        Field("apps.v1.DaemonSetStatus", "currentNumberScheduled"),
    ),
    integer("Ready", Int("status.numberReady"), Field("apps.v1.DaemonSetStatus", "numberReady")),
    integer(
        "Up-to-date",
        Int("status.updatedNumberScheduled"),
        Field("apps.v1.DaemonSetStatus", "updatedNumberScheduled"),
    ),
    integer(
        "Available",
        Int("status.numberAvailable"),
        Field("apps.v1.DaemonSetStatus", "numberAvailable"),
    ),
    string(
        "Node Selector",
        Labels("spec.template.spec.nodeSelector"),
        Field("core.v1.PodSpec", "nodeSelector"),
    ),
    AGE,
    containers("spec.template.spec.containers").wide(),
    images("spec.template.spec.containers").wide(),
    selector("spec.selector", Field("apps.v1.DaemonSetSpec", "selector")).wide(),
];

const DEPLOYMENT: Columns = &[
    NAME,
    string("Ready", By(ready_of_desired), Words("Number of the pod with ready state")),
    string(
        "Up-to-date",
        Int("status.updatedReplicas"),
        Field("apps.v1.DeploymentStatus", "updatedReplicas"),
    ),
    string(
        "Available",
        Int("status.availableReplicas"),
        Field("apps.v1.DeploymentStatus", "availableReplicas"),
    ),
    AGE,
    containers("spec.template.spec.containers").wide(),
    images("spec.template.spec.containers").wide(),
    string("Selector", By(deployment_selector), Field("apps.v1.DeploymentSpec", "selector")).wide(),
];

const REPLICA_SET: Columns = &[
    NAME,
    integer("Desired", Int("spec.replicas"), Field("apps.v1.ReplicaSetSpec", "replicas")),
    integer("Current", Int("status.replicas"), Field("apps.v1.ReplicaSetStatus", "replicas")),
    integer(
        "Ready",
        Int("status.readyReplicas"),
        Field("apps.v1.ReplicaSetStatus", "readyReplicas"),
    ),
    AGE,
    containers("spec.template.spec.containers").wide(),
    images("spec.template.spec.containers").wide(),
    selector("spec.selector", Field("apps.v1.ReplicaSetSpec", "selector")).wide(),
];

const STATEFUL_SET: Columns = &[
    NAME,
    string("Ready", By(ready_of_desired), Words("Number of the pod with ready state")),
    AGE,
    containers("spec.template.spec.containers").wide(),
    images("spec.template.spec.containers").wide(),
];

fn ready_of_desired(object: &Value) -> Value {
    format!("{}/{}", int_at(object, "status.readyReplicas"), int_at(object, "spec.replicas")).into()
}

/// Upstream has other texts for a Deployment's selector: an empty text instead of `<none>`, and
/// `<invalid>` instead of `<error>`.
fn deployment_selector(deployment: &Value) -> Value {
    match Selector::from_label_selector(at(deployment, "spec.selector")) {
        Ok(selector) => selector.to_string().into(),
        Err(_) => "<invalid>".into(),
    }
}

fn controller(revision: &Value) -> Value {
    let mut owners = items_at(revision, "metadata.ownerReferences").iter();
    let Some(owner) = owners.find(|owner| bool_at(owner, "controller") == Some(true)) else {
        return "<none>".into();
    };
    let group = GroupVersion::parse(str_at(owner, "apiVersion")).unwrap_or_default().group;
    let kind = qualified(str_at(owner, "kind"), &group).to_lowercase();
    format!("{kind}/{}", str_at(owner, "name")).into()
}
