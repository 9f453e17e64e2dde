//! Properties of every entry on any tree: nothing panics, and setting defaults is idempotent.

use pintle_value::{Map, Str, Value};
use proptest::prelude::*;

use super::fact;
use crate::groups;

/// Names that the entries read, so that random trees have members for them.
const NAMES: &[&str] = &[
    "metadata",
    "spec",
    "status",
    "template",
    "labels",
    "annotations",
    "name",
    "uid",
    "containers",
    "initContainers",
    "volumes",
    "ports",
    "port",
    "containerPort",
    "targetPort",
    "protocol",
    "type",
    "resources",
    "limits",
    "requests",
    "cpu",
    "memory",
    "image",
    "selector",
    "matchLabels",
    "strategy",
    "rollingUpdate",
    "updateStrategy",
    "metrics",
    "resource",
    "target",
    "current",
    "averageUtilization",
    "behavior",
    "scaleUp",
    "currentMetrics",
    "conditions",
    "apiVersion",
    "rules",
    "subjects",
    "roleRef",
    "kind",
    "webhooks",
    "clientConfig",
    "service",
    "finalizers",
    "data",
    "stringData",
    "immutable",
    "devices",
    "exactly",
    "basic",
    "jobTemplate",
    "versions",
    "storage",
    "names",
    "subsets",
    "limits",
    "default",
    "max",
    "min",
    "volumeClaimTemplates",
    "clusterIPs",
    "clusterIP",
    "nodePort",
    "loadBalancer",
    "ingress",
    "hostNetwork",
    "env",
    "valueFrom",
    "podIPs",
    "secrets",
    "series",
    "source",
    "involvedObject",
    "eventTime",
    "autoscaling.alpha.kubernetes.io/metrics",
    "http",
    "paths",
    "cidrs",
    "parentRef",
    "replicas",
];

fn trees() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::Bool),
        prop_oneof![-2..3_i64, any::<i64>()].prop_map(Value::Int),
        prop::sample::select(vec![
            "",
            "a",
            "RollingUpdate",
            "ClientIP",
            "LoadBalancer",
            "ClusterIP",
            "1",
            "500m",
            "Container",
            "autoscaling/v2",
            "Resource",
            "cpu",
            "ServiceAccount",
            "[{\"type\":\"Resource\"}]",
            "ü:@/",
        ])
        .prop_map(Value::from),
    ];
    leaf.prop_recursive(6, 64, 6, |inner| {
        let name = prop::sample::select(NAMES);
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::Array),
            prop::collection::vec((name, inner), 0..6).prop_map(|members| {
                let members = members.into_iter().map(|(name, value)| (Str::from(name), value));
                Value::Object(members.collect::<Map>())
            }),
        ]
    })
}

/// Calls all functions of an entry with a pair of objects.
fn exercise(new: &Value, old: &Value) {
    for kind in groups::all() {
        let strategy = &kind.strategy;
        let mut once = new.clone();
        (strategy.default)(&mut once);
        let mut twice = once.clone();
        (strategy.default)(&mut twice);
        assert_eq!(once, twice, "{}/{} defaults", kind.group, kind.resource);

        (strategy.prepare_create)(&mut once);
        (strategy.prepare_update)(&mut twice, old);
        let _ = (strategy.validate)(new, None);
        let _ = (strategy.validate)(new, Some(old));
        let _ = (strategy.warnings)(new, Some(old));
        let _ = (strategy.held)(new);
        let _ = strategy.graceful.map(|graceful| (graceful.period)(new));
        (strategy.terminating)(&mut once);
        for field in strategy.fields {
            let _ = field.value.of(new);
        }
        for form in kind.conversions {
            let mut object = new.clone();
            (form.to_stored)(&mut object);
            (form.from_stored)(&mut object);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn nothing_panics_and_defaults_are_set_once(new in trees(), old in trees()) {
        exercise(&new, &old);
    }
}

#[test]
fn the_same_holds_for_golden_objects() {
    let folder = format!("{}/../../../shared/fixtures/golden", env!("CARGO_MANIFEST_DIR"));
    let Ok(files) = std::fs::read_dir(folder) else { return };
    for file in files {
        let name = file.expect("a readable folder").file_name().into_string().expect("text");
        if name.ends_with(".json")
            && let Some(object) = fact(&format!("fixtures/golden/{name}"))
        {
            exercise(&object, &Value::object());
        }
    }
}
