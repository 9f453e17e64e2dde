//! Annotations of a slow request's last event: the time that the request spent in each layer.
//! upstream: `apiserver/pkg/endpoints/filters/audit.go`, `writeLatencyToAnnotation`;
//! `apiserver/pkg/endpoints/request/webhook_duration.go`.

use std::time::Duration;

use pintle_meta::duration;
use pintle_trace::{Layer, Timing};

/// Requests that take longer are slow.
const SLOW: Duration = Duration::from_millis(500);
const TOTAL: &str = "apiserver.latency.k8s.io/total";

/// Upstream's annotations of layers. Upstream has no annotation of the other layers.
const KEYS: [(Layer, &str); 11] = [
    (Layer::Authentication, "apiserver.latency.k8s.io/authentication"),
    (Layer::Authorization, "apiserver.latency.k8s.io/authorization"),
    (Layer::Impersonation, "apiserver.latency.k8s.io/impersonation"),
    (Layer::Queue, "apiserver.latency.k8s.io/apf-queue-wait"),
    (Layer::Loading, "apiserver.latency.k8s.io/decode-response-object"),
    (Layer::MutatingWebhooks, "apiserver.latency.k8s.io/mutating-webhook"),
    (Layer::ValidatingWebhooks, "apiserver.latency.k8s.io/validating-webhook"),
    (Layer::Store, "apiserver.latency.k8s.io/etcd"),
    (Layer::Transformation, "apiserver.latency.k8s.io/transform-response-object"),
    (Layer::Encoding, "apiserver.latency.k8s.io/serialize-response-object"),
    (Layer::Sending, "apiserver.latency.k8s.io/response-write"),
];

/// The annotations of a request that took `total`: none if the request was not slow.
pub(super) fn annotations(timing: &Timing, total: Duration) -> Vec<(&'static str, String)> {
    if total <= SLOW {
        return Vec::new();
    }
    let spent = KEYS.into_iter().map(|(layer, key)| (key, timing.of(layer)));
    let all = spent.chain([(TOTAL, total)]).filter(|(_, spent)| !spent.is_zero());
    all.map(|(key, spent)| (key, format(spent))).collect()
}

fn format(time: Duration) -> String {
    duration::format(i64::try_from(time.as_nanos()).unwrap_or(i64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_slow_requests_are_annotated() {
        let timing = Timing::default();
        timing.add(Layer::Store, Duration::from_millis(300));
        timing.add(Layer::Store, Duration::from_millis(200));
        timing.add(Layer::Authorization, Duration::from_micros(15));
        timing.add(Layer::Validation, Duration::from_millis(1));
        timing.add(Layer::Encoding, Duration::from_millis(2));
        assert_eq!(annotations(&timing, SLOW), []);
        let texts = annotations(&timing, Duration::from_millis(1501));
        let text =
            |key: &str, value: &str| (format!("apiserver.latency.k8s.io/{key}"), value.to_owned());
        let texts: Vec<_> = texts.into_iter().map(|(key, value)| (key.to_owned(), value)).collect();
        let wanted = [
            text("authorization", "15µs"),
            text("etcd", "500ms"),
            text("serialize-response-object", "2ms"),
            text("total", "1.501s"),
        ];
        assert_eq!(texts, wanted);
    }
}
