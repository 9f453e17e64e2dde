//! apps.

use pintle_meta::GroupVersion;
use pintle_meta::labels::Selector;
use pintle_value::Value;

use super::column::Cell::{By, Int, Labels};
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
    string("Controller", By(controller), "The object whose revision this is."),
    string("Revision", Int("revision"), "The revision's number."),
    AGE,
];

const DAEMON_SET: Columns = &[
    NAME,
    integer("Desired", Int("status.desiredNumberScheduled"), "Nodes that should run a pod."),
    integer("Current", Int("status.currentNumberScheduled"), "Those that do."),
    integer("Ready", Int("status.numberReady"), "Those whose pod is ready."),
    integer("Up-to-date", Int("status.updatedNumberScheduled"), "Those with the newest pod."),
    integer("Available", Int("status.numberAvailable"), "Those whose pod is available."),
    string("Node Selector", Labels("spec.template.spec.nodeSelector"), "Labels of the nodes."),
    AGE,
    containers("spec.template.spec.containers").wide(),
    images("spec.template.spec.containers").wide(),
    selector("spec.selector").wide(),
];

const DEPLOYMENT: Columns = &[
    NAME,
    string("Ready", By(ready_of_desired), "Pods that are ready, of those wanted."),
    string("Up-to-date", Int("status.updatedReplicas"), "Pods of the newest template."),
    string("Available", Int("status.availableReplicas"), "Pods that are available."),
    AGE,
    containers("spec.template.spec.containers").wide(),
    images("spec.template.spec.containers").wide(),
    string("Selector", By(deployment_selector), "Labels of its pods.").wide(),
];

const REPLICA_SET: Columns = &[
    NAME,
    integer("Desired", Int("spec.replicas"), "Pods wanted."),
    integer("Current", Int("status.replicas"), "Pods there are."),
    integer("Ready", Int("status.readyReplicas"), "Pods that are ready."),
    AGE,
    containers("spec.template.spec.containers").wide(),
    images("spec.template.spec.containers").wide(),
    selector("spec.selector").wide(),
];

const STATEFUL_SET: Columns = &[
    NAME,
    string("Ready", By(ready_of_desired), "Pods that are ready, of those wanted."),
    AGE,
    containers("spec.template.spec.containers").wide(),
    images("spec.template.spec.containers").wide(),
];

fn ready_of_desired(object: &Value) -> Value {
    format!("{}/{}", int_at(object, "status.readyReplicas"), int_at(object, "spec.replicas")).into()
}

/// Upstream has its own words for a Deployment's selector: nothing instead of `<none>`, and
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
