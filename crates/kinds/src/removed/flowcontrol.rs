//! Flow schemas and priority levels, in v1alpha1 and v1beta1 to v1beta3 (MIG-45).
//!
//! Versions before v1beta3 have another name for shares. None of these versions can distinguish
//! absent shares from 0; v1beta3 has an annotation for this (upstream:
//! `pkg/apis/flowcontrol/v1beta*`).

use pintle_value::{Map, Value};

use super::{Removed, annotate, same, take_annotation};
use crate::{
    conversion::set_api_version,
    defaults::{
        Constant::Int,
        Defaults, Row,
        Row::{At, Empty, Unset},
        set,
    },
    kind::Form,
    strategy::Strategy,
};

macro_rules! row {
    ($version:literal, $resource:literal, $kind:literal, $since:literal .. $until:literal) => {
        same!(
            "flowcontrol.apiserver.k8s.io" / $version,
            "flowcontrol",
            $resource,
            $kind,
            "flowcontrol.apiserver.k8s.io" / "v1",
            $since..$until
        )
    };
}

const SCHEMA_OF_BETA2: &str = "flowcontrol.apiserver.k8s.io/v1beta2 FlowSchema";
const LEVEL_OF_BETA2: &str = "flowcontrol.apiserver.k8s.io/v1beta2 PriorityLevelConfiguration";
const SCHEMA_OF_BETA3: &str = "flowcontrol.apiserver.k8s.io/v1beta3 FlowSchema";
const LEVEL_OF_BETA3: &str = "flowcontrol.apiserver.k8s.io/v1beta3 PriorityLevelConfiguration";

pub(super) const ROWS: &[Removed] = &[
    Removed {
        replacement: SCHEMA_OF_BETA2,
        ..row!("v1alpha1", "flowschemas", "FlowSchema", 20..21)
    },
    Removed {
        replacement: LEVEL_OF_BETA2,
        form: Form {
            version: "v1alpha1",
            to_stored: assured_to_v1,
            from_stored: |level| assured_from_v1(level, "flowcontrol.apiserver.k8s.io/v1alpha1"),
        },
        strategy: |today| Strategy { default: |level| set(level, ASSURED), ..today.clone() },
        ..row!("v1alpha1", "prioritylevelconfigurations", "PriorityLevelConfiguration", 20..21)
    },
    Removed {
        replacement: SCHEMA_OF_BETA3,
        ..row!("v1beta1", "flowschemas", "FlowSchema", 23..26)
    },
    Removed {
        replacement: LEVEL_OF_BETA3,
        form: Form {
            version: "v1beta1",
            to_stored: assured_to_v1,
            from_stored: |level| assured_from_v1(level, "flowcontrol.apiserver.k8s.io/v1beta1"),
        },
        strategy: |today| Strategy { default: |level| set(level, ASSURED), ..today.clone() },
        ..row!("v1beta1", "prioritylevelconfigurations", "PriorityLevelConfiguration", 23..26)
    },
    Removed {
        replacement: SCHEMA_OF_BETA3,
        ..row!("v1beta2", "flowschemas", "FlowSchema", 26..29)
    },
    Removed {
        replacement: LEVEL_OF_BETA3,
        form: Form {
            version: "v1beta2",
            to_stored: assured_to_v1,
            from_stored: |level| assured_from_v1(level, "flowcontrol.apiserver.k8s.io/v1beta2"),
        },
        strategy: |today| Strategy { default: |level| set(level, ASSURED), ..today.clone() },
        ..row!("v1beta2", "prioritylevelconfigurations", "PriorityLevelConfiguration", 26..29)
    },
    row!("v1beta3", "flowschemas", "FlowSchema", 29..32),
    Removed {
        form: Form { version: "v1beta3", to_stored: nominal_to_v1, from_stored: nominal_from_v1 },
        strategy: |today| Strategy { default: nominal, ..today.clone() },
        ..row!("v1beta3", "prioritylevelconfigurations", "PriorityLevelConfiguration", 29..32)
    },
];

/// The annotation of a v1beta3 object whose shares are 0, not absent.
const ZERO_SHARES: &str = "flowcontrol.k8s.io/v1beta3-preserve-zero-concurrency-shares";

const ASSURED: Defaults =
    &[At("spec", &[EXEMPT, At("limited", &[Empty("assuredConcurrencyShares", Int(30))]), LIMITED])];

const EXEMPT: Row =
    At("exempt", &[Unset("nominalConcurrencyShares", Int(0)), Unset("lendablePercent", Int(0))]);

const LIMITED: Row = At(
    "limited",
    &[
        Unset("lendablePercent", Int(0)),
        At(
            "limitResponse",
            &[At(
                "queuing",
                &[
                    Empty("handSize", Int(8)),
                    Empty("queues", Int(64)),
                    Empty("queueLengthLimit", Int(50)),
                ],
            )],
        ),
    ],
);

fn nominal(level: &mut Value) {
    set(level, &[At("spec", &[EXEMPT, LIMITED])]);
    if level.at(&["metadata", "annotations", ZERO_SHARES]).is_none() {
        set(level, &[At("spec", &[At("limited", &[Empty("nominalConcurrencyShares", Int(30))])])]);
    }
}

fn limited(level: &mut Value) -> Option<&mut Map> {
    level.get_mut("spec")?.as_object_mut()?.get_mut("limited")?.as_object_mut()
}

fn assured_to_v1(level: &mut Value) {
    set_api_version(level, "flowcontrol.apiserver.k8s.io/v1");
    if let Some(limited) = limited(level) {
        let shares = limited.remove("assuredConcurrencyShares").unwrap_or(Value::Int(0));
        limited.insert("nominalConcurrencyShares", shares);
    }
}

fn assured_from_v1(level: &mut Value, api_version: &'static str) {
    set_api_version(level, api_version);
    if let Some(limited) = limited(level) {
        let shares = limited.remove("nominalConcurrencyShares").unwrap_or(Value::Int(0));
        limited.insert("assuredConcurrencyShares", shares);
    }
}

fn nominal_to_v1(level: &mut Value) {
    set_api_version(level, "flowcontrol.apiserver.k8s.io/v1");
    take_annotation(level, ZERO_SHARES);
    if let Some(limited) = limited(level) {
        limited.entry_or("nominalConcurrencyShares", || Value::Int(0));
    }
}

fn nominal_from_v1(level: &mut Value) {
    set_api_version(level, "flowcontrol.apiserver.k8s.io/v1beta3");
    let shares = limited(level).map(|limited| limited.get("nominalConcurrencyShares").cloned());
    let is_zero = |shares: Option<Value>| shares.is_none_or(|shares| shares == Value::Int(0));
    if shares.is_some_and(is_zero) {
        annotate(level, ZERO_SHARES, String::new());
    }
}
