//! Used objects stay until they are no longer used.

use std::future::pending;

use pintle_value::json;

use super::{CLAIMS, VOLUMES, is_referred_to, mounts, run};
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
    let template =
        r#"{"spec":{"accessModes":["ReadWriteOnce"],"resources":{"requests":{"storage":"1Gi"}}}}"#;
    for (name, source) in [
        ("c", r#""persistentVolumeClaim":{"claimName":"c"}"#),
        ("p-v", &format!(r#""ephemeral":{{"volumeClaimTemplate":{template}}}"#)),
    ] {
        let cluster = Cluster::start().await;
        tokio::spawn(run(cluster.environment.clone(), CLAIMS, pending()));
        cluster.create("namespaces", r#"{"metadata":{"name":"default"}}"#).await.ok();
        let claim = format!(
            r#"{{"metadata":{{"name":"{name}","namespace":"default","finalizers":["kubernetes.io/pvc-protection"]}},
            "spec":{{"accessModes":["ReadWriteOnce"],"resources":{{"requests":{{"storage":"1Gi"}}}}}}}}"#
        );
        let pod = format!(
            r#"{{"metadata":{{"name":"p","namespace":"default"}},"spec":{{"nodeName":"n",
            "containers":[{{"name":"c","image":"i"}}],"volumes":[{{"name":"v",{source}}}]}}}}"#
        );
        cluster.create("persistentvolumeclaims", &claim).await.expect("a claim");
        cluster.create("pods", &pod).await.expect("a pod");
        cluster.delete("persistentvolumeclaims", "default", name).await.expect("it begins");
        tokio::time::sleep(std::time::Duration::from_secs(60)).await;
        let claim = || cluster.get("persistentvolumeclaims", "default", name);
        assert!(claim().is_some(), "{name} is used");
        cluster.delete_now("pods", "default", "p").await;
        while claim().is_some() {
            tokio::time::sleep(std::time::Duration::from_secs(1)).await;
        }
    }
}

#[tokio::test]
async fn claims_refer_to_their_attributes_class() {
    let cluster = Cluster::start().await;
    cluster.create("namespaces", r#"{"metadata":{"name":"default"}}"#).await.ok();
    let claim = r#"{"metadata":{"name":"c","namespace":"default","labels":{"a":"named"}},"spec":{
        "accessModes":["ReadWriteOnce"],"resources":{"requests":{"storage":"1Gi"}},
        "volumeAttributesClassName":"used"}}"#;
    cluster.create("persistentvolumeclaims", claim).await.expect("a claim");
    for (class, expected) in [("used", true), ("named", false), ("use", false)] {
        let class = json::parse(format!(r#"{{"metadata":{{"name":"{class}"}}}}"#).as_bytes());
        let class = class.expect("JSON");
        let found = is_referred_to(&cluster.environment, &class).await;
        assert_eq!(found, Ok(expected), "{class:?}");
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
