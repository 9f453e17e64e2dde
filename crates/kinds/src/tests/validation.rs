//! What users are told at once, in upstream's words (DEF-03, VAL).

use pintle_meta::field;

use super::{json, strategy};

fn errors(resource: &str, new: &str, old: Option<&str>) -> Vec<String> {
    let old = old.map(json);
    let errors = (strategy(resource).validate)(&json(new), old.as_ref());
    errors.iter().map(field::Error::to_string).collect()
}

fn check_new(resource: &str, object: &str, expected: &[&str]) {
    assert_eq!(errors(resource, object, None), expected, "{resource} {object}");
}

fn check_update(resource: &str, new: &str, old: &str, expected: &[&str]) {
    assert_eq!(errors(resource, new, Some(old)), expected, "{resource} {old} -> {new}");
}

const CONTAINERS: &str = r#""containers":[{"name":"a","image":"i"}]"#;

#[test]
fn pods() {
    let pod = |spec: &str| format!(r#"{{"spec":{{{spec}}}}}"#);
    for (spec, expected) in [
        (CONTAINERS, &[][..]),
        ("", &["spec.containers: Required value"]),
        (
            r#""containers":[{"name":"a"},{"image":"i"}]"#,
            &[
                "spec.containers[0].image: Required value",
                "spec.containers[1].name: Required value",
            ],
        ),
        (
            r#""containers":[{"name":"a","image":"i"},{"name":"a","image":"i"}]"#,
            &["spec.containers[1].name: Duplicate value: \"a\""],
        ),
        (
            r#""containers":[{"name":"a","image":"i","ports":[{"containerPort":0},
                {"containerPort":70000}]}]"#,
            &[
                "spec.containers[0].ports[0].containerPort: Required value",
                "spec.containers[0].ports[1].containerPort: Invalid value: 70000: must be between 1 \
                 and 65535, inclusive",
            ],
        ),
        (
            r#""containers":[{"name":"a","image":"i","volumeMounts":[{"name":"v"}]}]"#,
            &["spec.containers[0].volumeMounts[0].name: Not found: \"v\""],
        ),
        (
            r#""containers":[{"name":"a","image":"i","resources":{"limits":{"cpu":"1"},
                "requests":{"cpu":"1500m"}}}]"#,
            &[
                "spec.containers[0].resources.requests: Invalid value: \"1500m\": must be less than or \
               equal to cpu limit of 1",
            ],
        ),
    ] {
        check_new("pods", &pod(spec), expected);
    }
}

/// A workload of one container, with a selector and labels.
fn workload(selector: &str, labels: &str, rest: &str) -> String {
    format!(
        r#"{{"spec":{{{selector}"template":{{"metadata":{{"labels":{labels}}},
            "spec":{{"restartPolicy":"Always",{CONTAINERS}}}}}{rest}}}}}"#
    )
}

#[test]
fn workloads() {
    const SELECTOR: &str = r#""selector":{"matchLabels":{"app":"a"}},"#;
    const GOOD: &str = r#"{"app":"a"}"#;
    for (resource, kind) in [
        ("apps/deployments", "deployment"),
        ("apps/replicasets", "deployment"),
        ("apps/statefulsets", "statefulset"),
        ("apps/daemonsets", "daemonset"),
    ] {
        check_new(resource, &workload(SELECTOR, GOOD, ""), &[]);
        check_new(resource, &workload("", GOOD, ""), &["spec.selector: Required value"]);
        let empty =
            format!("spec.selector: Invalid value: {{}}: empty selector is invalid for {kind}");
        check_new(resource, &workload(r#""selector":{},"#, GOOD, ""), &[&empty]);
        check_new(
            resource,
            &workload(SELECTOR, r#"{"app":"b"}"#, ""),
            &[
                "spec.template.metadata.labels: Invalid value: {\"app\":\"b\"}: `selector` does not \
               match template `labels`",
            ],
        );
        if resource != "apps/daemonsets" {
            check_new(
                resource,
                &workload(SELECTOR, GOOD, r#","replicas":-1"#),
                &["spec.replicas: Invalid value: -1: must be greater than or equal to 0"],
            );
        }
    }
    let (old, new) = (
        workload(SELECTOR, GOOD, ""),
        workload(r#""selector":{"matchLabels":{"b":"c"}},"#, r#"{"b":"c"}"#, ""),
    );
    let frozen =
        "spec.selector: Invalid value: {\"matchLabels\":{\"b\":\"c\"}}: field is immutable";
    for resource in ["apps/deployments", "apps/replicasets", "apps/daemonsets"] {
        check_update(resource, &new, &old, &[frozen]);
    }
    check_update(
        "apps/statefulsets",
        &new,
        &old,
        &[
            "spec: Forbidden: updates to statefulset spec for fields other than 'replicas', 'ordinals', \
           'template', 'updateStrategy', 'revisionHistoryLimit', \
           'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden",
        ],
    );
    check_update("apps/statefulsets", &workload(SELECTOR, GOOD, r#","replicas":3"#), &old, &[]);
    check_new(
        "apps/deployments",
        &workload(SELECTOR, GOOD, r#","minReadySeconds":600,"progressDeadlineSeconds":600"#),
        &["spec.progressDeadlineSeconds: Invalid value: 600: must be greater than minReadySeconds"],
    );
}

#[test]
fn jobs() {
    let job = |restart: &str, uid: &str| {
        format!(
            r#"{{"spec":{{"selector":{{"matchLabels":{{"u":"1"}}}},"template":{{
                "metadata":{{"labels":{{"u":"{uid}"}}}},
                "spec":{{"restartPolicy":"{restart}",{CONTAINERS}}}}}}}}}"#
        )
    };
    check_new("batch/jobs", &job("Never", "1"), &[]);
    check_new(
        "batch/jobs",
        &job("Always", "2"),
        &[
            "spec.template.metadata.labels: Invalid value: {\"u\":\"2\"}: `selector` does not match \
             template `labels`",
            "spec.template.spec.restartPolicy: Required value: valid values: \"OnFailure\", \"Never\"",
        ],
    );
    let errors = errors("batch/jobs", &job("OnFailure", "1"), Some(&job("Never", "1")));
    assert_eq!(errors.len(), 1);
    assert!(errors[0].starts_with("spec.template: Invalid value: "), "{errors:?}");
    assert!(errors[0].ends_with(": field is immutable"), "{errors:?}");
}

#[test]
fn lengths() {
    let large = format!(r#"{{"data":{{"a":"{}"}}}}"#, "x".repeat(1024 * 1024 + 1));
    for (resource, expected) in
        [("configmaps", "[]: Too long: may not be more than 1048576 bytes"), ("secrets", "")]
    {
        let said = errors(resource, &large, None);
        assert_eq!(said.concat(), expected, "{resource}: base64 is longer than what it stands for");
    }
}

#[test]
fn what_cannot_change() {
    for (resource, new, old, expected) in [
        (
            "scheduling.k8s.io/priorityclasses",
            r#"{"value":2}"#,
            r#"{"value":1}"#,
            &["value: Forbidden: may not be changed in an update."][..],
        ),
        (
            "apps/controllerrevisions",
            r#"{"data":{"a":1}}"#,
            r#"{"data":{"a":2}}"#,
            &["data: Invalid value: {\"a\":1}: field is immutable"],
        ),
        (
            "persistentvolumeclaims",
            r#"{"spec":{"accessModes":["ReadWriteOnce"],"storageClassName":"b",
                "resources":{"requests":{"storage":"1Gi"}}}}"#,
            r#"{"spec":{"accessModes":["ReadWriteOnce"],"storageClassName":"a",
                "resources":{"requests":{"storage":"1Gi"}}}}"#,
            &["spec: Forbidden: spec is immutable after creation except resources.requests and \
               volumeAttributesClassName for bound claims"],
        ),
        (
            "persistentvolumeclaims",
            r#"{"spec":{"accessModes":["ReadWriteOnce"],"volumeName":"v",
                "resources":{"requests":{"storage":"2Gi"}}}}"#,
            r#"{"spec":{"accessModes":["ReadWriteOnce"],
                "resources":{"requests":{"storage":"1Gi"}}},"status":{"phase":"Bound"}}"#,
            &[],
        ),
    ] {
        check_update(resource, new, old, expected);
    }
}

#[test]
fn definitions_of_custom_resources() {
    for (resource, object, expected) in [(
        "apiextensions.k8s.io/customresourcedefinitions",
        r#"{"metadata":{"name":"a.b.c"},"spec":{"group":"b.c","scope":"Cluster","names":{"plural":"as",
                "singular":"a","kind":"A","listKind":"AList"},"versions":[{"name":"v1","served":true,
                "storage":true,"schema":{"openAPIV3Schema":{"type":"object"}}}]},
                "status":{"storedVersions":["v1"]}}"#,
        &["metadata.name: Invalid value: \"a.b.c\": must be spec.names.plural+\".\"+spec.group"][..],
    )] {
        check_new(resource, object, expected);
    }
}

/// DEF-05
#[test]
fn names() {
    for (resource, name, is_good) in [
        ("namespaces", "a.b", false),
        ("services", "1a", true),
        ("configmaps", "a.b", true),
        ("configmaps", "A", false),
        ("rbac.authorization.k8s.io/clusterroles", "system:node", true),
        ("rbac.authorization.k8s.io/clusterroles", "a/b", false),
        ("apps/statefulsets", "a.b", false),
        ("batch/cronjobs", &"a".repeat(52), true),
        ("batch/cronjobs", &"a".repeat(53), false),
        ("storage.k8s.io/csidrivers", "Driver.example.com", true),
        ("networking.k8s.io/ipaddresses", "192.0.2.1", true),
        ("networking.k8s.io/ipaddresses", "192.0.2.01", false),
        ("networking.k8s.io/ipaddresses", "2001:db8::1", true),
        ("networking.k8s.io/ipaddresses", "2001:DB8::1", false),
    ] {
        let wrong = strategy(resource).name.check(name, false);
        assert_eq!(wrong.is_empty(), is_good, "{resource} {name}: {wrong:?}");
    }
}
