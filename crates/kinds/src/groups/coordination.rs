//! `coordination.k8s.io`: leases.

use pintle_meta::field::Error;
use pintle_value::{Map, Value};

use crate::{
    checks::{path, spec_not_negative},
    conversion::renamed,
    kind::{Form, Kind, kind},
    strategy::{PLAIN, Strategy},
};

const COORDINATION: &str = "coordination.k8s.io";

pub(crate) const KINDS: &[Kind] = &[
    kind(COORDINATION, "leases", LEASE),
    Kind {
        conversions: &[renamed!(
            "v1alpha2",
            "coordination.k8s.io/v1alpha2" => "coordination.k8s.io/v1beta1"
        )],
        ..kind(COORDINATION, "leasecandidates", CANDIDATE)
    },
];

const CANDIDATE: Strategy =
    Strategy { create_on_update: true, unconditional_update: false, ..PLAIN };

const LEASE: Strategy = Strategy {
    create_on_update: true,
    unconditional_update: false,
    // CoordinatedLeaderElection is off.
    prepare_create: |lease| drop_coordination(lease, None),
    prepare_update: |new, old| {
        let stored = old.get("spec").and_then(Value::as_object).cloned();
        drop_coordination(new, stored.as_ref());
    },
    validate: |new, _| {
        let mut errors = Vec::new();
        let duration = ["spec", "leaseDurationSeconds"];
        if let Some(value @ Value::Int(..=0)) = new.at(&duration) {
            errors.push(Error::invalid(&path(&duration), value, "must be greater than 0"));
        }
        spec_not_negative(new, &["leaseTransitions"], &mut errors);
        errors
    },
    ..PLAIN
};

fn drop_coordination(lease: &mut Value, stored: Option<&Map>) {
    if let Some(Value::Object(spec)) = lease.get_mut("spec") {
        let used = |member: &str| stored.is_some_and(|stored| stored.contains_key(member));
        spec.retain(|member, _| {
            !matches!(member.as_str(), "strategy" | "preferredHolder") || used(member)
        });
    }
}
