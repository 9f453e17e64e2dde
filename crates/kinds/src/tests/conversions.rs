//! Every version can express every other version's objects, without loss in a round trip (DEP-03).

use pintle_value::{Map, Value, json as codec};
use proptest::prelude::*;

use super::{fact, json};
use crate::{
    conversion::{
        autoscaler::{from_v2, to_v2},
        event::{from_core, to_core},
    },
    groups,
    kind::Form,
};

fn form(resource: &str, version: &str) -> &'static Form {
    let (group, plural) = resource.rsplit_once('/').unwrap_or(("", resource));
    let kind = groups::find(group, plural).unwrap_or_else(|| panic!("no entry for {resource}"));
    let mut forms = kind.conversions.iter();
    forms.find(|form| form.version == version).unwrap_or_else(|| panic!("{resource} {version}"))
}

/// EVT-04, EVT-07, MIG-03
#[test]
fn events_of_both_groups_are_the_same() {
    let core = r#"{"apiVersion":"v1","kind":"Event","metadata":{"name":"e"},
        "involvedObject":{"kind":"Pod"},"message":"m","reportingComponent":"c",
        "source":{"component":"s"},"firstTimestamp":"1","lastTimestamp":"2","count":3,
        "reason":"r","series":{"count":2}}"#;
    let new = r#"{"apiVersion":"events.k8s.io/v1","kind":"Event","metadata":{"name":"e"},
        "regarding":{"kind":"Pod"},"note":"m","reportingController":"c",
        "deprecatedSource":{"component":"s"},"deprecatedFirstTimestamp":"1",
        "deprecatedLastTimestamp":"2","deprecatedCount":3,"reason":"r","series":{"count":2}}"#;
    let mut event = json(core);
    from_core(&mut event);
    assert_eq!(event, json(new));
    to_core(&mut event);
    assert_eq!(event, json(core));
}

#[test]
fn golden_objects_round_trip() {
    for (file, resource, version) in [
        ("events.k8s.io.v1beta1.Event", "events.k8s.io/events", "v1"),
        ("resource.k8s.io.v1beta1.ResourceClaim", "resource.k8s.io/resourceclaims", "v1beta1"),
        ("resource.k8s.io.v1beta1.ResourceSlice", "resource.k8s.io/resourceslices", "v1beta1"),
    ] {
        let Some(golden) = fact(&format!("fixtures/golden/{file}.json")) else { return };
        let form = form(resource, version);
        let mut object = golden.clone();
        let group = resource.split('/').next().unwrap_or_default();
        object.make_object().insert("apiVersion", format!("{group}/{version}"));
        let before = object.clone();
        (form.to_stored)(&mut object);
        assert_ne!(object, before, "{file}");
        (form.from_stored)(&mut object);
        assert_eq!(object, before, "{file}");
    }
}

#[test]
fn devices_are_nested_differently_in_old_versions() {
    let beta = r#"{"apiVersion":"resource.k8s.io/v1beta1","spec":{"devices":{"requests":[
        {"name":"a","deviceClassName":"c","count":2},
        {"name":"b","deviceClassName":"","firstAvailable":[{"name":"s","deviceClassName":"d"}]}]}}}"#;
    let stable = r#"{"apiVersion":"resource.k8s.io/v1","spec":{"devices":{"requests":[
        {"name":"a","exactly":{"deviceClassName":"c","count":2}},
        {"name":"b","firstAvailable":[{"name":"s","deviceClassName":"d"}]}]}}}"#;
    let claims = form("resource.k8s.io/resourceclaims", "v1beta1");
    let mut claim = json(beta);
    (claims.to_stored)(&mut claim);
    assert_eq!(claim, json(stable));
    (claims.from_stored)(&mut claim);
    assert_eq!(claim, json(beta));
}

#[test]
fn equal_versions_differ_only_in_api_version() {
    let beta = form("networking.k8s.io/servicecidrs", "v1beta1");
    let mut object = json(r#"{"apiVersion":"networking.k8s.io/v1beta1","spec":{"cidrs":["c"]}}"#);
    let before = object.clone();
    (beta.to_stored)(&mut object);
    assert_eq!(object.str_at(&["apiVersion"]), Some("networking.k8s.io/v1"));
    (beta.from_stored)(&mut object);
    assert_eq!(object, before);
}

/// The v1 form of a v2 object has the other members in annotations.
#[test]
fn annotations_store_members_of_autoscalers_that_v1_lacks() {
    let mut autoscaler = json(
        r#"{"apiVersion":"autoscaling/v2","kind":"HorizontalPodAutoscaler",
            "metadata":{"name":"a","annotations":{"mine":"1"}},
            "spec":{"maxReplicas":3,"metrics":[
                {"type":"ContainerResource","containerResource":{"name":"memory","container":"c",
                    "target":{"type":"AverageValue","averageValue":"1Gi"}}},
                {"type":"Object","object":{"describedObject":{"kind":"Service","name":"s"},
                    "metric":{"name":"hits"},"target":{"type":"Value","value":"10"}}},
                {"type":"Resource","resource":{"name":"cpu",
                    "target":{"type":"Utilization","averageUtilization":50}}}],
            "behavior":{"scaleUp":{"stabilizationWindowSeconds":0,
                "policies":[{"type":"Pods","value":4,"periodSeconds":15}]}}},
            "status":{"currentMetrics":[{"type":"Resource","resource":{"name":"cpu",
                "current":{"averageUtilization":40,"averageValue":"400m"}}}],
                "conditions":[{"type":"AbleToScale","status":"True"}]}}"#,
    );
    let before = autoscaler.clone();
    from_v2(&mut autoscaler);
    let expected = json(
        r#"{"apiVersion":"autoscaling/v1","kind":"HorizontalPodAutoscaler",
            "metadata":{"name":"a","annotations":{"mine":"1",
                "autoscaling.alpha.kubernetes.io/metrics":"M",
                "autoscaling.alpha.kubernetes.io/behavior":"B",
                "autoscaling.alpha.kubernetes.io/current-metrics":"S",
                "autoscaling.alpha.kubernetes.io/conditions":"C"}},
            "spec":{"maxReplicas":3,"targetCPUUtilizationPercentage":50},
            "status":{"currentCPUUtilizationPercentage":40,"currentReplicas":0}}"#,
    );
    let mut shown = autoscaler.clone();
    for (short, letter, content) in [
        (
            "metrics",
            "M",
            r#"[{"type":"ContainerResource","containerResource":{"name":"memory","container":"c",
                "targetAverageValue":"1Gi"}},{"type":"Object","object":{
                "target":{"kind":"Service","name":"s"},"metricName":"hits","targetValue":"10"}}]"#,
        ),
        (
            "behavior",
            "B",
            r#"{"ScaleUp":{"StabilizationWindowSeconds":0,"Tolerance":null,
                "Policies":[{"Type":"Pods","Value":4,"PeriodSeconds":15}]}}"#,
        ),
        (
            "current-metrics",
            "S",
            r#"[{"type":"Resource","resource":{"name":"cpu","currentAverageUtilization":40,
                "currentAverageValue":"400m"}}]"#,
        ),
        ("conditions", "C", r#"[{"type":"AbleToScale","status":"True"}]"#),
    ] {
        let annotation = format!("autoscaling.alpha.kubernetes.io/{short}");
        let annotations = shown.object_entry("metadata").entry_object("annotations");
        let text = annotations.insert(annotation, letter).unwrap_or_default();
        assert_eq!(json(text.as_str().unwrap_or_default()), json(content), "{short}");
    }
    assert_eq!(shown, expected);
    to_v2(&mut autoscaler);
    assert_eq!(autoscaler, before);
}

#[test]
fn a_client_of_v1_changes_the_use_of_cpu() {
    let v2 = r#"{"apiVersion":"autoscaling/v2","metadata":{"name":"a"},"spec":{"metrics":[
        {"type":"Pods","pods":{"metric":{"name":"m"},
            "target":{"type":"AverageValue","averageValue":"1"}}},
        {"type":"Resource","resource":{"name":"cpu",
            "target":{"type":"Utilization","averageUtilization":50}}}]}}"#;
    let mut autoscaler = json(v2);
    from_v2(&mut autoscaler);
    autoscaler.object_entry("spec").insert("targetCPUUtilizationPercentage", 70);
    to_v2(&mut autoscaler);
    assert_eq!(autoscaler, json(&v2.replace("50", "70")));

    let mut minimal = json(r#"{"apiVersion":"autoscaling/v1","spec":{"maxReplicas":1}}"#);
    to_v2(&mut minimal);
    from_v2(&mut minimal);
    let target = minimal.at(&["spec", "targetCPUUtilizationPercentage"]);
    assert_eq!(target, Some(&Value::Int(80)), "the default shows in v1");
}

#[test]
fn unreadable_annotations_are_dropped() {
    for annotation in ["", "{", "null", "7", "[]", r#"[7,"a",{}]"#] {
        let mut annotations = Map::new();
        for short in ["metrics", "current-metrics", "conditions", "behavior"] {
            annotations.insert(format!("autoscaling.alpha.kubernetes.io/{short}"), annotation);
        }
        let mut autoscaler = json(r#"{"apiVersion":"autoscaling/v1","spec":{}}"#);
        autoscaler.object_entry("metadata").insert("annotations", annotations);
        to_v2(&mut autoscaler);
        assert!(autoscaler.at(&["metadata", "annotations"]).is_none(), "{annotation}");
        from_v2(&mut autoscaler);
    }
}

/// The text of a quantity.
fn quantity() -> impl Strategy<Value = Value> {
    (1..2000_i64).prop_map(|n| Value::from(format!("{n}m")))
}

fn object<const N: usize>(members: [(&str, Value); N]) -> Value {
    members.into_iter().map(|(key, value)| (key.into(), value)).collect::<Map>().into()
}

/// The value of a metric under `target` or `current`.
fn measure(member: &'static str, kind: &'static str, is_target: bool) -> BoxedStrategy<Value> {
    let value = match member {
        "averageUtilization" => (1..200_i64).prop_map(Value::Int).boxed(),
        _ => quantity().boxed(),
    };
    value
        .prop_map(move |value| {
            let mut measure = Map::new();
            measure.insert(member, value);
            if is_target {
                measure.insert("type", kind);
            }
            measure.into()
        })
        .boxed()
}

fn metric(is_target: bool) -> impl Strategy<Value = Value> {
    let part = if is_target { "target" } else { "current" };
    let average = || measure("averageValue", "AverageValue", is_target);
    let use_or_average =
        || prop_oneof![measure("averageUtilization", "Utilization", is_target), average()];
    let value_or_average = || prop_oneof![measure("value", "Value", is_target), average()];
    let name = || prop_oneof![Just("cpu"), Just("memory")];
    let id =
        object([("name", "hits".into()), ("selector", object([("matchLabels", Value::object())]))]);
    let (pods_id, object_id) = (id.clone(), id.clone());
    prop_oneof![
        (name(), use_or_average()).prop_map(move |(name, measure)| (
            "Resource",
            "resource",
            object([("name", name.into()), (part, measure)])
        )),
        (name(), use_or_average()).prop_map(move |(name, measure)| (
            "ContainerResource",
            "containerResource",
            object([("name", name.into()), ("container", "c".into()), (part, measure)])
        )),
        average().prop_map(move |measure| (
            "Pods",
            "pods",
            object([("metric", pods_id.clone()), (part, measure)])
        )),
        value_or_average().prop_map(move |measure| (
            "Object",
            "object",
            object([
                ("metric", object_id.clone()),
                ("describedObject", object([("kind", "Service".into()), ("name", "s".into())])),
                (part, measure)
            ])
        )),
        value_or_average().prop_map(move |measure| (
            "External",
            "external",
            object([("metric", id.clone()), (part, measure)])
        )),
    ]
    .prop_map(|(kind, member, source)| object([("type", kind.into()), (member, source)]))
}

/// Whether a metric is CPU utilization, the only metric with a member in v1.
fn is_cpu_use(metric: &Value) -> bool {
    metric.str_at(&["resource", "name"]) == Some("cpu")
        && metric.at(&["resource", "target", "averageUtilization"]).is_some()
}

proptest! {
    /// A round trip from v2 to v1 and back loses only the position of the CPU metric, which
    /// becomes the last.
    #[test]
    fn autoscalers_round_trip(
        metrics in prop::collection::vec(metric(true), 1..5)
            .prop_filter("one use of CPU", |m| m.iter().filter(|m| is_cpu_use(m)).count() < 2),
        current in prop::collection::vec(metric(false), 0..4),
        window in prop::option::of(0..3600_i64),
        annotated: bool,
    ) {
        let mut autoscaler = object([
            ("apiVersion", "autoscaling/v2".into()),
            ("metadata", object([("name", "a".into())])),
            ("spec", object([("maxReplicas", 3.into()), ("metrics", metrics.into())])),
            ("status", object([("desiredReplicas", 1.into())])),
        ]);
        if annotated {
            autoscaler.object_entry("metadata").insert("annotations", object([("a", "b".into())]));
        }
        if !current.is_empty() {
            autoscaler.object_entry("status").insert("currentMetrics", current);
        }
        if let Some(window) = window {
            let down = object([("stabilizationWindowSeconds", window.into())]);
            autoscaler.object_entry("spec").insert("behavior", object([("scaleDown", down)]));
        }
        let mut before = autoscaler.clone();
        let metrics = before.object_entry("spec").get_mut("metrics").and_then(Value::as_array_mut);
        metrics.expect("it has some").sort_by_key(is_cpu_use);
        from_v2(&mut autoscaler);
        prop_assert!(autoscaler.at(&["spec", "metrics"]).is_none());
        to_v2(&mut autoscaler);
        prop_assert_eq!(codec::to_string(&autoscaler), codec::to_string(&before));
    }

    /// A round trip from v1 to v2 and back loses nothing.
    #[test]
    fn autoscalers_of_v1_round_trip(target in 1..200_i64, current in prop::option::of(0..200_i64)) {
        let mut autoscaler = object([
            ("apiVersion", "autoscaling/v1".into()),
            ("spec", object([("targetCPUUtilizationPercentage", target.into())])),
            ("status", object([("currentReplicas", 0.into()), ("desiredReplicas", 1.into())])),
        ]);
        if let Some(current) = current {
            autoscaler.object_entry("status").insert("currentCPUUtilizationPercentage", current);
        }
        let mut back = autoscaler.clone();
        to_v2(&mut back);
        from_v2(&mut back);
        // The current CPU utilization is also in an annotation.
        back.object_entry("metadata");
        back.make_object().remove("metadata");
        prop_assert_eq!(codec::to_string(&back), codec::to_string(&autoscaler));
    }
}
