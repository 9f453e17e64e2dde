//! Where the time of a slow request went: annotations of its last event.
//! upstream: `apiserver/pkg/endpoints/filters/audit.go`, `writeLatencyToAnnotation`;
//! `apiserver/pkg/endpoints/request/webhook_duration.go`.

use std::time::Duration;

use pintle_meta::duration;
use pintle_registry::request::Layer;

/// Requests that take longer are slow.
const SLOW: Duration = Duration::from_millis(500);
const TOTAL: &str = "apiserver.latency.k8s.io/total";
const LAYERS: usize = 8;

/// How long a request spent in each layer, in nanoseconds.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Latency([u64; LAYERS]);

/// Upstream's annotation of a layer.
const fn key(layer: Layer) -> &'static str {
    match layer {
        Layer::Authentication => "apiserver.latency.k8s.io/authentication",
        Layer::Authorization => "apiserver.latency.k8s.io/authorization",
        Layer::Impersonation => "apiserver.latency.k8s.io/impersonation",
        Layer::Queue => "apiserver.latency.k8s.io/apf-queue-wait",
        Layer::MutatingWebhooks => "apiserver.latency.k8s.io/mutating-webhook",
        Layer::ValidatingWebhooks => "apiserver.latency.k8s.io/validating-webhook",
        Layer::Store => "apiserver.latency.k8s.io/etcd",
        Layer::Sending => "apiserver.latency.k8s.io/response-write",
    }
}

const ALL: [Layer; LAYERS] = [
    Layer::Authentication,
    Layer::Authorization,
    Layer::Impersonation,
    Layer::Queue,
    Layer::MutatingWebhooks,
    Layer::ValidatingWebhooks,
    Layer::Store,
    Layer::Sending,
];

impl Latency {
    /// The request spent more time in a layer.
    pub(super) fn add(&mut self, layer: Layer, time: Duration) {
        let nanoseconds = &mut self.0[layer as usize];
        *nanoseconds = nanoseconds.saturating_add(nanos(time));
    }

    /// The annotations of a request that took so long: none if it was not slow.
    pub(super) fn annotations(self, total: Duration) -> Vec<(&'static str, String)> {
        if total <= SLOW {
            return Vec::new();
        }
        let format = |nanoseconds| duration::format(i64::try_from(nanoseconds).unwrap_or(i64::MAX));
        let spent = ALL.into_iter().map(|layer| (key(layer), self.0[layer as usize]));
        let all = spent.chain([(TOTAL, nanos(total))]).filter(|(_, spent)| *spent > 0);
        all.map(|(key, spent)| (key, format(spent))).collect()
    }
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_slow_requests_are_annotated() {
        let mut latency = Latency::default();
        latency.add(Layer::Store, Duration::from_millis(300));
        latency.add(Layer::Store, Duration::from_millis(200));
        latency.add(Layer::Authorization, Duration::from_micros(15));
        assert_eq!(latency.annotations(SLOW), []);
        let texts = latency.annotations(Duration::from_millis(1501));
        let text =
            |key: &str, value: &str| (format!("apiserver.latency.k8s.io/{key}"), value.to_owned());
        let texts: Vec<_> = texts.into_iter().map(|(key, value)| (key.to_owned(), value)).collect();
        let wanted =
            [text("authorization", "15µs"), text("etcd", "500ms"), text("total", "1.501s")];
        assert_eq!(texts, wanted);
    }

    #[test]
    fn each_layer_has_a_place() {
        assert!(ALL.into_iter().enumerate().all(|(place, layer)| layer as usize == place));
    }
}
