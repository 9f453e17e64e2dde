//! The spans of one traced request.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use parking_lot::Mutex;

use crate::{Layer, SpanContext};

/// A request with more spans loses the last ones.
const SPANS_MAX: usize = 256;
/// Longer texts are truncated.
const TEXT_BYTES_MAX: usize = 1024;

/// The side of a span.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Internal,
    /// The server's side of a request.
    Server,
    /// The client's side of a call.
    Client,
}

/// The value of an attribute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Attribute {
    Text(String),
    Number(i64),
}

/// The attributes of a span, by key.
#[derive(Clone, Debug, Default)]
pub struct Attributes(pub Vec<(&'static str, Attribute)>);

impl Attributes {
    /// Adds a text.
    pub fn text(&mut self, key: &'static str, text: &str) {
        let text = &text[..text.floor_char_boundary(TEXT_BYTES_MAX)];
        self.0.push((key, Attribute::Text(text.to_owned())));
    }

    /// Adds a number.
    pub fn number(&mut self, key: &'static str, number: i64) {
        self.0.push((key, Attribute::Number(number)));
    }
}

/// A piece of work with its time.
#[derive(Clone, Debug)]
pub struct Span {
    pub id: u64,
    /// The id of the span that it is a part of; 0 for none.
    pub parent: u64,
    pub name: String,
    pub kind: Kind,
    /// Nanoseconds since 1970.
    pub began: u64,
    pub took: Duration,
    pub attributes: Attributes,
    /// Whether the work failed.
    pub has_failed: bool,
}

/// A request's trace that has ended.
#[derive(Debug)]
pub struct Finished {
    pub trace_id: u128,
    /// The `tracestate`, or `""`.
    pub state: Box<str>,
    /// The client's span, which is of another trace, if the client's context is not trusted.
    pub link: Option<SpanContext>,
    /// The first one is the server's.
    pub spans: Vec<Span>,
}

/// Makes ids: random at the start and different from then on.
#[derive(Debug)]
pub struct Ids(AtomicU64);

impl Ids {
    /// Ids that begin at a random number.
    pub const fn new(seed: u64) -> Self {
        Self(AtomicU64::new(seed))
    }

    /// A new id that is not 0: SplitMix64 (Steele, Lea, Flood 2014).
    pub fn next(&self) -> u64 {
        const GAMMA: u64 = 0x9e37_79b9_7f4a_7c15;
        let mut z = self.0.fetch_add(GAMMA, Ordering::Relaxed).wrapping_add(GAMMA);
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)).max(1)
    }
}

/// How a trace begins.
#[derive(Debug)]
pub struct Start {
    /// The context of the server's span.
    pub context: SpanContext,
    /// The client's span; 0 for none.
    pub parent: u64,
    /// See [`Finished::link`].
    pub link: Option<SpanContext>,
    /// The name of the server's span.
    pub name: String,
    /// The attributes of the server's span.
    pub attributes: Attributes,
    pub began: Instant,
}

/// A trace in progress.
#[derive(Debug)]
pub struct Trace {
    start: Start,
    began_unix_nanos: u64,
    ids: Ids,
    /// The span of which new spans are parts.
    current: AtomicU64,
    spans: Mutex<Vec<Span>>,
}

/// A span in progress; it ends when the value is dropped.
#[derive(Debug)]
pub struct Open<'t> {
    trace: &'t Trace,
    began: Instant,
    span: Box<Span>,
    /// The parent of spans before this one, if this one became the parent.
    outer: Option<u64>,
}

impl Trace {
    /// Begins a trace. The ids of its spans are derived from the id of the server's span.
    pub fn new(start: Start) -> Self {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let began = now.saturating_sub(start.began.elapsed());
        Self {
            began_unix_nanos: u64::try_from(began.as_nanos()).unwrap_or(u64::MAX),
            ids: Ids::new(start.context.span_id),
            current: AtomicU64::new(start.context.span_id),
            spans: Mutex::default(),
            start,
        }
    }

    /// The context of the server's span.
    pub fn context(&self) -> SpanContext {
        self.start.context.clone()
    }

    /// Records that the request was in a layer, if the layer has spans.
    pub fn record(&self, layer: Layer, began: Instant, took: Duration) {
        let Some(name) = layer.span() else { return };
        let mut span = self.span(name, Kind::Internal, began);
        span.took = took;
        self.keep(span);
    }

    /// Begins a span.
    pub(crate) fn open(
        &self,
        name: &'static str,
        kind: Kind,
        describe: impl FnOnce(&mut Attributes),
    ) -> Open<'_> {
        let began = Instant::now();
        let mut span = self.span(name, kind, began);
        describe(&mut span.attributes);
        Open { trace: self, began, span: Box::new(span), outer: None }
    }

    /// Ends the trace: takes its spans and adds the server's.
    pub fn finish(&self, has_failed: bool, describe: impl FnOnce(&mut Attributes)) -> Finished {
        let mut spans = std::mem::take(&mut *self.spans.lock());
        let mut attributes = self.start.attributes.clone();
        describe(&mut attributes);
        let server = Span {
            id: self.start.context.span_id,
            parent: self.start.parent,
            name: self.start.name.clone(),
            kind: Kind::Server,
            began: self.began_unix_nanos,
            took: self.start.began.elapsed(),
            attributes,
            has_failed,
        };
        spans.insert(0, server);
        let Start { context, link, .. } = &self.start;
        let (trace_id, state) = (context.trace_id, context.state.clone());
        Finished { trace_id, state, link: link.clone(), spans }
    }

    fn span(&self, name: &str, kind: Kind, began: Instant) -> Span {
        let after = began.saturating_duration_since(self.start.began);
        let after = u64::try_from(after.as_nanos()).unwrap_or(u64::MAX);
        Span {
            id: self.ids.next(),
            parent: self.current.load(Ordering::Relaxed),
            name: name.to_owned(),
            kind,
            began: self.began_unix_nanos.saturating_add(after),
            took: Duration::ZERO,
            attributes: Attributes::default(),
            has_failed: false,
        }
    }

    fn keep(&self, span: Span) {
        let mut spans = self.spans.lock();
        if spans.len() < SPANS_MAX {
            spans.push(span);
        }
    }
}

impl Open<'_> {
    /// Makes the span the parent of the spans that begin from now on until it ends.
    #[must_use]
    pub fn as_parent(mut self) -> Self {
        self.outer = Some(self.trace.current.swap(self.span.id, Ordering::Relaxed));
        self
    }

    /// Marks the span as failed.
    pub fn fail(&mut self) {
        self.span.has_failed = true;
    }

    /// The context that a called server gets.
    pub(crate) fn context(&self) -> SpanContext {
        SpanContext { span_id: self.span.id, ..self.trace.context() }
    }
}

impl Drop for Open<'_> {
    fn drop(&mut self) {
        if let Some(outer) = self.outer {
            self.trace.current.store(outer, Ordering::Relaxed);
        }
        self.span.took = self.began.elapsed();
        self.trace.keep(Span::clone(&self.span));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trace() -> Trace {
        let context =
            SpanContext { trace_id: 7, span_id: 5, is_sampled: true, state: "a=b".into() };
        Trace::new(Start {
            context,
            parent: 3,
            link: None,
            name: "POST".to_owned(),
            attributes: Attributes::default(),
            began: Instant::now(),
        })
    }

    /// The names of spans, each with its parent's.
    fn edges(finished: &Finished) -> Vec<(&str, &str)> {
        let name = |id| finished.spans.iter().find(|span| span.id == id).map_or("", |s| &s.name);
        finished.spans.iter().map(|span| (&*span.name, name(span.parent))).collect()
    }

    #[test]
    fn spans_are_parts_of_the_span_that_is_open() {
        let trace = trace();
        trace.record(Layer::Authentication, Instant::now(), Duration::from_millis(1));
        {
            let verb = trace.open("Create", Kind::Internal, |_| ()).as_parent();
            let mut call = trace.open("Call", Kind::Client, |it| it.text("webhook", "w"));
            assert_eq!(call.context().trace_id, 7);
            call.fail();
            drop(call);
            trace.record(Layer::Store, Instant::now(), Duration::ZERO);
            drop(verb);
        }
        trace.record(Layer::MutatingWebhooks, Instant::now(), Duration::ZERO);
        trace.record(Layer::Encoding, Instant::now(), Duration::ZERO);
        let finished = trace.finish(false, |it| it.number("code", 201));
        let expected = [
            ("POST", ""),
            ("authentication", "POST"),
            ("Call", "Create"),
            ("Commit", "Create"),
            ("Create", "POST"),
            ("SerializeObject", "POST"),
        ];
        assert_eq!(edges(&finished), expected);
        assert_eq!((finished.spans[0].id, finished.spans[0].parent), (5, 3));
        assert!(finished.spans[2].has_failed && !finished.spans[0].has_failed);
        let ids: std::collections::HashSet<u64> = finished.spans.iter().map(|s| s.id).collect();
        assert_eq!(ids.len(), finished.spans.len());
    }

    #[test]
    fn spans_and_texts_are_bounded() {
        let trace = trace();
        let long = "ü".repeat(TEXT_BYTES_MAX);
        for _ in 0..2 * SPANS_MAX {
            drop(trace.open("s", Kind::Internal, |it| it.text("t", &long)));
        }
        let finished = trace.finish(false, |_| ());
        assert_eq!(finished.spans.len(), SPANS_MAX + 1);
        let Attribute::Text(text) = &finished.spans[1].attributes.0[0].1 else { panic!() };
        assert_eq!(text.len(), TEXT_BYTES_MAX);
    }
}
