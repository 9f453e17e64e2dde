use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use pintle_value::Value;
use tokio::task::JoinSet;

use super::recounts::Recounts;
use crate::cluster::{Cluster, Running};

const QUOTAS: &str = "resourcequotas";

fn running(cluster: &Cluster) -> Running {
    let environment = cluster.environment.clone();
    Running::start(|stopped| super::run(environment, async move { _ = stopped.await }))
}

/// A cluster with a namespace `ns`.
async fn start() -> Arc<Cluster> {
    let cluster = Cluster::limited().await;
    cluster.create("namespaces", r#"{"metadata":{"name":"ns"}}"#).await.expect("created");
    cluster
}

async fn limit(cluster: &Cluster, name: &str, hard: &str) {
    let text =
        format!(r#"{{"metadata":{{"name":"{name}","namespace":"ns"}},"spec":{{"hard":{hard}}}}}"#);
    cluster.create(QUOTAS, &text).await.expect("created");
}

fn used(quota: &Value, name: &str) -> Option<String> {
    quota.at(&["status", "used", name]).and_then(Value::as_str).map(str::to_owned)
}

/// Waits until a quota counts this.
async fn see(cluster: &Cluster, quota: &str, name: &str, expected: &str) {
    let is_it = |quota: &Value| used(quota, name).as_deref() == Some(expected);
    let seen =
        tokio::time::timeout(Duration::from_secs(60), cluster.see_in(QUOTAS, "ns", quota, is_it));
    if seen.await.is_err() {
        let quota = cluster.get(QUOTAS, "ns", quota);
        panic!("{name}: {expected} expected: {quota:?}");
    }
}

async fn make_pod(cluster: &Cluster, name: &str, data: &str) {
    let text = format!(
        r#"{{"metadata":{{"name":"{name}","namespace":"ns"}},"spec":{{"nodeName":"n",
            "containers":[{{"name":"c","image":"i","resources":{{"requests":{{"cpu":"1"}}}},
            "env":[{{"name":"A","value":"{data}"}}]}}]}}}}"#
    );
    cluster.create("pods", &text).await.expect("created");
}

/// Every write of a busy namespace changes a quota that has not been counted, so a count that is
/// only repeated conflicts for ever. Counts and changes are exact nevertheless.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_quota_of_a_busy_namespace_takes_effect() {
    const OLD: usize = 300;
    let cluster = start().await;
    let long = "x".repeat(20_000);
    for n in 0..OLD {
        make_pod(&cluster, &format!("old-{n}"), &long).await;
    }
    let controller = running(&cluster);
    let (ends, made) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(OLD)));
    let mut writers = JoinSet::new();
    for writer in 0..8 {
        let (cluster, ends, made) = (cluster.clone(), ends.clone(), made.clone());
        writers.spawn(async move {
            for n in 0.. {
                if ends.load(Ordering::Relaxed) {
                    return;
                }
                make_pod(&cluster, &format!("new-{writer}-{n}"), "x").await;
                made.fetch_add(1, Ordering::Relaxed);
                // A commit in memory need not wait, and requests of clients arrive one by one.
                tokio::task::yield_now().await;
                if n % 3 == 0 {
                    let name = format!("new-{writer}-{n}");
                    cluster.delete_now("pods", "ns", &name).await;
                    made.fetch_sub(1, Ordering::Relaxed);
                }
            }
        });
    }
    for quota in ["a", "b", "c"] {
        limit(&cluster, quota, r#"{"pods":"1000000","count/pods":"1000000"}"#).await;
        let is_counted = |quota: &Value| used(quota, "pods").is_some();
        let seen = cluster.see_in(QUOTAS, "ns", quota, is_counted);
        let seen = tokio::time::timeout(Duration::from_secs(30), seen).await;
        assert!(seen.is_ok(), "{quota} is not counted while the namespace is busy");
    }
    ends.store(true, Ordering::Relaxed);
    while let Some(ended) = writers.join_next().await {
        ended.expect("all writes succeed");
    }
    let expected = made.load(Ordering::Relaxed).to_string();
    for quota in ["a", "b", "c"] {
        for name in ["pods", "count/pods"] {
            see(&cluster, quota, name, &expected).await;
        }
    }
    controller.stop().await;
}

/// How long a pod's grace period is over when the pod is removed; the usage before and after.
#[tokio::test]
async fn a_pod_is_released_once_after_its_grace_period() {
    // The end is 60 seconds after the DELETE: the period is added to a time that includes it.
    for (seconds, before) in [(0, "2"), (65, "2"), (100, "2"), (400, "1")] {
        let cluster = start().await;
        limit(&cluster, "q", r#"{"pods":"5","cpu":"5","count/pods":"5"}"#).await;
        let controller = running(&cluster);
        see(&cluster, "q", "pods", "0").await;
        make_pod(&cluster, "stays", "x").await;
        make_pod(&cluster, "goes", "x").await;
        cluster.delete("pods", "ns", "goes").await.expect("deleted");
        see(&cluster, "q", "pods", "2").await;
        controller.stop().await;
        cluster.pass_seconds(seconds);
        let controller = running(&cluster);
        for name in ["pods", "cpu"] {
            see(&cluster, "q", name, before).await;
        }
        see(&cluster, "q", "count/pods", "2").await;
        tokio::time::sleep(Duration::from_millis(20)).await; // the controller has seen the pod
        cluster.delete_now("pods", "ns", "goes").await;
        for name in ["pods", "cpu", "count/pods"] {
            see(&cluster, "q", name, "1").await;
        }
        // A later count finds the same: the controller counts the quotas in the order in which it
        // learns of them.
        controller.stop().await;
        let controller = running(&cluster);
        limit(&cluster, "r", r#"{"pods":"5"}"#).await;
        for quota in ["r", "q"] {
            see(&cluster, quota, "pods", "1").await;
        }
        controller.stop().await;
    }
}

/// How long a pod's grace period is over when its removal is observed, and whether that requests a
/// count. A pod that a count left out may have got another end before it was removed.
#[tokio::test]
async fn a_pod_that_writes_may_have_charged_wrongly_is_counted_again() {
    for (seconds, expected) in [(0, false), (100, true), (400, true)] {
        let cluster = start().await;
        make_pod(&cluster, "goes", "x").await;
        cluster.delete("pods", "ns", "goes").await.expect("deleted");
        cluster.pass_seconds(seconds);
        let recounts = Recounts::new(&cluster.environment);
        let requests = async || {
            let next = tokio::time::timeout(Duration::from_millis(10), recounts.next());
            next.await.is_ok_and(|namespaces| namespaces.contains("ns"))
        };
        recounts.observe(&cluster.environment, "ns/goes").expect("observed");
        requests().await;
        cluster.delete_now("pods", "ns", "goes").await;
        recounts.observe(&cluster.environment, "ns/goes").expect("observed");
        assert_eq!(requests().await, expected, "{seconds}");
    }
}
