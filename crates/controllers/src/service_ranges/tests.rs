use pintle_value::Value;

use crate::cluster::{Cluster, Running, gone, tree};

const RANGES: &str = "networking.k8s.io/servicecidrs";
const ADDRESSES: &str = "networking.k8s.io/ipaddresses";

fn ready(range: &Value) -> Option<&str> {
    let conditions = range.at(&["status", "conditions"])?.as_array()?;
    conditions.first()?.str_at(&["status"])
}

#[tokio::test]
async fn a_service_cidr_in_use_is_not_removed() {
    let cluster = Cluster::start().await;
    let environment = cluster.environment.clone();
    let controller =
        Running::start(|stopped| super::run(environment, async move { _ = stopped.await }));
    for (name, cidr) in [("inner", "10.0.0.0/26"), ("outer", "10.0.0.0/24")] {
        let range = format!(r#"{{"metadata":{{"name":"{name}"}},"spec":{{"cidrs":["{cidr}"]}}}}"#);
        cluster.create(RANGES, &range).await.expect("created");
        let range = cluster.see(RANGES, name, |range| ready(range) == Some("True")).await;
        let finalizers = range.at(&["metadata", "finalizers"]).cloned();
        assert_eq!(finalizers, Some(tree(r#"["networking.k8s.io/service-cidr-finalizer"]"#)));
    }
    let address = r#"{"metadata":{"name":"10.0.0.9","labels":{
        "ipaddress.kubernetes.io/managed-by":"ipallocator.k8s.io"}},
        "spec":{"parentRef":{"resource":"services","namespace":"default","name":"s"}}}"#;
    cluster.create(ADDRESSES, address).await.expect("created");

    let mut watch = cluster.watch(RANGES).await;
    // The outer ServiceCIDR contains the address, too.
    cluster.pass_seconds(-20);
    cluster.delete(RANGES, "", "inner").await.expect("deleted");
    cluster.pass_seconds(20);
    gone(&mut watch, "inner").await;

    cluster.delete(RANGES, "", "outer").await.expect("deleted");
    let blocked = cluster.see(RANGES, "outer", |range| ready(range) == Some("False")).await;
    let condition = blocked.at(&["status", "conditions"]).and_then(Value::as_array);
    let reason = condition.and_then(|conditions| conditions[0].str_at(&["reason"]));
    assert_eq!(reason, Some("Terminating"));

    cluster.pass_seconds(20);
    cluster.delete(ADDRESSES, "", "10.0.0.9").await.expect("deleted");
    gone(&mut watch, "outer").await;
    controller.stop().await;
}
