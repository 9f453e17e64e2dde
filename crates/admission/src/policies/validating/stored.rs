//! Policies, bindings and parameters that are stored in a registry.

use std::sync::Arc;

use super::Validating;
use crate::cluster::{Cluster, NoPermissions};

/// A cluster with namespaces `strict` and `lax`, and a policy that bounds the length of the name of
/// Secrets by the ConfigMaps with the label `limit`, in namespaces that are labelled `strict`.
async fn cluster() -> Cluster {
    let plugin = Validating::new(Arc::new(NoPermissions), Arc::default());
    let cluster = Cluster::with(vec![Box::new(plugin)]).await;
    let selector = r#""namespaceSelector":{"matchLabels":{"kind":"strict"}}"#;
    for (resource, text) in [
        ("namespaces", r#"{"metadata":{"name":"strict","labels":{"kind":"strict"}}}"#.to_owned()),
        ("namespaces", r#"{"metadata":{"name":"lax"}}"#.to_owned()),
        (
            "admissionregistration.k8s.io/validatingadmissionpolicies",
            r#"{"metadata":{"name":"p"},"spec":{"failurePolicy":"Fail",
            "paramKind":{"apiVersion":"v1","kind":"ConfigMap"},
            "matchConstraints":{"resourceRules":[{"apiGroups":[""],"apiVersions":["v1"],
            "operations":["CREATE"],"resources":["secrets"]}]},
            "validations":[{"expression":"size(object.metadata.name) <= int(params.data.max)",
            "messageExpression":"'at most ' + params.data.max"}]}}"#
                .to_owned(),
        ),
        (
            "admissionregistration.k8s.io/validatingadmissionpolicybindings",
            format!(
                r#"{{"metadata":{{"name":"b"}},"spec":{{"policyName":"p","validationActions":["Deny"],
                "matchResources":{{{selector}}},"paramRef":{{"parameterNotFoundAction":"Deny",
                "selector":{{"matchLabels":{{"limit":"yes"}}}}}}}}}}"#
            ),
        ),
    ] {
        assert_eq!(cluster.create(resource, &text).await, Ok(Vec::new()), "{text}");
    }
    cluster
}

async fn add_params(cluster: &Cluster, name: &str, label: &str, max: &str) {
    let params = format!(
        r#"{{"metadata":{{"name":"{name}","namespace":"strict","labels":{{"limit":"{label}"}}}},
        "data":{{"max":"{max}"}}}}"#
    );
    assert_eq!(cluster.create("configmaps", &params).await, Ok(Vec::new()));
}

/// Creates a Secret; returns the end of the refusal.
async fn refusal(cluster: &Cluster, namespace: &str, name: &str) -> String {
    let secret = format!(r#"{{"metadata":{{"name":"{name}","namespace":"{namespace}"}}}}"#);
    let created = cluster.create("secrets", &secret).await;
    let refusal = created.err().map(|status| status.message).unwrap_or_default();
    refusal.rsplit(": ").next().unwrap_or_default().to_owned()
}

#[tokio::test]
async fn parameters_and_namespaces_are_selected_by_their_labels() {
    let cluster = cluster().await;
    let none = "no params found for policy binding with `Deny` parameterNotFoundAction";
    assert_eq!(refusal(&cluster, "strict", "abc").await, none);
    add_params(&cluster, "other", "no", "0").await;
    assert_eq!(refusal(&cluster, "strict", "abc").await, none);
    add_params(&cluster, "selected", "yes", "3").await;
    for (namespace, name, expected) in
        [("strict", "abc", ""), ("strict", "abcd", "at most 3"), ("lax", "abcd", "")]
    {
        assert_eq!(refusal(&cluster, namespace, name).await, expected, "{namespace} {name}");
    }
    add_params(&cluster, "also", "yes", "2").await;
    assert_eq!(refusal(&cluster, "strict", "abe").await, "at most 2");
}

/// If each of 1,000 writes decoded 50 MB of parameters, it would decode 50 GB.
#[tokio::test]
async fn parameters_that_are_not_selected_are_not_decoded() {
    let cluster = cluster().await;
    let long = "x".repeat(500_000);
    for n in 0..100 {
        add_params(&cluster, &format!("other{n}"), "no", &long).await;
    }
    add_params(&cluster, "selected", "yes", "9").await;
    for n in 0..1000 {
        assert_eq!(refusal(&cluster, "strict", &format!("s{n}")).await, "");
    }
}
