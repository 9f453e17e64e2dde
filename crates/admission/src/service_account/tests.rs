//! Pods and service accounts as rows: mounted tokens, pull secrets, and refusals.

use pintle_value::{Value, json};

use super::{
    EPHEMERAL_CONTAINERS, INITIAL_CONTAINERS, check_mirror, default_pull_secrets, limit_secrets,
    mount_token, wants_token,
};

fn tree(text: &str) -> Value {
    json::parse(text.as_bytes()).unwrap_or_else(|error| panic!("{error}: {text}"))
}

fn pod(spec: &str) -> Value {
    tree(&format!(r#"{{"spec":{spec}}}"#))
}

#[test]
fn the_token_is_mounted_unless_a_container_mounts_its_path() {
    let mount = r#"{"mountPath":"/var/run/secrets/kubernetes.io/serviceaccount","name":"kube-api-access-abcde","readOnly":true}"#;
    let volume = r#"{"name":"kube-api-access-abcde","projected":{"defaultMode":420,"sources":[{"serviceAccountToken":{"expirationSeconds":3607,"path":"token"}},{"configMap":{"items":[{"key":"ca.crt","path":"ca.crt"}],"name":"kube-root-ca.crt"}},{"downwardAPI":{"items":[{"fieldRef":{"apiVersion":"v1","fieldPath":"metadata.namespace"},"path":"namespace"}]}}]}}"#;
    let own = r#"{"mountPath":"/var/run/secrets/kubernetes.io/serviceaccount","name":"mine"}"#;
    let rows = [
        (
            r#"{"containers":[{"name":"a"}],"initContainers":[{"name":"b"}]}"#.to_owned(),
            format!(
                r#"{{"containers":[{{"name":"a","volumeMounts":[{mount}]}}],"initContainers":[{{"name":"b","volumeMounts":[{mount}]}}],"volumes":[{volume}]}}"#
            ),
        ),
        // A container with its own mount at the path is unchanged, and no volume is added.
        (
            format!(r#"{{"containers":[{{"name":"a","volumeMounts":[{own}]}}]}}"#),
            format!(r#"{{"containers":[{{"name":"a","volumeMounts":[{own}]}}]}}"#),
        ),
        // A volume whose name starts with `kube-api-access-` is used, and none is added.
        (
            r#"{"containers":[{"name":"a"}],"volumes":[{"name":"kube-api-access-abcde"}]}"#
                .to_owned(),
            format!(
                r#"{{"containers":[{{"name":"a","volumeMounts":[{mount}]}}],"volumes":[{{"name":"kube-api-access-abcde"}}]}}"#
            ),
        ),
    ];
    for (spec, expected) in rows {
        let mut pod = pod(&spec);
        mount_token(&mut pod, || "kube-api-access-abcde".to_owned());
        assert_eq!(json::to_string(pod.get("spec").unwrap()), expected);
    }
}

#[test]
fn automount_of_the_pod_overrides_that_of_its_account() {
    let says = |expected: Option<bool>| match expected {
        None => "{}".to_owned(),
        Some(expected) => format!(r#"{{"automountServiceAccountToken":{expected}}}"#),
    };
    for (of_pod, of_account, expected) in [
        (None, None, true),
        (None, Some(false), false),
        (Some(true), Some(false), true),
        (Some(false), Some(true), false),
    ] {
        assert_eq!(wants_token(&pod(&says(of_pod)), &tree(&says(of_account))), expected);
    }
}

#[test]
fn pods_without_pull_secrets_get_those_of_their_account() {
    let account = tree(r#"{"imagePullSecrets":[{"name":"a"}]}"#);
    for (spec, expected) in [
        ("{}", r#"[{"name":"a"}]"#),
        (r#"{"imagePullSecrets":[{"name":"b"}]}"#, r#"[{"name":"b"}]"#),
    ] {
        let mut pod = pod(spec);
        default_pull_secrets(&mut pod, &account);
        assert_eq!(json::to_string(pod.at(&["spec", "imagePullSecrets"]).unwrap()), expected);
    }
}

#[test]
fn mirror_pods_with_api_references_are_refused() {
    for (spec, expected) in [
        ("{}", Ok(())),
        (r#"{"serviceAccountName":"a"}"#, Err("a mirror pod may not reference service accounts")),
        (
            r#"{"volumes":[{"secret":{"secretName":"a"}}]}"#,
            Err("a mirror pod may not reference secrets"),
        ),
        (
            r#"{"ephemeralContainers":[{"envFrom":[{"secretRef":{"name":"a"}}]}]}"#,
            Err("a mirror pod may not reference secrets"),
        ),
        (r#"{"imagePullSecrets":[{"name":"a"}]}"#, Err("a mirror pod may not reference secrets")),
        (
            r#"{"volumes":[{"csi":{"nodePublishSecretRef":{"name":"a"}}}]}"#,
            Err("a mirror pod may not reference secrets"),
        ),
        (
            r#"{"volumes":[{"projected":{"sources":[{"serviceAccountToken":{"path":"a"}}]}}]}"#,
            Err("a mirror pod may not use ServiceAccountToken volume projections"),
        ),
    ] {
        assert_eq!(check_mirror(&pod(spec)), expected, "{spec}");
    }
}

#[test]
fn enforced_accounts_refuse_other_secrets() {
    let account = |enforces: &str| {
        tree(&format!(
            r#"{{"metadata":{{"name":"x","annotations":{{"kubernetes.io/enforce-mountable-secrets":"{enforces}"}}}},
                "secrets":[{{"name":"own"}}],"imagePullSecrets":[{{"name":"pull"}}]}}"#
        ))
    };
    let rows = [
        (r#"{"volumes":[{"secret":{"secretName":"own"}}]}"#, None),
        (
            r#"{"volumes":[{"secret":{"secretName":"other"}}]}"#,
            Some(
                r#"volume with secret.secretName="other" is not allowed because service account x does not reference that secret"#,
            ),
        ),
        (
            r#"{"containers":[{"name":"c","env":[{"name":"E","valueFrom":{"secretKeyRef":{"name":"other"}}}]}]}"#,
            Some(
                r#"container c with envVar E referencing secret.secretName="other" is not allowed because service account x does not reference that secret"#,
            ),
        ),
        (
            r#"{"initContainers":[{"name":"c","envFrom":[{"secretRef":{"name":"other"}}]}]}"#,
            Some(
                r#"init container c with envFrom referencing secret.secretName="other" is not allowed because service account x does not reference that secret"#,
            ),
        ),
        (
            r#"{"ephemeralContainers":[{"name":"c","env":[{"name":"E","valueFrom":{"secretKeyRef":{"name":"other"}}}]}]}"#,
            Some(
                r#"ephemeral container c with envVar E referencing secret.secretName="other" is not allowed because service account x does not reference that secret"#,
            ),
        ),
        (
            r#"{"ephemeralContainers":[{"name":"c","envFrom":[{"secretRef":{"name":"other"}}]}]}"#,
            Some(
                r#"ephemeral container c with envFrom referencing secret.secretName="other" is not allowed because service account x does not reference that secret"#,
            ),
        ),
        (
            r#"{"ephemeralContainers":[{"name":"c","envFrom":[{"secretRef":{"name":"own"}}]}],"volumes":[{"secret":{"secretName":"other"}}]}"#,
            None,
        ),
        (
            r#"{"imagePullSecrets":[{"name":"other"}]}"#,
            Some(
                r#"imagePullSecrets[0].name="other" is not allowed because service account x does not reference that imagePullSecret"#,
            ),
        ),
    ];
    for (spec, expected) in rows {
        // An update checks only the ephemeral containers that it adds.
        let lists = if spec.contains("ephemeralContainers") {
            EPHEMERAL_CONTAINERS
        } else {
            INITIAL_CONTAINERS
        };
        let limited = limit_secrets(&pod(spec), &account("true"), lists);
        assert_eq!(limited.err().as_deref(), expected, "{spec}");
        assert_eq!(limit_secrets(&pod(spec), &account("false"), lists), Ok(()));
    }
}

/// A long name is copied into no other part of a pod, whatever it is the name of.
#[test]
fn long_names_are_not_copied_for_each_item() {
    let long = "x".repeat(1_500_000);
    let mut pod = pod(&format!(
        r#"{{"volumes":[{{"name":"kube-api-access-{long}"}}],"containers":[{}{{}}]}}"#,
        "{},".repeat(100_000)
    ));
    mount_token(&mut pod, || "kube-api-access-abcde".to_owned());
    let name = ["spec", "containers"];
    let containers = pod.at(&name).and_then(Value::as_array).unwrap_or_default();
    assert!(containers.iter().all(|container| {
        let mounts = container.get("volumeMounts").and_then(Value::as_array).unwrap_or_default();
        mounts[0].str_at(&["name"]) == Some("kube-api-access-abcde")
    }));

    let account = tree(
        r#"{"metadata":{"name":"x","annotations":{"kubernetes.io/enforce-mountable-secrets":"true"}},
            "secrets":[{"name":"own"}]}"#,
    );
    let variable = r#"{"valueFrom":{"secretKeyRef":{"name":"own"}}},"#.repeat(32_000);
    let source = r#"{"secretRef":{"name":"own"}},"#.repeat(32_000);
    let pod = self::pod(&format!(
        r#"{{"containers":[{{"name":"{long}","env":[{variable}{{}}],"envFrom":[{source}{{}}]}}]}}"#
    ));
    assert_eq!(limit_secrets(&pod, &account, INITIAL_CONTAINERS), Ok(()));
}
