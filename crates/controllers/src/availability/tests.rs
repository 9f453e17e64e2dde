use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use pintle_value::Value;

use super::Prober;
use crate::cluster::{Cluster, Running};

const API_SERVICES: &str = "apiregistration.k8s.io/apiservices";
const API_SERVICE: &str = r#"{"metadata":{"name":"v1.a.io"},"spec":{"group":"a.io","version":"v1",
    "groupPriorityMinimum":1,"versionPriority":1,"insecureSkipTLSVerify":true,
    "service":{"namespace":"n","name":"s","port":443}}}"#;

#[tokio::test]
async fn the_condition_has_the_reason_of_unavailability() {
    let cluster = Cluster::start().await;
    cluster.create("namespaces", r#"{"metadata":{"name":"n"}}"#).await.expect("created");
    cluster.create(API_SERVICES, API_SERVICE).await.expect("created");
    let environment = cluster.environment.clone();
    let backend = Arc::new(Backend(Mutex::new(Err("bad status: 403".to_owned()))));
    let prober = backend.clone();
    let controller =
        Running::start(|stopped| super::run(environment, prober, async move { _ = stopped.await }));
    let service = |port: u16| {
        format!(
            r#"{{"metadata":{{"name":"s","namespace":"n"}},"spec":{{"ports":[{{"port":{port}}}]}}}}"#
        )
    };
    says(&cluster, "ServiceNotFound", "service/s in \"n\" is not present").await;
    cluster.create("services", &service(80)).await.expect("created");
    says(&cluster, "ServicePortError", "service/s in \"n\" is not listening on port 443").await;
    cluster.delete("services", "n", "s").await.expect("deleted");
    cluster.create("services", &service(443)).await.expect("created");
    let words = "cannot find endpointslices for service/s in \"n\"";
    says(&cluster, "EndpointsNotFound", words).await;
    let slice = r#"{"metadata":{"name":"s","namespace":"n","labels":{
        "kubernetes.io/service-name":"s"}},"addressType":"IPv4","endpoints":[]}"#;
    cluster.create("discovery.k8s.io/endpointslices", slice).await.expect("created");
    let words = "endpointslices for service/s in \"n\" have no addresses with port name \"\"";
    says(&cluster, "MissingEndpoints", words).await;
    cluster.delete("discovery.k8s.io/endpointslices", "n", "s").await.expect("deleted");
    let slice = r#"{"metadata":{"name":"s","namespace":"n","labels":{
        "kubernetes.io/service-name":"s"}},"addressType":"IPv4","ports":[{"name":"","port":443}],
        "endpoints":[{"addresses":["10.1.2.3"]}]}"#;
    cluster.create("discovery.k8s.io/endpointslices", slice).await.expect("created");
    says(&cluster, "FailedDiscoveryCheck", "bad status: 403").await;
    let lapses = || -> Vec<(String, u64)> {
        let counts = cluster.environment.lapses.all();
        counts.iter().map(|([_, reason], count)| (reason.to_string(), count.get())).collect()
    };
    assert_eq!(lapses(), Vec::new(), "it was never available");
    *backend.0.lock() = Ok(());
    says(&cluster, "Passed", "all checks passed").await;
    cluster.delete("discovery.k8s.io/endpointslices", "n", "s").await.expect("deleted");
    let words = "cannot find endpointslices for service/s in \"n\"";
    says(&cluster, "EndpointsNotFound", words).await;
    // The counter is incremented after the condition is written.
    let counted = async {
        while lapses().is_empty() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), counted).await.expect("it is counted");
    assert_eq!(lapses(), [("EndpointsNotFound".to_owned(), 1)]);
    controller.stop().await;
}

/// A prober with a fixed result.
struct Backend(Mutex<Result<(), String>>);

impl Prober for Backend {
    fn probe<'a>(&'a self, _: &'a Value) -> BoxFuture<'a, Result<(), String>> {
        Box::pin(async { self.0.lock().clone() })
    }
}

/// Waits until the only condition has a reason.
async fn says(cluster: &Cluster, reason: &str, message: &str) {
    let condition = |one: &Value| match one.at(&["status", "conditions"]) {
        Some(Value::Array(conditions)) if conditions.len() == 1 => Some(conditions[0].clone()),
        _ => None,
    };
    let has = |one: &Value| condition(one).is_some_and(|c| c.str_at(&["reason"]) == Some(reason));
    let seen = condition(&cluster.see(API_SERVICES, "v1.a.io", has).await).expect("it was seen");
    assert_eq!(seen.str_at(&["message"]), Some(message));
    let status = if reason == "Passed" { "True" } else { "False" };
    assert_eq!(seen.str_at(&["status"]), Some(status));
}
