use pintle_value::json;

use super::*;
use crate::builtin;

/// Checks the errors of the object, one a line; `old` is `""` for a new object.
fn check(ty: &str, new: &str, old: &str, expected: &[&str]) {
    let schema = builtin();
    let ty = schema.find(ty).unwrap();
    let parse = |text: &str| json::parse(text.as_bytes()).unwrap();
    let old = (!old.is_empty()).then(|| parse(old));
    let errors = validate(schema, ty, &parse(new), old.as_ref());
    let shown: Vec<_> = errors.iter().map(ToString::to_string).collect();
    assert_eq!(shown, expected, "{new}");
}

const POD: &str = "io.k8s.api.core.v1.Pod";
const DEPLOYMENT: &str = "io.k8s.api.apps.v1.Deployment";
const STORAGE_CLASS: &str = "io.k8s.api.storage.v1.StorageClass";
const CLAIM: &str = "io.k8s.api.resource.v1.ResourceClaim";

#[test]
fn required_fields() {
    for (ty, new, expected) in [
        (
            DEPLOYMENT,
            r#"{"spec":{"selector":null,"template":{"spec":{"containers":null}}}}"#,
            &["spec.selector: Required value"][..],
        ),
        (
            POD,
            r#"{"spec":{"containers":[{"name":"","env":[{"name":"A"},{"name":""}]}]}}"#,
            &[
                "spec.containers[0].env[1].name: Required value",
                "spec.containers[0].name: Required value",
            ],
        ),
        // A header's value may be empty, but not its name.
        (
            POD,
            r#"{"spec":{"containers":[{"name":"a","livenessProbe":{"httpGet":{"port":1,"httpHeaders":[{"name":"","value":""}]}}}]}}"#,
            &["spec.containers[0].livenessProbe.httpGet.httpHeaders[0].name: Required value"],
        ),
        // A missing number is zero, which is an error only if a minimum excludes it.
        (
            "io.k8s.api.scheduling.v1alpha2.Workload",
            r#"{"spec":{"podGroupTemplates":[{"name":"a","schedulingPolicy":{"gang":{}}}]}}"#,
            &["spec.podGroupTemplates[0].schedulingPolicy.gang.minCount: Required value"],
        ),
        ("io.k8s.api.apps.v1.ControllerRevision", "{}", &[]),
        // A Go struct by value exists without content, and lacks its required fields.
        (
            "io.k8s.api.coordination.v1beta1.LeaseCandidate",
            "{}",
            &[
                "spec.binaryVersion: Required value",
                "spec.leaseName: Required value",
                "spec.strategy: Required value",
            ],
        ),
        ("io.k8s.api.core.v1.Event", "{}", &[]),
        // Components write status, and metadata has its own rules.
        (
            POD,
            r#"{"metadata":{"ownerReferences":[{"name":""}]},"spec":{"containers":[]},"status":{"containerStatuses":[{"imageID":""}]}}"#,
            &[],
        ),
    ] {
        check(ty, new, "", expected);
    }
}

#[test]
fn values_within_rules() {
    for (ty, new, expected) in [
        (
            POD,
            r#"{"spec":{"dnsPolicy":"X","containers":[{"name":"a","imagePullPolicy":"Sometimes"}]}}"#,
            &[
                r#"spec.containers[0].imagePullPolicy: Unsupported value: "Sometimes": supported values: "Always", "IfNotPresent", "Never""#,
                r#"spec.dnsPolicy: Unsupported value: "X": supported values: "ClusterFirst", "ClusterFirstWithHostNet", "Default", "None""#,
            ][..],
        ),
        (
            "io.k8s.api.core.v1.PersistentVolumeClaim",
            r#"{"spec":{"accessModes":["ReadWriteOnce","Nope"]}}"#,
            &[
                r#"spec.accessModes[1]: Unsupported value: "Nope": supported values: "ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod""#,
            ],
        ),
        (
            "io.k8s.api.core.v1.ReplicationController",
            r#"{"spec":{"replicas":-1}}"#,
            &["spec.replicas: Invalid value: -1: must be greater than or equal to 0"],
        ),
        // Status may have values of newer components.
        (POD, r#"{"spec":{},"status":{"phase":"Paused"}}"#, &[]),
    ] {
        check(ty, new, "", expected);
    }
}

#[test]
fn immutable_and_unchanged_fields() {
    const OLD: &str = r#"{"provisioner":"a","reclaimPolicy":"X","parameters":{"a":"1"}}"#;
    for (new, expected) in [
        (OLD, &[][..]),
        (
            r#"{"provisioner":"b","reclaimPolicy":"X","parameters":{"a":"1"}}"#,
            &[r#"provisioner: Invalid value: "b": field is immutable"#],
        ),
        (
            r#"{"provisioner":"a","reclaimPolicy":"X"}"#,
            &["parameters: Invalid value: null: field is immutable"],
        ),
        // The unknown reclaim policy is not new.
        (
            r#"{"provisioner":"a","reclaimPolicy":"X","parameters":{"a":"1"},"allowVolumeExpansion":true}"#,
            &[],
        ),
    ] {
        check(STORAGE_CLASS, new, OLD, expected);
    }
    check(
        STORAGE_CLASS,
        OLD,
        "",
        &[
            r#"reclaimPolicy: Unsupported value: "X": supported values: "Delete", "Recycle", "Retain""#,
        ],
    );
}

#[test]
fn lengths_counts_and_formats() {
    let requests = |count: usize| {
        let requests: Vec<_> = (0..count).map(|i| format!(r#"{{"name":"r{i}"}}"#)).collect();
        format!(r#"{{"spec":{{"devices":{{"requests":[{}]}}}}}}"#, requests.join(","))
    };
    check(CLAIM, &requests(32), "", &[]);
    check(
        CLAIM,
        &requests(33),
        "",
        &["spec.devices.requests: Too many: 33: must have at most 32 items"],
    );
    for (format, text, wrong) in [
        ("k8s-uuid", "550e8400-e29b-41d4-a716-446655440000", ""),
        (
            "k8s-uuid",
            "550E8400-e29b-41d4-a716-446655440000",
            "must be a lowercase UUID in 8-4-4-4-12 format",
        ),
        ("k8s-resource-pool-name", "a/b.c", ""),
        ("k8s-resource-pool-name", "a//b", "segment 1: must not be empty"),
        ("k8s-extended-resource-name", "example.com/gpu", ""),
        (
            "k8s-extended-resource-name",
            "gpu",
            "a name must be a domain-prefixed path, such as 'example.com/my-prop'",
        ),
        ("k8s-short-name", "a-b", ""),
        ("k8s-long-name-caseless", "A.b", ""),
        ("of-tomorrow", "!", ""),
    ] {
        assert_eq!(format::check(format, text).join("; "), wrong, "{format}: {text}");
    }
}
