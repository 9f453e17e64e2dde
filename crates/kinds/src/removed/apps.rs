//! Workloads, in `extensions/v1beta1`, `apps/v1beta1` and `apps/v1beta2` (MIG-37 … MIG-40).
//!
//! `apps/v1beta2` is `apps/v1` under another name. The older two take selectors and labels from the
//! template, have other defaults, let selectors change, and have two members that `apps/v1` keeps
//! in annotations (upstream: `pkg/apis/{extensions,apps}/*/{conversion,defaults}.go`).

use pintle_meta::field::Errors;
use pintle_value::{Map, Value};

use super::{Removed, annotate, lenient, members_at, same, take_annotation};
use crate::{
    checks::IMMUTABLE,
    conversion::set_api_version,
    defaults::{
        Condition::Is,
        Constant::{Int, Text},
        Defaults,
        Row::{At, Empty, In, Unset, When},
        is_filled, set,
    },
    groups::apps::{CLAIM_TEMPLATES, PARTITION, ROLLING_NUMBERS, TEMPLATE},
    kind::Form,
    strategy::Strategy,
};

pub(super) const ROWS: &[Removed] = &[
    same!(
        "apps" / "v1beta2",
        "apps",
        "controllerrevisions",
        "ControllerRevision",
        "apps" / "v1",
        9..16
    ),
    same!("apps" / "v1beta2", "apps", "daemonsets", "DaemonSet", "apps" / "v1", 9..16),
    same!("apps" / "v1beta2", "apps", "deployments", "Deployment", "apps" / "v1", 9..16),
    same!("apps" / "v1beta2", "apps", "replicasets", "ReplicaSet", "apps" / "v1", 9..16),
    same!("apps" / "v1beta2", "apps", "statefulsets", "StatefulSet", "apps" / "v1", 9..16),
    same!(
        "apps" / "v1beta1",
        "apps",
        "controllerrevisions",
        "ControllerRevision",
        "apps" / "v1",
        8..16
    ),
    Removed {
        form: Form {
            version: "v1beta1",
            to_stored: deployment_to_v1,
            from_stored: |object| deployment_from_v1(object, "apps/v1beta1"),
        },
        strategy: |today| Strategy {
            default: |object| default(object, APPS_DEPLOYMENT),
            validate: |new, old| selector_may_change("deployments", new, old),
            ..today.clone()
        },
        ..same!("apps" / "v1beta1", "apps", "deployments", "Deployment", "apps" / "v1", 8..16)
    },
    Removed {
        form: Form {
            version: "v1beta1",
            to_stored: |object| set_api_version(object, "apps/v1"),
            from_stored: stateful_set_from_v1,
        },
        strategy: |today| Strategy {
            default: |object| default(object, APPS_STATEFUL_SET),
            ..today.clone()
        },
        ..same!("apps" / "v1beta1", "apps", "statefulsets", "StatefulSet", "apps" / "v1", 8..16)
    },
    Removed {
        form: Form {
            version: "v1beta1",
            to_stored: daemon_set_to_v1,
            from_stored: daemon_set_from_v1,
        },
        strategy: |today| Strategy {
            default: |object| default(object, DAEMON_SET),
            validate: |new, old| selector_may_change("daemonsets", new, old),
            ..today.clone()
        },
        ..same!(
            "extensions" / "v1beta1",
            "extensions",
            "daemonsets",
            "DaemonSet",
            "apps" / "v1",
            8..16
        )
    },
    Removed {
        form: Form {
            version: "v1beta1",
            to_stored: deployment_to_v1,
            from_stored: |object| deployment_from_v1(object, "extensions/v1beta1"),
        },
        strategy: |today| Strategy {
            default: |object| default(object, DEPLOYMENT),
            validate: |new, old| selector_may_change("deployments", new, old),
            ..today.clone()
        },
        ..same!(
            "extensions" / "v1beta1",
            "extensions",
            "deployments",
            "Deployment",
            "apps" / "v1",
            8..16
        )
    },
    Removed {
        strategy: |today| Strategy {
            default: |object| default(object, REPLICA_SET),
            validate: |new, old| selector_may_change("replicasets", new, old),
            ..today.clone()
        },
        ..same!(
            "extensions" / "v1beta1",
            "extensions",
            "replicasets",
            "ReplicaSet",
            "apps" / "v1",
            8..16
        )
    },
];

/// The annotation in which `apps/v1` stores `spec.rollbackTo.revision` of a Deployment.
const ROLLBACK_TO: &str = "deprecated.deployment.rollback.to";
/// The annotation in which `apps/v1` stores `spec.templateGeneration` of a DaemonSet.
const TEMPLATE_GENERATION: &str = "deprecated.daemonset.template.generation";

fn deployment_to_v1(deployment: &mut Value) {
    set_api_version(deployment, "apps/v1");
    take_annotation(deployment, ROLLBACK_TO);
    let rollback = members_at(deployment, &["spec"]).remove("rollbackTo");
    if let Some(rollback) = rollback.filter(|rollback| !rollback.is_null()) {
        let revision = rollback.get("revision").and_then(Value::as_int).unwrap_or(0);
        annotate(deployment, ROLLBACK_TO, revision.to_string());
    }
}

fn deployment_from_v1(deployment: &mut Value, api_version: &'static str) {
    set_api_version(deployment, api_version);
    if let Some(revision) = number(deployment, ROLLBACK_TO) {
        take_annotation(deployment, ROLLBACK_TO);
        let rollback = members_at(deployment, &["spec"]).entry_object("rollbackTo");
        rollback.insert("revision", revision);
    }
}

fn daemon_set_to_v1(daemon_set: &mut Value) {
    set_api_version(daemon_set, "apps/v1");
    let generation = members_at(daemon_set, &["spec"]).remove("templateGeneration");
    let generation = generation.as_ref().and_then(Value::as_int).unwrap_or(0);
    annotate(daemon_set, TEMPLATE_GENERATION, generation.to_string());
}

fn daemon_set_from_v1(daemon_set: &mut Value) {
    set_api_version(daemon_set, "extensions/v1beta1");
    if let Some(generation) = number(daemon_set, TEMPLATE_GENERATION) {
        take_annotation(daemon_set, TEMPLATE_GENERATION);
        members_at(daemon_set, &["spec"]).insert("templateGeneration", generation);
    }
}

/// Adds a zero `observedGeneration`: v1beta1 always shows this member, v1 omits it if it is zero.
fn stateful_set_from_v1(stateful_set: &mut Value) {
    set_api_version(stateful_set, "apps/v1beta1");
    members_at(stateful_set, &["status"]).entry_or("observedGeneration", || Value::Int(0));
}

/// The number in an annotation. A text that is not a number stays in the annotation.
fn number(object: &Value, annotation: &str) -> Option<i64> {
    object.str_at(&["metadata", "annotations", annotation])?.parse().ok()
}

/// Drops the error for a changed selector: `apps/v1` forbids the change, these versions allow it.
fn selector_may_change(resource: &str, new: &Value, old: Option<&Value>) -> Errors {
    lenient(("apps", resource), new, old, |field, words| {
        field == "spec.selector" && words == IMMUTABLE
    })
}

fn default(object: &mut Value, rows: Defaults) {
    take_labels(object.make_object());
    set(object, rows);
}

/// Defaults the selector and the object's labels to the template's labels.
fn take_labels(object: &mut Map) {
    let template = object.get("spec").and_then(|spec| spec.at(&["template", "metadata", "labels"]));
    let Some(labels) = template.filter(|labels| labels.as_object().is_some()).cloned() else {
        return;
    };
    let spec = object.entry_object("spec");
    if spec.get("selector").is_none_or(Value::is_null) {
        spec.insert("selector", Value::from([("matchLabels", labels.clone())]));
    }
    let metadata = object.entry_object("metadata");
    if !is_filled(metadata, "labels") {
        metadata.insert("labels", labels);
    }
}

const DEPLOYMENT: Defaults = &[In(
    "spec",
    &[
        Unset("replicas", Int(1)),
        In(
            "strategy",
            &[
                Empty("type", Text("RollingUpdate")),
                When(Is("type", "RollingUpdate"), &[In("rollingUpdate", &[])]),
                At("rollingUpdate", &[Unset("maxUnavailable", Int(1)), Unset("maxSurge", Int(1))]),
            ],
        ),
        // The largest number stands for "no limit".
        Unset("progressDeadlineSeconds", Int(i32::MAX as i64)),
        Unset("revisionHistoryLimit", Int(i32::MAX as i64)),
        TEMPLATE,
    ],
)];

const APPS_DEPLOYMENT: Defaults = &[In(
    "spec",
    &[
        Unset("replicas", Int(1)),
        In(
            "strategy",
            &[
                Empty("type", Text("RollingUpdate")),
                When(
                    Is("type", "RollingUpdate"),
                    &[In(
                        "rollingUpdate",
                        &[Unset("maxUnavailable", Text("25%")), Unset("maxSurge", Text("25%"))],
                    )],
                ),
            ],
        ),
        Unset("revisionHistoryLimit", Int(2)),
        Unset("progressDeadlineSeconds", Int(600)),
        TEMPLATE,
    ],
)];

const DAEMON_SET: Defaults = &[In(
    "spec",
    &[
        In(
            "updateStrategy",
            &[
                Empty("type", Text("OnDelete")),
                When(
                    Is("type", "RollingUpdate"),
                    &[In(
                        "rollingUpdate",
                        &[Unset("maxUnavailable", Int(1)), Unset("maxSurge", Int(0))],
                    )],
                ),
                ROLLING_NUMBERS,
            ],
        ),
        Unset("revisionHistoryLimit", Int(10)),
        TEMPLATE,
    ],
)];

const REPLICA_SET: Defaults = &[In("spec", &[Unset("replicas", Int(1)), TEMPLATE])];

const APPS_STATEFUL_SET: Defaults = &[In(
    "spec",
    &[
        Empty("podManagementPolicy", Text("OrderedReady")),
        In("updateStrategy", &[Empty("type", Text("OnDelete")), PARTITION]),
        Unset("replicas", Int(1)),
        Unset("revisionHistoryLimit", Int(10)),
        In(
            "persistentVolumeClaimRetentionPolicy",
            &[Empty("whenDeleted", Text("Retain")), Empty("whenScaled", Text("Retain"))],
        ),
        TEMPLATE,
        CLAIM_TEMPLATES,
    ],
)];
