use pintle_value::Value;

use super::{ANNOTATION, NAME};
use crate::cluster::{Cluster, Running};

const MAPS: &str = "configmaps";

fn running(cluster: &Cluster, pem: &'static str) -> Running {
    let environment = cluster.environment.clone();
    let stop = |stopped: tokio::sync::oneshot::Receiver<()>| async move { _ = stopped.await };
    Running::start(|stopped| super::run(environment, pem.into(), stop(stopped)))
}

fn holds(map: &Value, pem: &str) -> bool {
    map.get("data") == Some(&Value::from([("ca.crt", pem)]))
        && map.str_at(&["metadata", "annotations", ANNOTATION]).is_some_and(|t| t.len() > 100)
}

/// KCM-03
#[tokio::test]
async fn the_config_map_is_in_every_namespace_and_is_restored() {
    let cluster = Cluster::start().await;
    cluster.create("namespaces", r#"{"metadata":{"name":"ns"}}"#).await.expect("created");
    let controller = running(&cluster, "PEM");
    let mut map = cluster.see_in(MAPS, "ns", NAME, |map| holds(map, "PEM")).await;

    map.object_entry("data").insert("more", "x");
    cluster.update(MAPS, map.clone()).await.expect("updated");
    cluster.see_in(MAPS, "ns", NAME, |map| holds(map, "PEM")).await;
    map.object_entry("metadata").remove("annotations");
    cluster.update(MAPS, map).await.expect("updated");
    cluster.see_in(MAPS, "ns", NAME, |map| holds(map, "PEM")).await;
    cluster.delete(MAPS, "ns", NAME).await.expect("deleted");
    cluster.see_in(MAPS, "ns", NAME, |map| holds(map, "PEM")).await;
    controller.stop().await;

    let controller = running(&cluster, "ANOTHER");
    cluster.see_in(MAPS, "ns", NAME, |map| holds(map, "ANOTHER")).await;
    controller.stop().await;
}
