//! Pods.

use pintle_registry::{Generation, GracePeriod, Owned};
use pintle_value::{Str, Value};

use crate::strategy::Graceful;
use crate::{
    checks::items,
    conditions,
    defaults::set,
    pods,
    strategy::{
        AS_UPDATE_AND_NEW, Part, Strategy, WITH_STATUS, keep_metadata, part, selectable, text,
        truth,
    },
};

pub(super) const POD: Strategy = Strategy {
    // Writers of the other subresources can own any field, though only the subresource's fields are
    // stored.
    owned: &[(
        "status",
        Owned::Except(&[
            &["metadata", "deletionTimestamp"],
            &["metadata", "ownerReferences"],
            &["spec"],
        ]),
    )],
    generation: Generation::Spec,
    delete_returns_object: true,
    graceful: Some(Graceful {
        period: grace_period,
        reads: &[
            &["spec", "nodeName"],
            &["spec", "terminationGracePeriodSeconds"],
            &["status", "phase"],
        ],
    }),
    fields: &[
        selectable!(selective "spec.nodeName" at "spec"."nodeName"),
        selectable!("spec.restartPolicy" at "spec"."restartPolicy"),
        selectable!("spec.schedulerName" at "spec"."schedulerName"),
        selectable!("spec.serviceAccountName" at "spec"."serviceAccountName"),
        selectable!("spec.hostNetwork" by |pod| truth(pod, &["spec", "hostNetwork"]), of "spec"."hostNetwork"),
        selectable!("status.phase" at "status"."phase"),
        selectable!("status.podIP" by first_ip, of "status"."podIPs"),
        // Upstream accepts the label, but no pod has the field, so it is always empty.
        selectable!("status.podIPs" by |_| Str::default()),
        selectable!("status.nominatedNodeName" at "status"."nominatedNodeName"),
        // The old name of spec.nodeName.
        selectable!(selective "spec.host" at "spec"."nodeName"),
    ],
    default: |object| set(object, pods::POD),
    prepare_create: pods::begin,
    note_time: conditions::note_time,
    gated: &[(&["spec"], pods::GATED), (&["status"], pods::GATED_STATUS)],
    validate: |new, old| match old {
        None => pods::validate_pod(new),
        Some(old) => pods::validate_update(new, old),
    },
    declared_rules: false,
    early_warnings: pods::warn_of_profiles,
    // Updates give no warnings, because components make most of them.
    warnings: |new, old| if old.is_none() { pods::warn_of_pod(new) } else { Vec::new() },
    parts: &[
        Part {
            prepare: pods::confine_status,
            validate: pods::validate_status,
            warnings: |new, _| pods::warn_of_status(new),
            ..part("status")
        },
        Part {
            metadata: Some(AS_UPDATE_AND_NEW),
            prepare: keep_metadata,
            validate: pods::validate_ephemeral_containers,
            ..part("ephemeralcontainers")
        },
        Part {
            metadata: Some(AS_UPDATE_AND_NEW),
            prepare: |new, old| {
                keep_metadata(new, old);
                pods::confine_resize(new, old);
            },
            validate: pods::validate_resize,
            ..part("resize")
        },
    ],
    ..WITH_STATUS
};

/// Only pods end gracefully, and only if they are on a node and have not finished.
fn grace_period(pod: &Value) -> GracePeriod {
    let is_scheduled = pod.str_at(&["spec", "nodeName"]).is_some_and(|node| !node.is_empty());
    let is_finished = matches!(pod.str_at(&["status", "phase"]), Some("Succeeded" | "Failed"));
    if !is_scheduled || is_finished {
        return GracePeriod::Zero;
    }
    let seconds = pod.at(&["spec", "terminationGracePeriodSeconds"]).and_then(Value::as_int);
    match seconds {
        None | Some(0) => GracePeriod::Seconds(0),
        // Upstream treats a negative period as one second.
        Some(seconds) => GracePeriod::Seconds(seconds.max(1)),
    }
}

fn first_ip(pod: &Value) -> Str {
    let ips = items(pod, &["status", "podIPs"]);
    ips.first().map_or_else(Str::default, |ip| text(ip, &["ip"]))
}
