use super::*;
use crate::builtin;

fn check(ty: &str, json: &str, expected: &str) {
    let mut value = json::parse(json.as_bytes()).unwrap();
    let ty = builtin().find(ty).unwrap();
    apply(builtin(), ty, &mut value);
    assert_eq!(json::to_string(&value), expected, "{json}");
    apply(builtin(), ty, &mut value);
    assert_eq!(json::to_string(&value), expected, "twice: {json}");
}

#[test]
fn declared_defaults_are_set_for_absent_members() {
    const POD_SPEC: &str = "io.k8s.api.core.v1.PodSpec";
    for (ty, json, expected) in [
        (
            POD_SPEC,
            r#"{"containers":[{"ports":[{"containerPort":1},{"protocol":"UDP"}]}]}"#,
            r#"{"containers":[{"ports":[{"containerPort":1,"protocol":"TCP"},{"protocol":"UDP"}]}]}"#,
        ),
        (
            POD_SPEC,
            r#"{"containers":[{"ports":[{"protocol":""}]}]}"#,
            r#"{"containers":[{"ports":[{"protocol":"TCP"}]}]}"#,
        ),
        (
            POD_SPEC,
            r#"{"volumes":[{"azureDisk":{"readOnly":true}}]}"#,
            r#"{"volumes":[{"azureDisk":{"cachingMode":"ReadWrite","fsType":"ext4","kind":"Shared","readOnly":true}}]}"#,
        ),
        // A null without omitempty counts as absent; a value that Go omits needs no default.
        (
            POD_SPEC,
            r#"{"containers":[{"livenessProbe":{"grpc":{"port":1,"service":null}}}],"imagePullSecrets":[{}]}"#,
            r#"{"containers":[{"livenessProbe":{"grpc":{"port":1,"service":""}}}],"imagePullSecrets":[{}]}"#,
        ),
        ("io.k8s.api.core.v1.ReplicationControllerSpec", "{}", r#"{"replicas":1}"#),
        ("io.k8s.api.core.v1.ReplicationControllerSpec", r#"{"replicas":0}"#, r#"{"replicas":0}"#),
        ("io.k8s.api.core.v1.ConfigMap", "{}", "{}"),
    ] {
        check(ty, json, expected);
    }
}
