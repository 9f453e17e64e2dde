use super::parent;
use crate::cluster::{Cluster, Running, gone, tree};

const ADDRESSES: &str = "networking.k8s.io/ipaddresses";
const SERVICE: &str = r#"{"metadata":{"name":"s","namespace":"default"},"spec":{
    "clusterIP":"10.0.0.9","clusterIPs":["10.0.0.9"],"ports":[{"port":80}]}}"#;

const RANGE: &str = r#"{"metadata":{"name":"kubernetes"},"spec":{"cidrs":["10.0.0.0/24"]}}"#;
const EVENTS: &str = "events.k8s.io/events";

/// Checks an event that was created one second after the start of the tests' clock.
async fn see_event(cluster: &Cluster, of: &str, reason: &str, message: &str) {
    let event = cluster.see(EVENTS, &format!("{of}.38d7ee0614a00"), |_| true).await;
    let text = |path: &[&str]| event.str_at(path).unwrap_or_default().to_owned();
    assert_eq!(text(&["reason"]), reason, "{of}");
    assert_eq!(text(&["message"]), message, "{of}");
    assert_eq!(text(&["reportingInstance"]), "ipallocator-repair-controller-m", "{of}");
    assert_eq!(text(&["metadata", "namespace"]), "default", "{of}");
}

fn address(name: &str, service: &str) -> String {
    format!(
        r#"{{"metadata":{{"name":"{name}","labels":{{
            "ipaddress.kubernetes.io/ip-family":"IPv4",
            "ipaddress.kubernetes.io/managed-by":"ipallocator.k8s.io"}}}},
            "spec":{{"parentRef":{{"resource":"services","namespace":"default","name":"{service}"}}}}}}"#
    )
}

/// These tests have no allocator: only the controller creates addresses.
#[tokio::test]
async fn addresses_are_repaired_to_match_services() {
    let cluster = Cluster::start().await;
    cluster.create("namespaces", r#"{"metadata":{"name":"default"}}"#).await.expect("created");
    cluster.create("networking.k8s.io/servicecidrs", RANGE).await.expect("created");
    cluster.create(ADDRESSES, &address("10.0.0.7", "s")).await.expect("older than the service");
    cluster.pass_seconds(1);
    cluster.create("services", SERVICE).await.expect("created");
    let outside = SERVICE.replace("\"s\"", "\"outside\"").replace("10.0.0.9", "10.1.0.1");
    cluster.create("services", &outside).await.expect("created");
    cluster
        .create(ADDRESSES, &address("10.0.0.5", "s"))
        .await
        .expect("perhaps to be the service's");
    cluster.create(ADDRESSES, &address("10.0.0.8", "gone")).await.expect("too new to have leaked");
    let own =
        r#"{"metadata":{"name":"10.0.0.6"},"spec":{"parentRef":{"resource":"a","name":"b"}}}"#;
    cluster.create(ADDRESSES, own).await.expect("an address of a user");

    let mut watch = cluster.watch(ADDRESSES).await;
    let environment = cluster.environment.clone();
    let controller =
        Running::start(|stopped| super::run(environment, "m".into(), async { _ = stopped.await }));
    let made = cluster.see(ADDRESSES, "10.0.0.9", |_| true).await;
    assert_eq!(parent(&made), Some(("default", "s")));
    gone(&mut watch, "10.0.0.7").await;
    let words = "Cluster IP [IPv4]: 10.0.0.9 is not allocated; repairing";
    see_event(&cluster, "s", "ClusterIPNotAllocated", words).await;
    let words = "IPAddress: 10.0.0.7 for Service default/s has a wrong reference; cleaning up";
    see_event(&cluster, "10.0.0.7", "IPAddressWrongReference", words).await;
    let words = "Cluster IP [IPv4]: 10.1.0.1 is not within any configured Service CIDR; please \
        recreate service";
    see_event(&cluster, "outside", "ClusterIPOutOfRange", words).await;
    assert!(cluster.get(ADDRESSES, "", "10.1.0.1").is_none());

    cluster.delete(ADDRESSES, "", "10.0.0.9").await.expect("deleted");
    let uid = made.at(&["metadata", "uid"]).cloned();
    cluster
        .see(ADDRESSES, "10.0.0.9", |again| again.at(&["metadata", "uid"]) != uid.as_ref())
        .await;

    assert!(cluster.get(ADDRESSES, "", "10.0.0.8").is_some());
    assert!(cluster.get(ADDRESSES, "", "10.0.0.5").is_some());
    for (seconds, name) in [(5, "10.0.0.5"), (60, "10.0.0.8")] {
        cluster.pass_seconds(seconds);
        let mut left = cluster.get(ADDRESSES, "", name).expect("it is there");
        left.object_entry("metadata").insert("annotations", tree(r#"{"a":"b"}"#)); // this change enqueues it
        cluster.update(ADDRESSES, left).await.expect("updated");
        gone(&mut watch, name).await;
    }
    assert!(cluster.get(ADDRESSES, "", "10.0.0.6").is_some());
    controller.stop().await;
}
