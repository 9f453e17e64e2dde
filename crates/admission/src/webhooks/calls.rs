//! Calls of webhooks by writes: the reviews that they get.

use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use pintle_registry::webhook::{Caller, Conversion, Endpoint, ResponseFuture};
use pintle_trace::SpanContext;
use pintle_value::{Str, Value, json};

use super::{Callers, Webhooks};
use crate::Plugins;
use crate::cluster::{Cluster, NoPermissions};

/// Allows all requests, and records their reviews. A mutating webhook adds the label that the path of
/// its URL ends with.
#[derive(Default)]
struct Recorder {
    is_mutating: bool,
    reviews: Mutex<Vec<Value>>,
}

impl Caller for Recorder {
    fn call<'a>(
        &'a self,
        endpoint: &'a Endpoint,
        body: Vec<u8>,
        _: Duration,
        _: Option<SpanContext>,
    ) -> ResponseFuture<'a> {
        let review = json::parse(&body).expect("a review is JSON");
        let url = endpoint.url.split('?').next().unwrap_or_default();
        let label = url.rsplit('/').next().unwrap_or_default();
        // The JSON patch as a list of bytes.
        let patch = format!(r#"[{{"op":"add","path":"/metadata/labels/{label}","value":"yes"}}]"#);
        let patch = if self.is_mutating {
            format!(r#","patchType":"JSONPatch","patch":{:?}"#, patch.as_bytes())
        } else {
            String::new()
        };
        let answer = format!(
            r#"{{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","response":{{
            "uid":"1","allowed":true{patch}}}}}"#
        );
        self.reviews.lock().push(review);
        Box::pin(async { Ok(answer.into_bytes()) })
    }

    fn uid(&self) -> Str {
        "1".into()
    }

    fn now(&self) -> Instant {
        Instant::now()
    }

    fn converted(&self, _: &Conversion<'_>, _: Instant) {}
}

impl Recorder {
    /// The labels of the objects of the reviews so far.
    fn take_labels(&self) -> Vec<String> {
        let reviews = std::mem::take(&mut *self.reviews.lock());
        let labels = reviews.iter().map(|review| {
            let request = review.get("request").expect("a review has a request");
            let labels = request.at(&["object", "metadata", "labels"]);
            let labels = labels.and_then(Value::as_object).into_iter().flat_map(|all| all.iter());
            labels.map(|(key, _)| key.as_str()).collect::<Vec<_>>().join(",")
        });
        labels.collect()
    }
}

fn configuration(name: &str, hooks: &[&str], selector: &str) -> String {
    let hooks = hooks.iter().map(|hook| {
        format!(
            r#"{{"name":"{hook}.example.com","sideEffects":"None","admissionReviewVersions":["v1"],
            "clientConfig":{{"url":"https://example.com/{hook}"}},"namespaceSelector":{selector},
            "rules":[{{"apiGroups":[""],"apiVersions":["v1"],"operations":["CREATE","UPDATE"],
            "resources":["configmaps"]}}]}}"#
        )
    });
    let hooks: Vec<String> = hooks.collect();
    format!(r#"{{"metadata":{{"name":"{name}"}},"webhooks":[{}]}}"#, hooks.join(","))
}

#[tokio::test]
async fn each_webhook_gets_the_object_as_the_webhooks_before_changed_it() {
    let mutating = Arc::new(Recorder { is_mutating: true, ..Recorder::default() });
    let validating = Arc::new(Recorder::default());
    let callers = Callers { mutating: mutating.clone(), validating: validating.clone() };
    let plugins = Plugins::default();
    let webhooks = Webhooks::measured(callers, Arc::new(NoPermissions), &plugins, Arc::default());
    let cluster = Cluster::with(vec![webhooks]).await;
    let group = "admissionregistration.k8s.io";
    let selector = r#"{"matchLabels":{"kind":"reviewed"}}"#;
    for (resource, text) in [
        (
            format!("{group}/mutatingwebhookconfigurations"),
            configuration("m", &["one", "two", "two"], selector),
        ),
        (
            format!("{group}/validatingwebhookconfigurations"),
            configuration("v", &["three", "four"], selector),
        ),
        (
            "namespaces".to_owned(),
            r#"{"metadata":{"name":"reviewed","labels":{"kind":"reviewed"}}}"#.to_owned(),
        ),
        ("namespaces".to_owned(), r#"{"metadata":{"name":"other"}}"#.to_owned()),
    ] {
        let text = text.replacen(r#""two.example.com""#, r#""also.example.com""#, 1);
        assert_eq!(cluster.create(&resource, &text).await, Ok(Vec::new()), "{text}");
    }
    for (namespace, before, after) in [
        ("reviewed", &["zero", "one,zero", "one,two,zero"][..], &["one,two,zero"; 2][..]),
        ("other", &[], &[]),
    ] {
        let object = format!(
            r#"{{"metadata":{{"name":"a","namespace":"{namespace}","labels":{{"zero":""}}}}}}"#
        );
        assert_eq!(cluster.create("configmaps", &object).await, Ok(Vec::new()));
        assert_eq!(mutating.take_labels(), before, "{namespace}");
        assert_eq!(validating.take_labels(), after, "{namespace}");
    }
}
