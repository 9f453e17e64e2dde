//! Preparation of new and updated objects before validation, and deletion.

use pintle_registry::GracePeriod;
use pintle_value::Value;

use super::{json, strategy};
use crate::{features::Features, gates};

/// Prepares a create as the engine does: first it resets members that clients cannot set
/// (META-11).
fn created(resource: &str, input: &str) -> Value {
    let mut object = json(input);
    let strategy = strategy(resource);
    for path in strategy.reset_fields {
        let [member] = path else { panic!("{resource} resets more than a member of the object") };
        object.make_object().remove(member);
    }
    gates::drop(&mut object, None, strategy.gated, Features::NONE);
    (strategy.prepare_create)(&mut object);
    object
}

fn updated(resource: &str, new: &str, old: &str) -> Value {
    let mut object = json(new);
    (strategy(resource).prepare_update)(&mut object, &json(old));
    object
}

#[test]
fn new_objects() {
    for (resource, input, expected) in [
        // DEF-04
        (
            "namespaces",
            r#"{"metadata":{"name":"n"},"status":{"phase":"Terminating"}}"#,
            r#"{"metadata":{"name":"n","labels":{"kubernetes.io/metadata.name":"n"}},
                "spec":{"finalizers":["kubernetes"]},"status":{"phase":"Active"}}"#,
        ),
        (
            "namespaces",
            r#"{"spec":{"finalizers":["mine","kubernetes"]}}"#,
            r#"{"metadata":{},"spec":{"finalizers":["mine","kubernetes"]},"status":{"phase":"Active"}}"#,
        ),
        (
            "pods",
            r#"{"spec":{"containers":[{}]},"status":{"phase":"Running","podIP":"192.0.2.1"}}"#,
            r#"{"spec":{"containers":[{}]},"status":{"phase":"Pending","qosClass":"BestEffort"}}"#,
        ),
        (
            "pods",
            r#"{"spec":{"schedulingGates":[{"name":"g"}]}}"#,
            r#"{"spec":{"schedulingGates":[{"name":"g"}]},"status":{"phase":"Pending",
                "qosClass":"BestEffort","conditions":[{"type":"PodScheduled","status":"False","lastProbeTime":null,
                "reason":"SchedulingGated",
                "message":"Scheduling is blocked due to non-empty scheduling gates"}]}}"#,
        ),
        (
            "persistentvolumeclaims",
            r#"{"status":{"phase":"Bound","capacity":{}}}"#,
            r#"{"status":{"phase":"Pending"}}"#,
        ),
        // META-34
        (
            "batch/jobs",
            r#"{"metadata":{"name":"j","uid":"u"},"spec":{"template":{}}}"#,
            r#"{"metadata":{"name":"j","uid":"u","labels":{
                    "batch.kubernetes.io/controller-uid":"u","controller-uid":"u",
                    "batch.kubernetes.io/job-name":"j","job-name":"j"}},"spec":{
                "selector":{"matchLabels":{"batch.kubernetes.io/controller-uid":"u"}},
                "template":{"metadata":{"labels":{"batch.kubernetes.io/controller-uid":"u",
                    "controller-uid":"u","batch.kubernetes.io/job-name":"j","job-name":"j"}}}}}"#,
        ),
        (
            "batch/jobs",
            r#"{"metadata":{"name":"j","uid":"u"},"spec":{"manualSelector":true}}"#,
            r#"{"metadata":{"name":"j","uid":"u"},"spec":{"manualSelector":true}}"#,
        ),
        (
            "serviceaccounts",
            r#"{"secrets":[{"name":"s","namespace":"n"}]}"#,
            r#"{"secrets":[{"name":"s"}]}"#,
        ),
        ("scheduling.k8s.io/priorityclasses", "{}", r#"{"metadata":{"generation":1}}"#),
        (
            "nodes",
            r#"{"spec":{"configSource":{}},"status":{"config":{},"capacity":{"cpu":"1"}}}"#,
            r#"{"spec":{},"status":{"capacity":{"cpu":"1"}}}"#,
        ),
        (
            "apiextensions.k8s.io/customresourcedefinitions",
            r#"{"spec":{"versions":[{"name":"v1"},{"name":"v2","storage":true}]}}"#,
            r#"{"spec":{"versions":[{"name":"v1"},{"name":"v2","storage":true}]},
                "status":{"storedVersions":["v2"]}}"#,
        ),
        (
            "apiregistration.k8s.io/apiservices",
            r#"{"spec":{"version":"v1"}}"#,
            r#"{"spec":{"version":"v1"},"status":{"conditions":[{"type":"Available",
                "status":"True","reason":"Local",
                "message":"Local APIServices are always available"}]}}"#,
        ),
        (
            "coordination.k8s.io/leases",
            r#"{"spec":{"holderIdentity":"h","strategy":"s","preferredHolder":"p"}}"#,
            r#"{"spec":{"holderIdentity":"h"}}"#,
        ),
    ] {
        assert_eq!(created(resource, input), json(expected), "{resource} {input}");
    }
}

/// A DaemonSet counts the changes of its template, whatever its writers send.
#[test]
fn the_template_generation_of_daemon_sets() {
    let generation = |object: &Value| {
        let path = &["metadata", "annotations", "deprecated.daemonset.template.generation"];
        object.str_at(path).map(ToOwned::to_owned)
    };
    let set = |generation: &str, image: &str| {
        format!(
            r#"{{"metadata":{{"annotations":{{
                "deprecated.daemonset.template.generation":"{generation}"}}}},
                "spec":{{"template":{{"image":"{image}"}}}}}}"#
        )
    };
    let sets = "apps/daemonsets";
    assert_eq!(generation(&created(sets, &set("7", "a"))).as_deref(), Some("1"));
    assert_eq!(generation(&updated(sets, &set("0", "a"), &set("3", "a"))).as_deref(), Some("3"));
    assert_eq!(generation(&updated(sets, &set("9", "b"), &set("3", "a"))).as_deref(), Some("4"));
}

#[test]
fn updated_objects() {
    for (resource, new, old, expected) in [
        (
            "namespaces",
            r#"{"metadata":{"name":"n"},"spec":{"finalizers":[]}}"#,
            r#"{"spec":{"finalizers":["kubernetes"]}}"#,
            r#"{"metadata":{"name":"n","labels":{"kubernetes.io/metadata.name":"n"}},
                "spec":{"finalizers":["kubernetes"]}}"#,
        ),
        (
            "nodes",
            r#"{"status":{"phase":"new"}}"#,
            r#"{"status":{"phase":"old"}}"#,
            r#"{"status":{"phase":"old"}}"#,
        ),
        (
            "services",
            r#"{"spec":{"type":"ClusterIP","ports":[{"port":80,"nodePort":30000}],
                "externalTrafficPolicy":"Cluster"}}"#,
            r#"{"spec":{"type":"NodePort","ports":[{"port":80,"nodePort":30000}],
                "externalTrafficPolicy":"Cluster"}}"#,
            r#"{"spec":{"type":"ClusterIP","ports":[{"port":80}]},"status":{"loadBalancer":{}}}"#,
        ),
        (
            "services",
            r#"{"spec":{"type":"ClusterIP","ports":[{"port":80,"nodePort":30001}]}}"#,
            r#"{"spec":{"type":"NodePort","ports":[{"port":80,"nodePort":30000}]}}"#,
            r#"{"spec":{"type":"ClusterIP","ports":[{"port":80,"nodePort":30001}]},
                "status":{"loadBalancer":{}}}"#,
        ),
        (
            "services",
            r#"{"spec":{"type":"ExternalName","clusterIP":"10.0.0.9","clusterIPs":["10.0.0.9"],
                "ipFamilies":["IPv4"],"ipFamilyPolicy":"SingleStack"}}"#,
            r#"{"spec":{"type":"ClusterIP","clusterIP":"10.0.0.9","clusterIPs":["10.0.0.9"],
                "ipFamilies":["IPv4"],"ipFamilyPolicy":"SingleStack"}}"#,
            r#"{"spec":{"type":"ExternalName"},"status":{"loadBalancer":{}}}"#,
        ),
        (
            "certificates.k8s.io/certificatesigningrequests",
            r#"{"metadata":{"name":"c"},"spec":{"request":"new"}}"#,
            r#"{"spec":{"request":"old"}}"#,
            r#"{"metadata":{"name":"c"},"spec":{"request":"old"}}"#,
        ),
        (
            "storage.k8s.io/csidrivers",
            r#"{"spec":{"attachRequired":false}}"#,
            r#"{"spec":{"attachRequired":true}}"#,
            r#"{"metadata":{"generation":1},"spec":{"attachRequired":false}}"#,
        ),
        (
            "apiextensions.k8s.io/customresourcedefinitions",
            r#"{"spec":{"versions":[{"name":"v2","storage":true}]},
                "status":{"storedVersions":["v1"]}}"#,
            "{}",
            r#"{"spec":{"versions":[{"name":"v2","storage":true}]},
                "status":{"storedVersions":["v1","v2"]}}"#,
        ),
    ] {
        assert_eq!(updated(resource, new, old), json(expected), "{resource} {new}");
    }
}

#[test]
fn the_quality_of_service_of_pods() {
    for (containers, expected) in [
        (r#"[{}]"#, "BestEffort"),
        (r#"[{"resources":{"requests":{"cpu":"0"}}}]"#, "BestEffort"),
        (r#"[{"resources":{"requests":{"cpu":"1"}}}]"#, "Burstable"),
        (r#"[{"resources":{"limits":{"example.com/gpu":"1"}}}]"#, "BestEffort"),
        (
            r#"[{"resources":{"limits":{"cpu":"1","memory":"1Gi"},
                "requests":{"cpu":"1000m","memory":"1024Mi"}}}]"#,
            "Guaranteed",
        ),
        (
            r#"[{"resources":{"limits":{"cpu":"1","memory":"1Gi"},
                "requests":{"cpu":"1","memory":"1Gi"}}},{}]"#,
            "Burstable",
        ),
        (
            r#"[{"resources":{"limits":{"cpu":"1","memory":"1Gi"},
                "requests":{"cpu":"1","memory":"1Mi"}}}]"#,
            "Burstable",
        ),
        (r#"[{"resources":{"limits":{"cpu":"1"},"requests":{"cpu":"1"}}}]"#, "Burstable"),
    ] {
        let pod = created("pods", &format!(r#"{{"spec":{{"containers":{containers}}}}}"#));
        assert_eq!(pod.str_at(&["status", "qosClass"]), Some(expected), "{containers}");
    }
    let whole = r#"{"spec":{"resources":{"limits":{"cpu":"1","memory":"1Gi"},
        "requests":{"cpu":"1","memory":"1Gi"}},"containers":[{}]}}"#;
    assert_eq!(created("pods", whole).str_at(&["status", "qosClass"]), Some("Guaranteed"));
}

/// DEL-07
#[test]
fn pods_with_a_node_are_deleted_gracefully() {
    let graceful = strategy("pods").graceful.expect("pods end gracefully");
    for (pod, expected) in [
        (r#"{"spec":{"terminationGracePeriodSeconds":30}}"#, GracePeriod::Zero),
        (r#"{"spec":{"nodeName":"n"}}"#, GracePeriod::Seconds(0)),
        (
            r#"{"spec":{"nodeName":"n","terminationGracePeriodSeconds":30}}"#,
            GracePeriod::Seconds(30),
        ),
        (
            r#"{"spec":{"nodeName":"n","terminationGracePeriodSeconds":-5}}"#,
            GracePeriod::Seconds(1),
        ),
        (
            r#"{"spec":{"nodeName":"n","terminationGracePeriodSeconds":30},
                "status":{"phase":"Succeeded"}}"#,
            GracePeriod::Zero,
        ),
    ] {
        assert_eq!((graceful.period)(&json(pod)), expected, "{pod}");
        let compact = pintle_value::json::to_string(&json(pod));
        let read = pintle_value::json::excerpt(compact.as_bytes(), graceful.reads);
        assert_eq!((graceful.period)(&read.expect("JSON")), expected, "what is read of {pod}");
    }
}

/// KCM-02
#[test]
fn namespaces_terminate() {
    let namespaces = strategy("namespaces");
    let mut namespace =
        json(r#"{"spec":{"finalizers":["kubernetes"]},"status":{"phase":"Active"}}"#);
    assert!((namespaces.held)(&namespace));
    (namespaces.terminating)(&mut namespace);
    assert_eq!(namespace.str_at(&["status", "phase"]), Some("Terminating"));
    let marked =
        r#"{"metadata":{"deletionTimestamp":"2026-01-01T00:00:00Z"},"spec":{"finalizers":[]}}"#;
    assert!((namespaces.held)(&json(r#"{"spec":{"finalizers":[]}}"#)));
    assert!(!(namespaces.held)(&json(marked)));
    assert!(!(strategy("pods").held)(&json(r#"{"spec":{"finalizers":["x"]}}"#)));
}

/// SEL-01
#[test]
fn selectable_fields_have_text() {
    for (resource, object, label, expected) in [
        ("pods", r#"{"spec":{"nodeName":"n"}}"#, "spec.nodeName", "n"),
        ("pods", r#"{"spec":{"nodeName":"n"}}"#, "spec.host", "n"),
        ("pods", "{}", "spec.nodeName", ""),
        ("pods", "{}", "spec.hostNetwork", "false"),
        ("pods", r#"{"spec":{"hostNetwork":true}}"#, "spec.hostNetwork", "true"),
        ("pods", r#"{"status":{"podIPs":[{"ip":"a"},{"ip":"b"}]}}"#, "status.podIP", "a"),
        ("pods", r#"{"status":{"podIPs":[{"ip":"a"}]}}"#, "status.podIPs", ""),
        ("nodes", r#"{"spec":{"unschedulable":true}}"#, "spec.unschedulable", "true"),
        ("nodes", "{}", "spec.unschedulable", "false"),
        ("namespaces", r#"{"status":{"phase":"Active"}}"#, "status.phase", "Active"),
        ("secrets", r#"{"type":"Opaque"}"#, "type", "Opaque"),
        ("replicationcontrollers", "{}", "status.replicas", "0"),
        ("batch/jobs", r#"{"status":{"succeeded":2}}"#, "status.successful", "2"),
        ("events", r#"{"reportingComponent":"r"}"#, "source", "r"),
        ("events", r#"{"source":{"component":"c"}}"#, "source", "c"),
        ("events.k8s.io/events", r#"{"involvedObject":{"kind":"Pod"}}"#, "regarding.kind", "Pod"),
    ] {
        let fields = strategy(resource).fields;
        let field = fields.iter().find(|field| field.label == label);
        let field = field.unwrap_or_else(|| panic!("{resource} {label}"));
        let value = field.value.of(&json(object));
        assert_eq!(value, expected, "{resource} {label} {object}");
        // The function needs no other members than those that it declares.
        let paths = field.value.reads();
        let paths: Vec<&[&str]> = paths.iter().map(Vec::as_slice).collect();
        let compact = pintle_value::json::to_string(&json(object));
        let excerpt = pintle_value::json::excerpt(compact.as_bytes(), &paths);
        let value = field.value.of(&excerpt.expect("it is JSON"));
        assert_eq!(value, expected, "{resource} {label} of what it reads of {object}");
    }
}

/// The server sets the time of a volume's phase if the writer does not.
#[test]
fn phases_of_volumes() {
    let now = pintle_registry::request::Now { unix_micros: 1_000_000 };
    let (first, second) = (r#""1970-01-01T00:00:01Z""#, r#""1960-01-01T00:00:00Z""#);
    let with = |phase: &str, time: &str| {
        let time = if time.is_empty() {
            String::new()
        } else {
            format!(r#","lastPhaseTransitionTime":{time}"#)
        };
        format!(r#"{{"status":{{"phase":"{phase}"{time}}}}}"#)
    };
    for (old, new, expected) in [
        (None, with("Pending", ""), with("Pending", first)),
        (Some(with("Pending", "")), with("Pending", ""), with("Pending", "")),
        (Some(with("Pending", second)), with("Pending", ""), with("Pending", second)),
        (Some(with("Pending", second)), with("Bound", second), with("Bound", first)),
        (Some(with("Pending", second)), with("Bound", ""), with("Bound", first)),
        (Some(with("Pending", first)), with("Bound", second), with("Bound", second)),
        (Some(with("Pending", first)), with("Pending", second), with("Pending", second)),
    ] {
        let mut object = json(&new);
        let old = old.as_deref().map(json);
        (strategy("persistentvolumes").note_time)(&mut object, old.as_ref(), now);
        assert_eq!(object, json(&expected), "{old:?} -> {new}");
    }
}

/// The server sets the time at which a taint was added, and in a rule sets it again if the effect
/// changes.
#[test]
fn times_of_taints() {
    let now = pintle_registry::request::Now { unix_micros: 1_000_000 };
    let rule = |effect: &str, time: &str| {
        json(&format!(r#"{{"spec":{{"taint":{{"effect":"{effect}"{time}}}}}}}"#))
    };
    let (then, first) =
        (r#","timeAdded":"1960-01-01T00:00:00Z""#, r#","timeAdded":"1970-01-01T00:00:01Z""#);
    for (old, new, expected) in [
        (None, rule("None", ""), rule("None", first)),
        (Some(rule("None", then)), rule("None", then), rule("None", then)),
        (Some(rule("None", then)), rule("NoExecute", then), rule("NoExecute", first)),
        (Some(rule("None", first)), rule("NoExecute", then), rule("NoExecute", then)),
    ] {
        let mut object = new.clone();
        let strategy = strategy("resource.k8s.io/devicetaintrules");
        (strategy.note_time)(&mut object, old.as_ref(), now);
        assert_eq!(object, expected, "{old:?} -> {new:?}");
    }
    let mut slice = json(r#"{"spec":{"devices":[{"taints":[{"effect":"None"}]},{}]}}"#);
    (strategy("resource.k8s.io/resourceslices").note_time)(&mut slice, None, now);
    let taint = format!(r#"{{"effect":"None"{first}}}"#);
    let expected = format!(r#"{{"spec":{{"devices":[{{"taints":[{taint}]}},{{}}]}}}}"#);
    assert_eq!(slice, json(&expected));
}

/// The drivers' status of devices that a claim no longer has is dropped.
#[test]
fn released_devices_are_removed_from_the_status() {
    let status = |results: &str, devices: &str| {
        let allocation = format!(r#"{{"devices":{{"results":[{results}]}}}}"#);
        json(&format!(r#"{{"status":{{"allocation":{allocation},"devices":[{devices}]}}}}"#))
    };
    let [a, b] = ["a", "b"].map(|name| format!(r#"{{"driver":"d","pool":"p","device":"{name}"}}"#));
    let both = format!("{a},{b}");
    let mut new = status(&a, &both);
    let part = strategy("resource.k8s.io/resourceclaims").parts[0];
    (part.prepare)(&mut new, &status(&both, &both));
    assert_eq!(new, status(&a, &a));
}
