//! ReplicaSets.

use super::{super::workload, REPLICAS, TEMPLATE};
use crate::{
    defaults::{Defaults, Row::In, set},
    field::{Errors, Field},
    pods,
    rules::{Rule::NotNegative, check},
    strategy::{AS_UPDATE, COUNTED_WITH_STATUS, Part, Strategy, part},
};

pub(super) const REPLICA_SET: Strategy = Strategy {
    metadata: AS_UPDATE,
    gated: pods::GATED_TEMPLATE,
    default: |object| set(object, DEFAULTS),
    validate: |new, old| {
        let object = Field::root(new);
        let spec = object.get("spec");
        let mut errors = Errors::new();
        check(&spec, &[NotNegative("replicas"), NotNegative("minReadySeconds")], &mut errors);
        // Upstream's message says "deployment" here, too.
        workload::check_selector(&spec, "empty selector is invalid for deployment", &mut errors);
        workload::check_template(&spec, old, "ReplicaSet", &mut errors);
        workload::check_same_selector(&spec, old, &mut errors);
        errors
    },
    declared_rules: false,
    warnings: |new, old| workload::warn(new, old, workload::TEMPLATE, Some(workload::NAME_WORDS)),
    parts: &[Part {
        validate: |new, old| workload::check_counts(new, old, workload::REPLICA_COUNTS),
        ..part("status")
    }],
    zeros: &[&["spec", "replicas"]],
    ..COUNTED_WITH_STATUS
};

const DEFAULTS: Defaults = &[In("spec", &[REPLICAS, TEMPLATE])];
