use std::sync::Arc;
use std::time::{Duration, Instant};

use pintle_registry::webhook::{CallError, Caller, Conversion, Endpoint, ResponseFuture};
use pintle_trace::SpanContext;
use pintle_value::{Str, Value};

use super::Definitions;
use crate::cluster::{Cluster, Running, gone};

const CRD: &str = r#"{"metadata":{"name":"widgets.example.com"},"spec":{
    "group":"example.com","scope":"Cluster","names":{"plural":"widgets","singular":"widget",
    "kind":"Widget","listKind":"WidgetList"},"versions":[{"name":"v1","served":true,"storage":true,
    "schema":{"openAPIV3Schema":{"type":"object"}}}]}}"#;
const CRDS: &str = "apiextensions.k8s.io/customresourcedefinitions";

/// A caller of webhooks that is never called.
struct NoCaller;

impl Caller for NoCaller {
    fn call<'a>(
        &'a self,
        _: &'a Endpoint,
        _: Vec<u8>,
        _: Duration,
        _: Option<SpanContext>,
    ) -> ResponseFuture<'a> {
        Box::pin(async { Err(CallError::no_response("no webhook is called here".to_owned())) })
    }

    fn uid(&self) -> Str {
        Str::default()
    }

    fn now(&self) -> Instant {
        Instant::now()
    }

    fn converted(&self, _: &Conversion<'_>, _: Instant) {}
}

async fn define(cluster: &Cluster) {
    cluster.create(CRDS, CRD).await.expect("defined");
    let is_established = |crd: &Value| {
        let conditions = crd.at(&["status", "conditions"]).and_then(Value::as_array);
        conditions.unwrap_or_default().iter().any(|condition| {
            condition.str_at(&["type"]) == Some("Established")
                && condition.str_at(&["status"]) == Some("True")
        })
    };
    cluster.see(CRDS, "widgets.example.com", is_established).await;
}

/// A slow webhook delays a create until its definition was deleted, and perhaps created again: the
/// create fails, and leaves no object for the new definition.
#[tokio::test]
async fn no_object_outlives_its_definition() {
    let (cluster, gate) = Cluster::gated().await;
    let built_in = pintle_kinds::built_in(&pintle_kinds::RuntimeConfig::default());
    let environment = cluster.environment.clone();
    let definitions = Definitions::restore(environment, built_in, Arc::new(NoCaller));
    let controller = Running::start(|stopped| definitions.run(async move { _ = stopped.await }));
    for is_defined_again in [false, true] {
        define(&cluster).await;
        assert_eq!(cluster.count("example.com/widgets").await, 0);
        let late = tokio::spawn({
            let cluster = cluster.clone();
            let text = r#"{"metadata":{"name":"late","labels":{"held":""}}}"#;
            async move { cluster.create("example.com/widgets", text).await }
        });
        gate.reached().await;
        let mut watch = cluster.watch(CRDS).await;
        cluster.delete(CRDS, "", "widgets.example.com").await.expect("deleted");
        gone(&mut watch, "widgets.example.com").await;
        if is_defined_again {
            define(&cluster).await;
        }
        gate.open();
        let refused = late.await.expect("it ends").expect_err("its definition was deleted");
        assert_eq!(refused.code, 404, "{refused}");
    }
    assert_eq!(cluster.count("example.com/widgets").await, 0);
    cluster.create("example.com/widgets", r#"{"metadata":{"name":"a"}}"#).await.expect("created");
    controller.stop().await;
}
