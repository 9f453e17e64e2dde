//! Deployments.

use pintle_meta::field::Error;
use pintle_registry::{Generation, Owned};

use super::{
    super::workload::{self, Counts},
    HISTORY, REPLICAS, ROLLING, TEMPLATE, shown_strategy,
};
use crate::{
    defaults::{
        Condition::Is,
        Constant::{Int, Text},
        Defaults,
        Row::{In, Unset, When},
        set,
    },
    field::{Errors, Field},
    pods,
    rules::{
        Rule::{Do, NotNegative},
        Rules, check,
    },
    strategy::{AS_UPDATE, COUNTED_WITH_STATUS, Part, Strategy, keep_labels, part},
};

pub(super) const DEPLOYMENT: Strategy = Strategy {
    metadata: AS_UPDATE,
    gated: pods::GATED_TEMPLATE,
    owned: &[("status", Owned::Except(&[&["metadata", "labels"], &["spec"]]))],
    generation: Generation::SpecAnd("annotations"),
    default: |object| set(object, DEFAULTS),
    validate: |new, old| {
        let object = Field::root(new);
        let spec = object.get("spec");
        let mut errors = Errors::new();
        check(&spec, &[NotNegative("replicas")], &mut errors);
        workload::check_selector(&spec, "empty selector is invalid for deployment", &mut errors);
        workload::check_template(&spec, old, "ReplicaSet", &mut errors);
        check(&spec, ROLLOUT, &mut errors);
        workload::check_same_selector(&spec, old, &mut errors);
        errors
    },
    declared_rules: false,
    warnings: |new, old| workload::warn(new, old, workload::TEMPLATE, Some(workload::NAME_WORDS)),
    parts: &[Part {
        prepare: keep_labels,
        validate: |new, old| workload::check_counts(new, old, COUNTS),
        ..part("status")
    }],
    zeros: &[&["spec", "replicas"]],
    ..COUNTED_WITH_STATUS
};

const DEFAULTS: Defaults = &[In(
    "spec",
    &[
        REPLICAS,
        In(
            "strategy",
            &[
                ROLLING,
                When(
                    Is("type", "RollingUpdate"),
                    &[In(
                        "rollingUpdate",
                        &[Unset("maxUnavailable", Text("25%")), Unset("maxSurge", Text("25%"))],
                    )],
                ),
            ],
        ),
        HISTORY,
        Unset("progressDeadlineSeconds", Int(600)),
        TEMPLATE,
    ],
)];

const ROLLOUT: Rules = &[
    Do(strategy),
    NotNegative("minReadySeconds"),
    NotNegative("revisionHistoryLimit"),
    NotNegative("progressDeadlineSeconds"),
    Do(deadline),
];

const ROLLING_MEMBERS: &[(&str, &str)] =
    &[("MaxUnavailable", "maxUnavailable"), ("MaxSurge", "maxSurge")];

fn strategy(spec: &Field<'_>, errors: &mut Errors) {
    let strategy = spec.get("strategy");
    let rolling = strategy.get("rollingUpdate");
    match strategy.str("type") {
        "Recreate" => {
            if rolling.is_set() {
                let words = "may not be specified when strategy `type` is 'Recreate'";
                errors.push(rolling.forbidden(words));
            }
        }
        "RollingUpdate" if rolling.is_set() => check_rolling(&rolling, errors),
        "RollingUpdate" => {
            errors.push(rolling.required("this should be defaulted and never be nil"));
        }
        _ => errors.push(Error {
            value: Some(shown_strategy(&strategy, ROLLING_MEMBERS)),
            ..strategy.not_supported(&["Recreate", "RollingUpdate"])
        }),
    }
}

/// Checks that `maxUnavailable` and `maxSurge` are not both 0: an update must first delete old pods
/// or first create new ones.
fn check_rolling(rolling: &Field<'_>, errors: &mut Errors) {
    let (unavailable, surge) = (rolling.get("maxUnavailable"), rolling.get("maxSurge"));
    workload::check_share(&unavailable, errors);
    workload::check_share(&surge, errors);
    if workload::is_zero(&unavailable) && workload::is_zero(&surge) {
        errors.push(unavailable.invalid("may not be 0 when `maxSurge` is 0"));
    }
    workload::check_not_above_all(&unavailable, errors);
}

fn deadline(spec: &Field<'_>, errors: &mut Errors) {
    let deadline = spec.get("progressDeadlineSeconds");
    let ready = spec.get("minReadySeconds").int().unwrap_or(0);
    if deadline.int().is_some_and(|seconds| seconds <= ready) {
        errors.push(deadline.invalid("must be greater than minReadySeconds"));
    }
}

const COUNTS: &Counts = &Counts {
    members: &[
        "observedGeneration",
        "replicas",
        "updatedReplicas",
        "readyReplicas",
        "availableReplicas",
        "unavailableReplicas",
        "terminatingReplicas",
    ],
    within: &[
        ("updatedReplicas", "replicas", "cannot be greater than status.replicas"),
        ("readyReplicas", "replicas", "cannot be greater than status.replicas"),
        ("availableReplicas", "replicas", "cannot be greater than status.replicas"),
        ("availableReplicas", "readyReplicas", "cannot be greater than readyReplicas"),
    ],
    collisions: true,
};
