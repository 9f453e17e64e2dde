//! Pods.

use pintle_registry::{Generation, GracePeriod, Owned};
use pintle_value::{Map, Str, Value};

use crate::{
    checks::items,
    defaults::set,
    pods,
    strategy::{Strategy, WITH_STATUS, selectable, text, truth},
};

pub(super) const POD: Strategy = Strategy {
    owned: &[
        ("ephemeralcontainers", Owned::Only(&[&["spec", "ephemeralContainers"]])),
        (
            "resize",
            Owned::Only(&[
                &["spec", "containers", "*", "resizePolicy"],
                &["spec", "containers", "*", "resources"],
                &["spec", "initContainers", "*", "resizePolicy"],
                &["spec", "initContainers", "*", "resources"],
            ]),
        ),
        (
            "status",
            Owned::Except(&[
                &["metadata", "deletionTimestamp"],
                &["metadata", "ownerReferences"],
                &["spec"],
            ]),
        ),
    ],
    generation: Generation::Spec,
    delete_returns_object: true,
    graceful: Some(grace_period),
    fields: &[
        selectable!("spec.nodeName" at "spec"."nodeName"),
        selectable!("spec.restartPolicy" at "spec"."restartPolicy"),
        selectable!("spec.schedulerName" at "spec"."schedulerName"),
        selectable!("spec.serviceAccountName" at "spec"."serviceAccountName"),
        selectable!("spec.hostNetwork" by |pod| truth(pod, &["spec", "hostNetwork"])),
        selectable!("status.phase" at "status"."phase"),
        selectable!("status.podIP" by first_ip),
        // Upstream takes the label, but no pod has the field: it is always empty.
        selectable!("status.podIPs" by |_| Str::default()),
        selectable!("status.nominatedNodeName" at "status"."nominatedNodeName"),
        // The old name of spec.nodeName.
        selectable!("spec.host" at "spec"."nodeName"),
    ],
    default: |object| set(object, pods::POD),
    prepare_create: begin,
    validate: |new, old| if old.is_none() { pods::validate_pod(new) } else { Vec::new() },
    ..WITH_STATUS
};

/// Pods alone end gracefully: when a kubelet has them and they still run.
fn grace_period(pod: &Value) -> GracePeriod {
    let is_scheduled = pod.str_at(&["spec", "nodeName"]).is_some_and(|node| !node.is_empty());
    let is_finished = matches!(pod.str_at(&["status", "phase"]), Some("Succeeded" | "Failed"));
    if !is_scheduled || is_finished {
        return GracePeriod::Immediate;
    }
    let seconds = pod.at(&["spec", "terminationGracePeriodSeconds"]).and_then(Value::as_int);
    match seconds {
        None | Some(0) => GracePeriod::Immediate,
        // Upstream takes any negative period for the shortest.
        Some(seconds) => GracePeriod::Seconds(seconds.max(1)),
    }
}

/// A new pod waits to be scheduled.
fn begin(pod: &mut Value) {
    let mut status = Map::new();
    status.insert("phase", "Pending");
    status.insert("qosClass", pods::quality(pod));
    if !items(pod, &["spec", "schedulingGates"]).is_empty() {
        let gated = Value::from([
            ("type", "PodScheduled"),
            ("status", "False"),
            ("reason", "SchedulingGated"),
            ("message", "Scheduling is blocked due to non-empty scheduling gates"),
        ]);
        status.insert("conditions", vec![gated]);
    }
    pod.make_object().insert("status", status);
}

fn first_ip(pod: &Value) -> Str {
    let ips = items(pod, &["status", "podIPs"]);
    ips.first().map_or_else(Str::default, |ip| text(ip, &["ip"]))
}
