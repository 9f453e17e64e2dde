use std::time::Duration;

use pintle_registry::results::Event;

use crate::cluster::{Cluster, Running, next};

const HOUR: i64 = 3600;

fn running(cluster: &Cluster) -> Running {
    running_with(cluster, None)
}

fn running_with(cluster: &Cluster, lifetime: Option<Duration>) -> Running {
    let environment = cluster.environment.clone();
    Running::start(|stopped| super::run(environment, lifetime, async move { _ = stopped.await }))
}

async fn event(cluster: &Cluster, name: &str) {
    let text = format!(
        r#"{{"metadata":{{"name":"{name}","namespace":"default"}},
            "involvedObject":{{"namespace":"default"}}}}"#
    );
    cluster.create("events", &text).await.unwrap_or_else(|status| panic!("{status}"));
}

async fn cluster() -> Cluster {
    let cluster = Cluster::start().await;
    cluster.create("namespaces", r#"{"metadata":{"name":"default"}}"#).await.expect("created");
    cluster
}

/// Waits until `count` events are deleted; returns their names.
async fn deleted(watch: &mut pintle_registry::watch::Watch, count: usize) -> Vec<String> {
    let mut names = Vec::new();
    while names.len() < count {
        for event in next(watch).await {
            if let Event::Deleted(object) = event {
                names.push(object.name().to_owned());
            }
        }
    }
    names
}

/// EVT-07
#[tokio::test]
async fn existing_events_expire_an_hour_after_their_newest_time_stamp() {
    let cluster = cluster().await;
    event(&cluster, "old").await;
    cluster.pass_seconds(HOUR / 2);
    event(&cluster, "young").await;
    cluster.pass_seconds(HOUR / 2);
    let mut watch = cluster.watch("events").await;
    let controller = running(&cluster);
    assert_eq!(deleted(&mut watch, 1).await, ["old"]);
    assert!(cluster.get("events", "default", "young").is_some());
    controller.stop().await;
}

/// EVT-07: an update restarts the hour.
#[tokio::test]
async fn events_expire_an_hour_after_their_last_write() {
    let cluster = cluster().await;
    event(&cluster, "canary").await;
    cluster.pass_seconds(2 * HOUR);
    let mut watch = cluster.watch("events").await;
    let controller = running(&cluster);
    // When this event is deleted, the controller has started its watch.
    assert_eq!(deleted(&mut watch, 1).await, ["canary"]);
    event(&cluster, "first").await;
    event(&cluster, "updated").await;
    cluster.pass_seconds(HOUR - 100);
    let mut updated = cluster.get("events", "default", "updated").expect("it is there");
    updated.make_object().insert("count", 2);
    cluster.update("events", updated).await.expect("updated");
    cluster.pass_seconds(200);
    event(&cluster, "later").await; // this makes the controller read the clock
    assert_eq!(deleted(&mut watch, 1).await, ["first"]);
    for name in ["updated", "later"] {
        assert!(cluster.get("events", "default", name).is_some(), "{name}");
    }
    controller.stop().await;
}

#[tokio::test]
async fn events_expire_after_the_configured_lifetime() {
    let cluster = cluster().await;
    event(&cluster, "old").await;
    cluster.pass_seconds(50);
    event(&cluster, "young").await;
    cluster.pass_seconds(20);
    let mut watch = cluster.watch("events").await;
    let controller = running_with(&cluster, Some(Duration::from_secs(60)));
    assert_eq!(deleted(&mut watch, 1).await, ["old"]);
    assert!(cluster.get("events", "default", "young").is_some());
    controller.stop().await;
}

#[tokio::test]
async fn many_events_expire_in_several_sweeps() {
    let cluster = cluster().await;
    let count = super::SWEEP_COUNT_MAX + 10;
    for i in 0..count {
        event(&cluster, &format!("e{i}")).await;
    }
    cluster.pass_seconds(2 * HOUR);
    let mut watch = cluster.watch("events").await;
    let controller = running(&cluster);
    assert_eq!(deleted(&mut watch, count).await.len(), count);
    controller.stop().await;
}
