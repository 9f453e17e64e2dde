use pintle_value::Value;

use super::{Identity, Leases, RENEWAL};
use crate::cluster::{Cluster, Running, gone};

const LEASES: &str = "coordination.k8s.io/leases";

/// A server's lease with a renewal time of the tests' clock, which starts at 1,000,000 seconds.
fn lease(name: &str, label: &str, renewed: &str) -> String {
    format!(
        r#"{{"metadata":{{"name":"{name}","namespace":"kube-system","labels":{{
            "apiserver.kubernetes.io/identity":"{label}"}}}},
            "spec":{{"holderIdentity":"h","leaseDurationSeconds":3600,"renewTime":"{renewed}"}}}}"#
    )
}

#[tokio::test]
async fn a_server_renews_its_lease_and_deletes_expired_ones() {
    let cluster = Cluster::start().await;
    cluster.create("namespaces", r#"{"metadata":{"name":"kube-system"}}"#).await.expect("created");
    let long_ago = "1970-01-12T00:00:00.000000Z";
    for (name, label, renewed) in [
        ("old", "kube-apiserver", long_ago),
        ("other", "something-else", long_ago),
        ("fresh", "kube-apiserver", "1970-01-12T13:46:00.000000Z"),
    ] {
        cluster.create(LEASES, &lease(name, label, renewed)).await.expect("created");
    }

    let mut watch = cluster.watch(LEASES).await;
    let identity = Identity {
        name: "apiserver-a".into(),
        holder: "a_1".into(),
        hostname: "m".into(),
        address: "1.2.3.4:5".into(),
        keys: None,
    };
    let environment = cluster.environment.clone();
    let controller = Running::start(|stopped| {
        super::run(environment, identity, async move { _ = stopped.await })
    });
    let made = cluster.see(LEASES, "apiserver-a", |_| true).await;
    let text = |path: &[&str]| made.str_at(path).unwrap_or_default();
    assert_eq!(text(&["spec", "holderIdentity"]), "a_1");
    assert_eq!(text(&["spec", "renewTime"]), "1970-01-12T13:46:40.000000Z");
    assert_eq!(made.at(&["spec", "leaseDurationSeconds"]), Some(&Value::Int(3600)));
    let labels = &["metadata", "labels"];
    let label = |name| made.at(labels).and_then(|labels| labels.str_at(&[name]));
    assert_eq!(label("apiserver.kubernetes.io/identity"), Some("kube-apiserver"));
    assert_eq!(label("kubernetes.io/hostname"), Some("m"));
    let annotations = made.at(&["metadata", "annotations"]);
    let address = annotations.and_then(|a| a.str_at(&["kubernetes.io/peer-advertise-address"]));
    assert_eq!(address, Some("1.2.3.4:5"));
    gone(&mut watch, "old").await;

    cluster.pass_seconds(10);
    tokio::time::pause();
    tokio::time::advance(RENEWAL).await;
    tokio::time::resume();
    let renewed =
        |lease: &Value| lease.str_at(&["spec", "renewTime"]) == Some("1970-01-12T13:46:50.000000Z");
    cluster.see(LEASES, "apiserver-a", renewed).await;
    for name in ["other", "fresh"] {
        assert!(cluster.get(LEASES, "kube-system", name).is_some(), "{name}");
    }
    controller.stop().await;
}

#[tokio::test]
async fn live_servers_that_trust_other_keys_are_found() {
    let cluster = Cluster::start().await;
    cluster.create("namespaces", r#"{"metadata":{"name":"kube-system"}}"#).await.expect("created");
    let (now, before) = ("1970-01-12T13:46:40.000000Z", "1970-01-12T13:46:00.000000Z");
    for (name, keys, renewed) in
        [("same", "k", now), ("gone", "other", before), ("stranger", "other", now)]
    {
        let annotations = format!(r#""annotations":{{"pintle/trusted-keys":"{keys}"}},"labels""#);
        let lease = lease(name, "kube-apiserver", renewed).replace("\"labels\"", &annotations);
        cluster.create(LEASES, &lease).await.expect("created");
    }
    cluster.create(LEASES, &lease("upstream", "kube-apiserver", now)).await.expect("created");
    let identity = |keys: Option<&str>| Identity {
        name: "apiserver-a".into(),
        holder: "a_1".into(),
        hostname: "m".into(),
        address: "1.2.3.4:5".into(),
        keys: keys.map(Into::into),
    };
    let strangers = |keys| {
        let environment = &cluster.environment;
        let leases = environment.resource("coordination.k8s.io", "v1", "leases").expect("served");
        Leases { environment, identity: identity(keys), leases }.strangers()
    };
    assert_eq!(strangers(Some("k")), [("stranger".into(), "other".into())]);
    assert_eq!(strangers(None), [], "a server with its own store has no other servers");
}
