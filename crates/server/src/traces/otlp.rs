//! The messages of OTLP, as far as spans need them (`opentelemetry/proto/collector/trace/v1`).

use pintle_trace::{Attribute, Finished, Kind, Span as Recorded};
use prost::Message;

/// The method to which spans are exported.
pub(super) const EXPORT: &str = "/opentelemetry.proto.collector.trace.v1.TraceService/Export";
/// upstream: `apiserverService` of `apiserver/pkg/server/options/tracing.go`.
const SERVICE: &str = "apiserver";
/// The name of the instrumentation.
const SCOPE: &str = "pintle";
const STATUS_ERROR: i32 = 2;

#[derive(Clone, PartialEq, Message)]
pub(super) struct ExportRequest {
    #[prost(message, repeated, tag = "1")]
    resource_spans: Vec<ResourceSpans>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct ExportResponse {
    #[prost(message, optional, tag = "1")]
    pub(super) partial_success: Option<PartialSuccess>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct PartialSuccess {
    #[prost(int64, tag = "1")]
    pub(super) rejected_spans: i64,
    #[prost(string, tag = "2")]
    pub(super) error_message: String,
}

#[derive(Clone, PartialEq, Message)]
struct ResourceSpans {
    #[prost(message, optional, tag = "1")]
    resource: Option<Resource>,
    #[prost(message, repeated, tag = "2")]
    scope_spans: Vec<ScopeSpans>,
}

#[derive(Clone, PartialEq, Message)]
struct Resource {
    #[prost(message, repeated, tag = "1")]
    attributes: Vec<KeyValue>,
}

#[derive(Clone, PartialEq, Message)]
struct ScopeSpans {
    #[prost(message, optional, tag = "1")]
    scope: Option<Scope>,
    #[prost(message, repeated, tag = "2")]
    spans: Vec<Span>,
}

#[derive(Clone, PartialEq, Message)]
struct Scope {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(string, tag = "2")]
    version: String,
}

#[derive(Clone, PartialEq, Message)]
struct Span {
    #[prost(bytes = "vec", tag = "1")]
    trace_id: Vec<u8>,
    #[prost(bytes = "vec", tag = "2")]
    span_id: Vec<u8>,
    #[prost(string, tag = "3")]
    trace_state: String,
    #[prost(bytes = "vec", tag = "4")]
    parent_span_id: Vec<u8>,
    #[prost(string, tag = "5")]
    name: String,
    #[prost(int32, tag = "6")]
    kind: i32,
    #[prost(fixed64, tag = "7")]
    start_time_unix_nano: u64,
    #[prost(fixed64, tag = "8")]
    end_time_unix_nano: u64,
    #[prost(message, repeated, tag = "9")]
    attributes: Vec<KeyValue>,
    #[prost(message, repeated, tag = "13")]
    links: Vec<Link>,
    #[prost(message, optional, tag = "15")]
    status: Option<Status>,
}

#[derive(Clone, PartialEq, Message)]
struct Link {
    #[prost(bytes = "vec", tag = "1")]
    trace_id: Vec<u8>,
    #[prost(bytes = "vec", tag = "2")]
    span_id: Vec<u8>,
    #[prost(string, tag = "3")]
    trace_state: String,
}

#[derive(Clone, PartialEq, Message)]
struct Status {
    #[prost(int32, tag = "3")]
    code: i32,
}

#[derive(Clone, PartialEq, Message)]
struct KeyValue {
    #[prost(string, tag = "1")]
    key: String,
    #[prost(message, optional, tag = "2")]
    value: Option<AnyValue>,
}

#[derive(Clone, PartialEq, Message)]
struct AnyValue {
    #[prost(string, optional, tag = "1")]
    string_value: Option<String>,
    #[prost(int64, optional, tag = "3")]
    int_value: Option<i64>,
}

impl ExportRequest {
    /// The spans of traces, under the name of the server's instance.
    pub(super) fn new(instance: &str, traces: Vec<Finished>) -> Self {
        let text = |key: &str, value: &str| KeyValue::new(key, Attribute::Text(value.to_owned()));
        let attributes = vec![
            text("service.name", SERVICE),
            text("service.instance.id", instance),
            text("service.version", crate::version::GIT_VERSION),
        ];
        let scope = Scope { name: SCOPE.to_owned(), version: env!("CARGO_PKG_VERSION").to_owned() };
        let spans = traces.into_iter().flat_map(spans).collect();
        Self {
            resource_spans: vec![ResourceSpans {
                resource: Some(Resource { attributes }),
                scope_spans: vec![ScopeSpans { scope: Some(scope), spans }],
            }],
        }
    }
}

fn spans(trace: Finished) -> impl Iterator<Item = Span> {
    let Finished { trace_id, state, mut link, spans } = trace;
    spans.into_iter().map(move |span| Span::new(trace_id, &state, span, link.take().into_iter()))
}

impl Span {
    fn new(
        trace_id: u128,
        state: &str,
        span: Recorded,
        links: impl Iterator<Item = pintle_trace::SpanContext>,
    ) -> Self {
        let took = u64::try_from(span.took.as_nanos()).unwrap_or(u64::MAX);
        let parent = (span.parent != 0).then(|| span.parent.to_be_bytes().to_vec());
        Self {
            trace_id: trace_id.to_be_bytes().to_vec(),
            span_id: span.id.to_be_bytes().to_vec(),
            trace_state: state.to_owned(),
            parent_span_id: parent.unwrap_or_default(),
            name: span.name,
            kind: match span.kind {
                Kind::Internal => 1,
                Kind::Server => 2,
                Kind::Client => 3,
            },
            start_time_unix_nano: span.began,
            end_time_unix_nano: span.began.saturating_add(took),
            attributes: span.attributes.0.into_iter().map(|(k, v)| KeyValue::new(k, v)).collect(),
            links: links
                .map(|context| Link {
                    trace_id: context.trace_id.to_be_bytes().to_vec(),
                    span_id: context.span_id.to_be_bytes().to_vec(),
                    trace_state: context.state.into(),
                })
                .collect(),
            status: span.has_failed.then_some(Status { code: STATUS_ERROR }),
        }
    }
}

impl KeyValue {
    fn new(key: &str, value: Attribute) -> Self {
        let value = match value {
            Attribute::Text(text) => AnyValue { string_value: Some(text), int_value: None },
            Attribute::Number(number) => AnyValue { string_value: None, int_value: Some(number) },
        };
        Self { key: key.to_owned(), value: Some(value) }
    }
}
