//! Traces of requests, exported by OTLP: `--tracing-config-file`.
//!
//! A trace begins after authentication, so that the users whom upstream trusts decide about
//! sampling (upstream: `apiserver/pkg/endpoints/filters/traces.go`).
//!
//! Invariants:
//! - A request never waits for the exporter: spans for which its queue has no room are dropped and
//!   counted.
//! - Only members of [`TRUSTED`] can have a request traced. For the requests of other users the
//!   server's own sampling decides, and the client's context becomes a link.
//! - Without the flag a request costs one look at its headers.

pub(crate) mod context_headers;
mod exporter;
mod otlp;

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Instant;

use http::HeaderValue;
use http::header::USER_AGENT;
use http::request::Parts;
use parking_lot::Mutex;
use pintle_auth::User;
use pintle_trace::{Attributes, Ids, Layer, SpanContext, Start, Timing, Trace};

use crate::backends::{Backend, Dialer};
use crate::config::{Tracing, TracingEndpoint};
use crate::grpc::{Channel, Destination};
use crate::header_text;
use crate::request_info::RequestInfo;

use exporter::Queue;
pub(crate) use exporter::{Exporter, Measures, OUTCOMES};

/// The groups whose members' sampling decisions count.
const TRUSTED: [&str; 2] = ["system:masters", "system:monitoring"];

/// Decides which requests are traced, and hands their spans to the exporter.
pub(crate) struct Traces {
    sampling: Sampling,
    ids: Ids,
    queue: Queue,
    /// The task that exports the spans, until it is taken.
    exporter: Mutex<Option<Exporter>>,
}

/// The fraction of traces that is sampled, if no trusted client decides.
#[derive(Clone, Copy, Debug)]
struct Sampling {
    /// A trace is sampled if the upper 63 bits of the lower half of its id are below this.
    bound: u64,
}

/// A request whose user is known.
pub(crate) struct Asked<'a> {
    pub(crate) head: &'a Parts,
    pub(crate) info: &'a RequestInfo,
    pub(crate) user: &'a User,
    pub(crate) audit_id: &'a HeaderValue,
    pub(crate) from: IpAddr,
    pub(crate) began: Instant,
}

/// Begins the trace of a request, if it is sampled. A server without the flag passes the client's
/// context on, as upstream does.
pub(crate) fn begin(traces: Option<&Traces>, timing: &Timing, asked: &Asked<'_>) {
    let client = context_headers::read(&asked.head.headers);
    match traces {
        Some(traces) => traces.begin(timing, asked, client),
        None => client.into_iter().for_each(|context| timing.relay(context)),
    }
}

impl Traces {
    /// Traces with the endpoint and the sampling rate of the configuration file.
    pub(crate) fn new(config: &Tracing, dialer: Dialer, instance: String, seed: u64) -> Self {
        let destination = match &config.endpoint {
            TracingEndpoint::Unix(path) => Destination::Unix(path.clone()),
            TracingEndpoint::Tcp(authority) => Destination::Tcp(Box::new(Backend {
                authority: authority.clone(),
                name: None,
                tls: None,
                addresses: None,
                dialer,
            })),
        };
        let (queue, exporter) = exporter::new(Channel::new(destination), instance);
        let sampling = Sampling::per_million(config.sampling_rate_per_million);
        Self { sampling, ids: Ids::new(seed), queue, exporter: Mutex::new(Some(exporter)) }
    }

    /// The task that exports the spans; `None` after the first call.
    pub(crate) fn take_exporter(&self) -> Option<Exporter> {
        self.exporter.lock().take()
    }

    /// The exporter's counts.
    pub(crate) fn measures(&self) -> &Arc<Measures> {
        self.queue.measures()
    }

    /// Hands the spans of an ended request to the exporter.
    pub(crate) fn export(&self, trace: &Trace, code: u16) {
        let has_failed = code >= 500;
        self.queue.push(trace.finish(has_failed, |it| {
            it.number("http.response.status_code", code.into());
        }));
    }

    /// Ends the exporter once it has sent the queued spans.
    pub(crate) fn close(&self) {
        self.queue.close();
    }

    fn begin(&self, timing: &Timing, asked: &Asked<'_>, client: Option<SpanContext>) {
        let is_trusted = asked.user.groups.iter().any(|group| TRUSTED.contains(&group.as_str()));
        let (parent, link) = if is_trusted { (client, None) } else { (None, client) };
        let trace_id = match &parent {
            Some(parent) => parent.trace_id,
            None => u128::from(self.ids.next()) << 64 | u128::from(self.ids.next()),
        };
        let is_sampled = match &parent {
            Some(parent) => parent.is_sampled,
            None => self.sampling.includes(trace_id),
        };
        if !is_sampled {
            parent.into_iter().for_each(|parent| timing.relay(parent));
            return;
        }
        let (parent, state) = parent.map_or((0, Box::default()), |it| (it.span_id, it.state));
        let context = SpanContext { trace_id, span_id: self.ids.next(), is_sampled, state };
        let trace = Trace::new(Start {
            context,
            parent,
            link,
            name: name(asked),
            attributes: attributes(asked),
            began: asked.began,
        });
        let layer = Layer::Authentication;
        trace.record(layer, asked.began, timing.of(layer));
        timing.begin_trace(trace);
    }
}

impl Sampling {
    /// Samples `rate` of a million traces (upstream: `sdktrace.TraceIDRatioBased`).
    const fn per_million(rate: u32) -> Self {
        Self { bound: ((1_u128 << 63) * rate as u128 / 1_000_000) as u64 }
    }

    const fn includes(self, trace_id: u128) -> bool {
        (trace_id as u64) >> 1 < self.bound
    }
}

/// The name of the server's span (upstream: `getSpanNameFromRequestInfo`).
fn name(asked: &Asked<'_>) -> String {
    let method = asked.head.method.as_str();
    let Some(named) = &asked.info.resource else { return method.to_owned() };
    let version = match named.group.as_str() {
        "" => format!("/api/{}", named.version),
        group => format!("/apis/{group}/{}", named.version),
    };
    let part = |is_there: bool, part: &'static str| if is_there { part } else { "" };
    let namespace = part(!named.namespace.is_empty(), "/namespaces/{:namespace}");
    let name = part(!named.name.is_empty(), "/{:name}");
    let slash = part(!named.subresource.is_empty(), "/");
    format!("{method} {version}{namespace}/{}{name}{slash}{}", named.resource, named.subresource)
}

/// The attributes of the server's span (upstream: `otelhttp`).
fn attributes(asked: &Asked<'_>) -> Attributes {
    let mut it = Attributes::default();
    let uri = &asked.head.uri;
    it.text("http.request.method", asked.head.method.as_str());
    it.text("http.target", uri.path_and_query().map_or("/", |target| target.as_str()));
    it.text("url.path", uri.path());
    it.text("url.scheme", "https");
    it.text(
        "network.protocol.version",
        match asked.head.version {
            http::Version::HTTP_2 => "2",
            _ => "1.1",
        },
    );
    it.text("network.peer.address", &asked.from.to_string());
    if let Some(agent) = asked.head.headers.get(USER_AGENT) {
        it.text("user_agent.original", &header_text::text(agent));
    }
    it.text("audit-id", &header_text::text(asked.audit_id));
    it
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_a_part_of_all_ids() {
        let ids = Ids::new(7);
        for (rate, few, many) in [(0, 0, 0), (1_000_000, 4000, 4000), (250_000, 900, 1100)] {
            let sampling = Sampling::per_million(rate);
            let count = (0..4000).filter(|_| sampling.includes(ids.next().into())).count();
            assert!((few..=many).contains(&count), "{rate}: {count}");
        }
    }
}
