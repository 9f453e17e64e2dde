//! The times of one request.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use crate::span::{Attributes, Kind, Open, Trace};
use crate::{LAYERS, Layer, SpanContext};

/// A request that calls more webhooks reports only the first ones by name.
const WEBHOOKS_MAX: usize = 32;

/// How long a request spent in each layer, and its trace if it is traced. Shared by all parts of
/// the server that handle the request.
#[derive(Debug, Default)]
pub struct Timing {
    /// Nanoseconds by layer.
    spent: [AtomicU64; LAYERS.len()],
    /// The names of the webhooks that were called, with the time of each call.
    webhooks: Mutex<Vec<(String, Duration)>>,
    trace: OnceLock<Box<Trace>>,
    /// The client's context that is passed on to called servers, if the request is not traced.
    relayed: OnceLock<Box<SpanContext>>,
}

impl Timing {
    /// Records that the request was in a layer since `began`. Returns that time.
    pub fn spent(&self, layer: Layer, began: Instant) -> Duration {
        let took = began.elapsed();
        self.add(layer, took);
        if let Some(trace) = self.trace.get() {
            trace.record(layer, began, took);
        }
        took
    }

    /// Adds to the time of a layer.
    pub fn add(&self, layer: Layer, time: Duration) {
        self.spent[layer as usize].fetch_add(nanoseconds(time), Ordering::Relaxed);
    }

    /// The time in a layer. That of [`Layer::Admission`] is without webhooks.
    pub fn of(&self, layer: Layer) -> Duration {
        let gross =
            |layer: Layer| Duration::from_nanos(self.spent[layer as usize].load(Ordering::Relaxed));
        match layer {
            Layer::Admission => gross(layer).saturating_sub(self.webhooks()),
            _ => gross(layer),
        }
    }

    /// The time in admission webhooks.
    pub fn webhooks(&self) -> Duration {
        self.of(Layer::MutatingWebhooks) + self.of(Layer::ValidatingWebhooks)
    }

    /// The part of a request's time that no layer has.
    pub fn rest(&self, total: Duration) -> Duration {
        let layers: Duration = LAYERS.into_iter().map(|layer| self.of(layer)).sum();
        total.saturating_sub(layers)
    }

    /// Records the call of a webhook.
    pub fn called(&self, webhook: &str, took: Duration) {
        let mut webhooks = self.webhooks.lock();
        if webhooks.len() < WEBHOOKS_MAX {
            webhooks.push((webhook.to_owned(), took));
        }
    }

    /// The webhooks that were called, with the time of each call.
    pub fn calls(&self) -> Vec<(String, Duration)> {
        self.webhooks.lock().clone()
    }

    /// Traces the request from now on. Only the first call has an effect.
    pub fn begin_trace(&self, trace: Trace) {
        let _ = self.trace.set(Box::new(trace));
    }

    /// The trace, if the request is traced.
    pub fn trace(&self) -> Option<&Trace> {
        self.trace.get().map(|trace| &**trace)
    }

    /// Passes the client's context on to the servers that are called for this request.
    pub fn relay(&self, context: SpanContext) {
        let _ = self.relayed.set(Box::new(context));
    }

    /// Begins a span if the request is traced. It ends when the value is dropped.
    pub fn open(
        &self,
        name: &'static str,
        kind: Kind,
        describe: impl FnOnce(&mut Attributes),
    ) -> Option<Open<'_>> {
        self.trace().map(|trace| trace.open(name, kind, describe))
    }

    /// The context that a called server gets: that of `span`; without one, that of the server's
    /// span, or the client's context if the request is not traced.
    pub fn context(&self, span: Option<&Open<'_>>) -> Option<SpanContext> {
        match span {
            Some(span) => Some(span.context()),
            None => self
                .trace()
                .map(Trace::context)
                .or_else(|| self.relayed.get().map(|it| SpanContext::clone(it))),
        }
    }
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(milliseconds: u64) -> Duration {
        Duration::from_millis(milliseconds)
    }

    #[test]
    fn the_layers_and_the_rest_add_up_to_the_total() {
        let timing = Timing::default();
        timing.add(Layer::Authentication, ms(1));
        timing.add(Layer::Admission, ms(10));
        timing.add(Layer::MutatingWebhooks, ms(4));
        timing.add(Layer::ValidatingWebhooks, ms(3));
        timing.add(Layer::Store, ms(2));
        timing.add(Layer::Store, ms(3));
        assert_eq!(timing.of(Layer::Admission), ms(3));
        assert_eq!(timing.webhooks(), ms(7));
        assert_eq!(timing.of(Layer::Store), ms(5));
        assert_eq!(timing.rest(ms(20)), ms(4));
        assert_eq!(timing.rest(ms(1)), ms(0));
    }

    #[test]
    fn the_number_of_named_webhooks_is_bounded() {
        let timing = Timing::default();
        (0..2 * WEBHOOKS_MAX).for_each(|number| timing.called(&number.to_string(), ms(1)));
        assert_eq!(timing.calls().len(), WEBHOOKS_MAX);
    }

    #[test]
    fn only_a_relayed_context_leaves_a_request_without_a_trace() {
        let context =
            SpanContext::parse(b"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", b"a=b");
        let timing = Timing::default();
        assert_eq!(timing.context(None), None);
        assert!(timing.open("", Kind::Internal, |_| ()).is_none());
        timing.relay(context.clone().expect("it is valid"));
        assert_eq!(timing.context(None), context);
    }
}
