//! `autoscaling`: HorizontalPodAutoscalers, in v2 and v1. (Scale is a form of other kinds.)

use pintle_meta::field::Error;
use pintle_value::{Map, Path, Value};

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
    strategy::{Strategy, WITH_STATUS},
};

pub(crate) const KINDS: &[Kind] = &[Kind {
    conversions: &[Form { version: "v1", to_stored: to_v2, from_stored: from_v2 }],
    ..kind("autoscaling", "horizontalpodautoscalers", AUTOSCALER)
}];

const AUTOSCALER: Strategy = Strategy {
    default: |object| set(object, DEFAULTS),
    validate: |new, _| validate(new),
    ..WITH_STATUS
};

/// An object of v1 has its metrics from the conversion.
const DEFAULTS: Defaults = &[
    When(
        Is("apiVersion", "autoscaling/v2"),
        &[In("spec", &[Empty("metrics", Made(|| vec![cpu_default()].into()))])],
    ),
    In("spec", &[Unset("minReplicas", Int(1)), BEHAVIOR]),
];

const BEHAVIOR: Row = At(
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

fn validate(autoscaler: &Value) -> Vec<Error> {
    let spec = Path::new("spec");
    let of = |member| autoscaler.at(&["spec", member]).and_then(Value::as_int);
    let mut errors = Vec::new();
    if let Some(least @ ..1) = of("minReplicas") {
        let words = "must be greater than or equal to 1";
        errors.push(Error::invalid(&spec.field("minReplicas"), &least.into(), words));
    }
    let most = of("maxReplicas").unwrap_or(0);
    let path = spec.field("maxReplicas");
    if most < 1 {
        errors.push(Error::invalid(&path, &most.into(), "must be greater than 0"));
    }
    if of("minReplicas").is_some_and(|least| most < least) {
        let words = "must be greater than or equal to `minReplicas`";
        errors.push(Error::invalid(&path, &most.into(), words));
    }
    errors
}
