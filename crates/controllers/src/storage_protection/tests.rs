//! Used objects stay until they are no longer used.

use std::future::pending;

use pintle_value::json;

use super::{CLAIMS, VOLUMES, mounts, run};
use crate::cluster::Cluster;

#[test]
fn pods_with_a_node_use_their_claims() {
    let pod = |node: &str, volume: &str| {
        let text = format!(
            r#"{{"metadata":{{"name":"p"}},"spec":{{"nodeName":"{node}","volumes":[{volume}]}}}}"#
        );
        json::parse(text.as_bytes()).expect("JSON")
    };
    let claimed = r#"{"name":"v","persistentVolumeClaim":{"claimName":"c"}}"#;
    let ephemeral = r#"{"name":"v","ephemeral":{}}"#;
    for (node, volume, claim, expected) in [
        ("n", claimed, "c", true),
        ("", claimed, "c", false),
        ("n", claimed, "other", false),
        ("n", ephemeral, "p-v", true),
        ("n", ephemeral, "p-w", false),
        ("n", r#"{"name":"v","emptyDir":{}}"#, "p-v", false),
    ] {
        assert_eq!(mounts(&pod(node, volume), claim), expected, "{node} {volume} {claim}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_claim_is_removed_after_its_pod() {
    let cluster = Cluster::start().await;
    tokio::spawn(run(cluster.environment.clone(), CLAIMS, pending()));
    let claim = r#"{"metadata":{"name":"c","namespace":"default","finalizers":["kubernetes.io/pvc-protection"]},
        "spec":{"accessModes":["ReadWriteOnce"],"resources":{"requests":{"storage":"1Gi"}}}}"#;
    let pod = r#"{"metadata":{"name":"p","namespace":"default"},"spec":{"nodeName":"n","containers":[{"name":"c","image":"i"}],
        "volumes":[{"name":"v","persistentVolumeClaim":{"claimName":"c"}}]}}"#;
    cluster.create("namespaces", r#"{"metadata":{"name":"default"}}"#).await.ok();
    cluster.create("persistentvolumeclaims", claim).await.expect("a claim");
    cluster.create("pods", pod).await.expect("a pod");
    cluster.delete("persistentvolumeclaims", "default", "c").await.expect("it begins");
    tokio::time::sleep(std::time::Duration::from_secs(60)).await;
    assert!(cluster.get("persistentvolumeclaims", "default", "c").is_some(), "it is used");
    cluster.delete_now("pods", "default", "p").await;
    while cluster.get("persistentvolumeclaims", "default", "c").is_some() {
        tokio::time::sleep(std::time::Duration::from_secs(1)).await;
    }
}

#[tokio::test]
async fn an_unbound_volume_is_removed() {
    let cluster = Cluster::start().await;
    tokio::spawn(run(cluster.environment.clone(), VOLUMES, pending()));
    let volume = r#"{"metadata":{"name":"v","finalizers":["kubernetes.io/pv-protection"]},"spec":{"accessModes":["ReadWriteOnce"],
        "capacity":{"storage":"1Gi"},"hostPath":{"path":"/tmp/v"}}}"#;
    cluster.create("persistentvolumes", volume).await.expect("a volume");
    let mut watch = cluster.watch("persistentvolumes").await;
    cluster.delete("persistentvolumes", "", "v").await.expect("it begins");
    loop {
        let events = crate::cluster::next(&mut watch).await;
        if events.iter().any(|e| matches!(e, pintle_registry::results::Event::Deleted(_))) {
            break;
        }
    }
}
