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
fn config_maps_and_secrets() {
    check_new("configmaps", r#"{"data":{"a.b-c_D":"x"},"binaryData":{"e":"eA=="}}"#, &[]);
    check_new(
        "configmaps",
        r#"{"data":{"a/b":"x"}}"#,
        &["data[a/b]: Invalid value: \"a/b\": a valid config key must consist of alphanumeric \
           characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used \
           for validation is '[-._a-zA-Z0-9]+')"],
    );
    check_new(
        "configmaps",
        r#"{"data":{"a":"x"},"binaryData":{"a":"eA=="}}"#,
        &[
            "data[a]: Invalid value: \"a\": duplicate of key present in binaryData",
            "binaryData[a]: Invalid value: \"a\": duplicate of key present in data",
        ],
    );
    let large = format!(r#"{{"data":{{"a":"{}"}}}}"#, "x".repeat(1024 * 1024 + 1));
    assert_eq!(
        errors("configmaps", &large, None),
        ["[]: Too long: may not be more than 1048576 bytes"]
    );
    const FROZEN: &str = "Forbidden: field is immutable when `immutable` is set";
    for resource in ["configmaps", "secrets"] {
        let old = r#"{"immutable":true,"data":{"a":"eA=="}}"#;
        check_update(resource, old, old, &[]);
        check_update(
            resource,
            r#"{"immutable":true,"data":{}}"#,
            old,
            &[&format!("data: {FROZEN}")],
        );
        check_update(resource, r#"{"data":{"a":"eA=="}}"#, old, &[&format!("immutable: {FROZEN}")]);
        check_update(resource, r#"{"immutable":true,"data":{"b":""}}"#, r#"{"data":{}}"#, &[]);
    }
    check_update(
        "secrets",
        r#"{"type":"b"}"#,
        r#"{"type":"a"}"#,
        &["type: Invalid value: \"b\": field is immutable"],
    );
    check_new(
        "secrets",
        r#"{"type":"kubernetes.io/tls","data":{"tls.crt":""}}"#,
        &["data[tls.key]: Required value"],
    );
    check_new(
        "secrets",
        r#"{"type":"kubernetes.io/service-account-token"}"#,
        &["metadata.annotations[kubernetes.io/service-account.name]: Required value"],
    );
}

#[test]
fn services() {
    let service = |spec: &str| format!(r#"{{"spec":{{{spec}}}}}"#);
    for (spec, expected) in [
        (r#""ports":[{"port":80}]"#, &[][..]),
        (r#""clusterIP":"None""#, &[]),
        ("", &["spec.ports: Required value"]),
        (
            r#""ports":[{"port":0}]"#,
            &["spec.ports[0].port: Invalid value: 0: must be between 1 and 65535, inclusive"],
        ),
        (
            r#""ports":[{"port":80,"name":"a","protocol":"TCP"},{"port":80,"protocol":"TCP"}]"#,
            &[
                "spec.ports[1].name: Required value",
                "spec.ports[1]: Duplicate value: {\"Name\":\"\",\"Protocol\":\"TCP\",\
                 \"AppProtocol\":null,\"Port\":80,\"TargetPort\":0,\"NodePort\":0}",
            ],
        ),
        (
            r#""ports":[{"port":80,"name":"a"},{"port":81,"name":"a"}]"#,
            &["spec.ports[1].name: Duplicate value: \"a\""],
        ),
        (r#""type":"ExternalName""#, &["spec.externalName: Required value"]),
    ] {
        check_new("services", &service(spec), expected);
    }
    let at = |ip: &str| {
        service(&format!(r#""ports":[{{"port":80}}],"clusterIP":"{ip}","clusterIPs":["{ip}"]"#))
    };
    check_update(
        "services",
        &at("None"),
        &at("10.0.0.9"),
        &["spec.clusterIPs[0]: Invalid value: [\"None\"]: may not change once set"],
    );
}

#[test]
fn role_bindings() {
    let binding = |kind: &str, name: &str| {
        format!(
            r#"{{"roleRef":{{"apiGroup":"rbac.authorization.k8s.io","kind":"{kind}","name":"{name}"}}}}"#
        )
    };
    const BINDINGS: &str = "rbac.authorization.k8s.io/rolebindings";
    check_update(
        BINDINGS,
        &binding("Role", "b"),
        &binding("Role", "a"),
        &["roleRef: Invalid value: {\"APIGroup\":\"rbac.authorization.k8s.io\",\"Kind\":\"Role\",\
           \"Name\":\"b\"}: cannot change roleRef"],
    );
    check_new(
        "rbac.authorization.k8s.io/clusterrolebindings",
        &binding("Role", "a"),
        &["roleRef.kind: Unsupported value: \"Role\": supported values: \"ClusterRole\""],
    );
    check_new(
        BINDINGS,
        r#"{"roleRef":{"kind":"Role","name":"a"},"subjects":[{"kind":"Robot"},
            {"kind":"ServiceAccount"}]}"#,
        &[
            "subjects[0].kind: Unsupported value: \"Robot\": supported values: \"ServiceAccount\", \
             \"User\", \"Group\"",
            "subjects[1].namespace: Required value",
        ],
    );
    check_new(
        "rbac.authorization.k8s.io/roles",
        r#"{"rules":[{},{"verbs":["get"],"nonResourceURLs":["/x"]}]}"#,
        &[
            "rules[0].verbs: Required value: verbs must contain at least one value",
            "rules[0].apiGroups: Required value: resource rules must supply at least one api group",
            "rules[0].resources: Required value: resource rules must supply at least one resource",
            "rules[1].nonResourceURLs: Invalid value: [\"/x\"]: namespaced rules cannot apply to \
             non-resource URLs",
        ],
    );
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
            "networking.k8s.io/ingressclasses",
            r#"{"spec":{"controller":"b"}}"#,
            r#"{"spec":{"controller":"a"}}"#,
            &["spec.controller: Invalid value: \"b\": field is immutable"],
        ),
        (
            "storage.k8s.io/volumeattributesclasses",
            r#"{"driverName":"b","parameters":{}}"#,
            r#"{"driverName":"a"}"#,
            &["driverName: Forbidden: updates to driverName are forbidden."],
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
fn everything_else() {
    for (resource, object, expected) in [
        (
            "autoscaling/horizontalpodautoscalers",
            r#"{"spec":{"minReplicas":0,"maxReplicas":0}}"#,
            &[
                "spec.minReplicas: Invalid value: 0: must be greater than or equal to 1",
                "spec.maxReplicas: Invalid value: 0: must be greater than 0",
            ][..],
        ),
        (
            "autoscaling/horizontalpodautoscalers",
            r#"{"spec":{"minReplicas":3,"maxReplicas":2}}"#,
            &["spec.maxReplicas: Invalid value: 2: must be greater than or equal to `minReplicas`"],
        ),
        (
            "coordination.k8s.io/leases",
            r#"{"spec":{"leaseDurationSeconds":0,"leaseTransitions":-1}}"#,
            &[
                "spec.leaseDurationSeconds: Invalid value: 0: must be greater than 0",
                "spec.leaseTransitions: Invalid value: -1: must be greater than or equal to 0",
            ],
        ),
        (
            "scheduling.k8s.io/priorityclasses",
            r#"{"metadata":{"name":"high"},"value":1000000001}"#,
            &["value: Forbidden: maximum allowed value of a user defined priority is 1000000000"],
        ),
        (
            "scheduling.k8s.io/priorityclasses",
            r#"{"metadata":{"name":"system-mine"},"value":1}"#,
            &[
                "metadata.name: Forbidden: priority class names with 'system-' prefix are reserved for \
               system use only. error: system-mine is not a known system priority class",
            ],
        ),
        (
            "apiextensions.k8s.io/customresourcedefinitions",
            r#"{"metadata":{"name":"a.b.c"},"spec":{"group":"b.c","scope":"Cluster","names":{"plural":"as",
                "singular":"a","kind":"A","listKind":"AList"},"versions":[{"name":"v1","served":true,
                "storage":true,"schema":{"openAPIV3Schema":{"type":"object"}}}]},
                "status":{"storedVersions":["v1"]}}"#,
            &[
                "metadata.name: Invalid value: \"a.b.c\": must be spec.names.plural+\".\"+spec.group",
            ],
        ),
        (
            "apiregistration.k8s.io/apiservices",
            r#"{"metadata":{"name":"v1.b"},"spec":{"group":"a","version":"v1",
                "groupPriorityMinimum":1,"versionPriority":1}}"#,
            &["metadata.name: Invalid value: \"v1.b\": must be `spec.version+\".\"+spec.group`: \
               \"v1.a\""],
        ),
        (
            "networking.k8s.io/ingresses",
            r#"{"spec":{"rules":[{"http":{"paths":[{"path":"/"}]}}]}}"#,
            &["spec.rules[0].http.paths[0].pathType: Required value: pathType must be specified"],
        ),
        (
            "events",
            r#"{"metadata":{"namespace":"a"},"involvedObject":{"namespace":"b"}}"#,
            &["involvedObject.namespace: Invalid value: \"b\": does not match event.namespace"],
        ),
        // EVT-05, EVT-06
        (
            "events.k8s.io/events",
            r#"{"metadata":{"namespace":"a"},"involvedObject":{"namespace":"a"},"type":"Odd",
                "count":2,"firstTimestamp":"2026-01-01T00:00:00Z","source":{"component":"c"}}"#,
            &[
                "eventTime: Required value",
                "type: Invalid value: \"\": has invalid value: Odd",
                "firstTimestamp: Invalid value: \"\": needs to be unset",
                "count: Invalid value: \"\": needs to be unset",
                "source: Invalid value: \"\": needs to be unset",
            ],
        ),
        (
            "events.k8s.io/events",
            r#"{"metadata":{"namespace":"a"},"involvedObject":{"namespace":"a"},"type":"Normal",
                "eventTime":"2026-01-01T00:00:00.000000Z"}"#,
            &[
                "reportingController: Required value",
                "reportingController: Invalid value: \"\": name part must be non-empty",
                "reportingController: Invalid value: \"\": name part must consist of alphanumeric \
                 characters, '-', '_' or '.', and must start and end with an alphanumeric character \
                 (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is \
                 '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')",
                "reportingInstance: Required value",
                "action: Required value",
                "reason: Required value",
            ],
        ),
    ] {
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

#[test]
fn warnings() {
    for (resource, object, expected) in [
        (
            "nodes",
            r#"{"spec":{"externalID":"x"}}"#,
            &["spec.externalID: this field is deprecated, and is unused by Kubernetes"][..],
        ),
        (
            "services",
            r#"{"spec":{"type":"ClusterIP","sessionAffinity":"None","externalName":"e"}}"#,
            &["spec.externalName is ignored when spec.type is not \"ExternalName\""],
        ),
        (
            "networking.k8s.io/ingresses",
            r#"{"metadata":{"annotations":{"kubernetes.io/ingress.class":"c"}}}"#,
            &["annotation \"kubernetes.io/ingress.class\" is deprecated, please use \
               'spec.ingressClassName' instead"],
        ),
        (
            "discovery.k8s.io/endpointslices",
            r#"{"addressType":"FQDN"}"#,
            &["spec.addressType: FQDN endpoints are deprecated"],
        ),
        ("pods", "{}", &[]),
    ] {
        assert_eq!((strategy(resource).warnings)(&json(object), None), expected, "{resource}");
    }
}
