use super::apply;
use crate::cluster::{Cluster, tree};

fn map(namespace: &str, value: &str) -> pintle_value::Value {
    tree(&format!(
        r#"{{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"a"{namespace}}},
            "data":{{"k":"{value}"}}}}"#
    ))
}

#[tokio::test]
async fn manifests_are_applied_in_any_order_and_repeatedly() {
    let cluster = Cluster::start().await;
    cluster.create("namespaces", r#"{"metadata":{"name":"default"}}"#).await.expect("created");
    let namespace =
        r#"{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"ns","labels":{"a":"b"}}}"#;
    let namespace = tree(namespace);
    let objects = vec![map(r#","namespace":"ns""#, "1"), namespace, map("", "1")];
    apply(&cluster.environment, objects.clone()).await.unwrap_or_else(|why| panic!("{why:?}"));
    let head = cluster.environment.registry.head();
    apply(&cluster.environment, objects).await.unwrap_or_else(|why| panic!("{why:?}"));
    assert_eq!(cluster.environment.registry.head(), head, "nothing changed");
    for namespace in ["ns", "default"] {
        assert!(cluster.get("configmaps", namespace, "a").is_some(), "{namespace}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_object_that_cannot_be_applied_is_an_error() {
    let cluster = Cluster::start().await;
    let start = tokio::time::Instant::now();
    let unheard = tree(r#"{"apiVersion":"a/v1","kind":"Unheard","metadata":{"name":"ns"}}"#);
    let refused = apply(&cluster.environment, vec![unheard.clone()]).await;
    let refused = refused.expect_err("no such kind");
    assert_eq!(refused.object, unheard);
    assert_eq!(refused.status.message, "no matches for kind \"Unheard\" in version \"a/v1\"");
    let nowhere = map(r#","namespace":"nowhere""#, "1");
    let refused = apply(&cluster.environment, vec![nowhere]).await.expect_err("no such namespace");
    assert_eq!(refused.status.message, "namespaces \"nowhere\" not found");
    assert!(start.elapsed().is_zero(), "no retry can help, so there is none");
}
