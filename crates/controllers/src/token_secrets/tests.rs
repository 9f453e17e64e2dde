use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use pintle_auth::token::{Issuer, SigningKey};
use pintle_value::Value;

use crate::cluster::{Cluster, Running, gone};

const SECRETS: &str = "secrets";
const ACCOUNTS: &str = "serviceaccounts";

async fn with_controller(test: impl AsyncFnOnce(&Cluster)) {
    let cluster = Cluster::start().await;
    cluster.create("namespaces", r#"{"metadata":{"name":"ns"}}"#).await.expect("created");
    let pem = rcgen::KeyPair::generate().expect("a key").serialize_pem();
    let issuer = Arc::new(Issuer::new(SigningKey::from_pem(&pem).expect("a key"), "us"));
    let environment = cluster.environment.clone();
    let controller = Running::start(|stopped| {
        super::run(environment, issuer, "PEM".into(), async move { _ = stopped.await })
    });
    test(&cluster).await;
    controller.stop().await;
}

async fn account(cluster: &Cluster, secrets: &str) -> Value {
    let text =
        format!(r#"{{"metadata":{{"name":"robot","namespace":"ns"}},"secrets":[{secrets}]}}"#);
    cluster.create(ACCOUNTS, &text).await.expect("created")
}

async fn secret(cluster: &Cluster, name: &str) {
    let text = format!(
        r#"{{"metadata":{{"name":"{name}","namespace":"ns","annotations":{{
            "kubernetes.io/service-account.name":"robot"}}}},
            "type":"kubernetes.io/service-account-token"}}"#
    );
    cluster.create(SECRETS, &text).await.unwrap_or_else(|status| panic!("{status}"));
}

fn data(secret: &Value, member: &str) -> String {
    let bytes = BASE64.decode(secret.str_at(&["data", member]).unwrap_or_default());
    String::from_utf8(bytes.expect("base64")).expect("text")
}

/// TOK-01
#[tokio::test]
async fn a_token_secret_is_filled_and_restored() {
    with_controller(async |cluster| {
        let account = account(cluster, "").await;
        secret(cluster, "token").await;
        let is_full = |secret: &Value| !data(secret, "token").is_empty();
        let mut filled = cluster.see(SECRETS, "token", is_full).await;
        assert_eq!(
            (data(&filled, "ca.crt"), data(&filled, "namespace")),
            ("PEM".into(), "ns".into())
        );
        assert_eq!(data(&filled, "token").split('.').count(), 3);
        let uid = filled.str_at(&["metadata", "annotations", super::ACCOUNT_UID]);
        assert_eq!(uid, account.str_at(&["metadata", "uid"]));

        let token = data(&filled, "token");
        filled.object_entry("data").insert("ca.crt", "");
        cluster.update(SECRETS, filled).await.expect("updated");
        let whole = cluster.see(SECRETS, "token", |secret| data(secret, "ca.crt") == "PEM").await;
        assert_eq!(data(&whole, "token"), token, "an existing token stays");
    })
    .await;
}

#[tokio::test]
async fn a_token_secret_is_deleted_with_its_account() {
    with_controller(async |cluster| {
        let mut watch = cluster.watch(SECRETS).await;
        secret(cluster, "nobodys").await;
        gone(&mut watch, "nobodys").await;
        account(cluster, "").await;
        secret(cluster, "token").await;
        let other = r#"{"metadata":{"name":"other","namespace":"ns"}}"#;
        cluster.create(SECRETS, other).await.expect("created");
        cluster.delete(ACCOUNTS, "ns", "robot").await.expect("deleted");
        gone(&mut watch, "token").await;
        assert!(cluster.get(SECRETS, "ns", "other").is_some());
    })
    .await;
}

#[tokio::test]
async fn a_deleted_secret_is_removed_from_its_account() {
    with_controller(async |cluster| {
        account(cluster, r#"{"name":"token"},{"name":"other"}"#).await;
        secret(cluster, "token").await;
        cluster.see(SECRETS, "token", |secret| !data(secret, "token").is_empty()).await;
        cluster.delete(SECRETS, "ns", "token").await.expect("deleted");
        let count = |account: &Value| {
            account.get("secrets").and_then(Value::as_array).map_or(0, <[Value]>::len)
        };
        let left = cluster.see(ACCOUNTS, "robot", |account| count(account) == 1).await;
        assert_eq!(
            left.get("secrets").and_then(|s| s.as_array()?[0].str_at(&["name"])),
            Some("other")
        );
    })
    .await;
}
