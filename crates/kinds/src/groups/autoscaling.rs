//! `autoscaling`: HorizontalPodAutoscalers, in v2 and v1. (Scale is a subresource of other kinds.)

mod rules;

use pintle_value::{Map, Value};

use crate::{
    conversion::autoscaler::{cpu_default, from_v2, to_v2},
    defaults::{
        Condition::Is,
        Constant::{Int, Made, Text},
        Defaults, Row,
        Row::{At, Empty, In, Unset, When},
        set,
    },
    kind::{Form, Kind, kind},
    strategy::{AS_UPDATE, Part, Strategy, WITH_STATUS, part},
};

pub(crate) const KINDS: &[Kind] = &[Kind {
    conversions: &[Form { version: "v1", to_stored: to_v2, from_stored: from_v2 }],
    ..kind("autoscaling", "horizontalpodautoscalers", AUTOSCALER)
}];

const AUTOSCALER: Strategy = Strategy {
    metadata: AS_UPDATE,
    default: |object| set(object, DEFAULTS),
    validate: rules::validate,
    declared_rules: false,
    parts: &[Part { validate: |new, _| rules::validate_status(new), ..part("status") }],
    ..WITH_STATUS
};

/// The conversion sets the metrics of an object of v1.
const DEFAULTS: Defaults = &[
    When(
        Is("apiVersion", "autoscaling/v2"),
        &[In("spec", &[Empty("metrics", Made(|| vec![cpu_default()].into()))])],
    ),
    In("spec", &[Unset("minReplicas", Int(1)), BEHAVIOR]),
];

pub(crate) const BEHAVIOR: Row = At(
    "behavior",
    &[
        In(
            "scaleUp",
            &[
                Unset("stabilizationWindowSeconds", Int(0)),
                Unset("selectPolicy", Text("Max")),
                Unset(
                    "policies",
                    Made(|| Value::from(vec![policy("Pods", 4), policy("Percent", 100)])),
                ),
            ],
        ),
        In(
            "scaleDown",
            &[
                Unset("selectPolicy", Text("Max")),
                Unset("policies", Made(|| Value::from(vec![policy("Percent", 100)]))),
            ],
        ),
    ],
);

fn policy(kind: &str, value: i64) -> Value {
    let mut policy = Map::new();
    policy.insert("type", kind);
    policy.insert("value", value);
    policy.insert("periodSeconds", 15);
    Value::Object(policy)
}
