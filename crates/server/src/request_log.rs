//! Writes log lines about requests, in kube-apiserver's format: a line for each request (upstream:
//! `apiserver/pkg/server/httplog`), and a line with the times of its layers for each slow request,
//! where upstream logs the steps of a trace (`k8s.io/utils/trace`).
//!
//! Invariants: no line has a request's body or a header but `User-Agent` and `Audit-ID`. A text
//! from the client is quoted, its control characters are escaped, and it has at most
//! [`TEXT_BYTES_MAX`] bytes: no client can forge or flood the log.

use std::fmt::Write as _;
use std::net::IpAddr;
use std::time::Duration;

use http::header::USER_AGENT;
use http::request::Parts;
use http::{HeaderValue, Method, Uri};
use pintle_trace::{Layer, Timing};
use tracing::Level;
use tracing::field::{DebugValue, debug};

use crate::header_text;
use crate::metrics::{Key, VerbLabel};
use crate::query::Query;
use crate::request_info::RequestInfo;

/// The log target. INFO logs a line with the times of its layers for each slow request. DEBUG also
/// logs a line without times of layers for each request. TRACE logs instead one line with the times
/// of its layers for each request.
const TARGET: &str = "pintle::requests";
/// Longer texts are truncated.
const TEXT_BYTES_MAX: usize = 4096;

/// The contents of a request's lines, except for the code and the times.
pub(crate) struct RequestLog {
    verb: Option<VerbLabel>,
    method: Method,
    uri: Uri,
    user_agent: Option<HeaderValue>,
    audit_id: HeaderValue,
    from: IpAddr,
    /// A request that takes longer is slow. `None` for a long-running request, or if slow requests
    /// are not logged.
    slow: Option<Duration>,
}

/// Logs an event about a request with the times of its layers; a layer without a time has no field.
macro_rules! with_layers {
    ($level:ident, $text:literal, $log:expr, $code:expr, $took:expr, $timing:expr) => {{
        let (log, shown) = ($log, |layer| shown($timing.of(layer)));
        tracing::$level!(
            target: TARGET, verb = log.verb, URI = log.uri, latency = log.latency,
            userAgent = log.user_agent, "audit-ID" = log.audit_id, srcIP = log.from, resp = $code,
            authentication = shown(Layer::Authentication),
            impersonation = shown(Layer::Impersonation),
            authorization = shown(Layer::Authorization),
            queue = shown(Layer::Queue),
            receiving = shown(Layer::Receiving),
            decoding = shown(Layer::Decoding),
            loading = shown(Layer::Loading),
            admission = shown(Layer::Admission),
            "mutating-webhooks" = shown(Layer::MutatingWebhooks),
            "validating-webhooks" = shown(Layer::ValidatingWebhooks),
            webhooks = webhooks($timing),
            validation = shown(Layer::Validation),
            store = shown(Layer::Store),
            transformation = shown(Layer::Transformation),
            encoding = shown(Layer::Encoding),
            sending = shown(Layer::Sending),
            rest = ?$timing.rest($took),
            $text
        );
    }};
}

/// The texts of a line.
struct Texts<'a> {
    verb: &'a str,
    uri: &'a str,
    latency: String,
    user_agent: &'a str,
    audit_id: &'a str,
    from: String,
}

impl RequestLog {
    /// Begins the line of a parsed request; `None` if no line will be written, however long the
    /// request takes. A `slow` of zero logs no slow requests.
    pub(crate) fn begin(
        head: &Parts,
        (info, query): (&RequestInfo, &Query),
        audit_id: &HeaderValue,
        from: IpAddr,
        slow: Duration,
    ) -> Option<Box<Self>> {
        let slow = Some(slow).filter(|slow| !slow.is_zero() && !info.long_running());
        let logs_slow = slow.is_some() && tracing::enabled!(target: TARGET, Level::INFO);
        if !logs_slow && !tracing::enabled!(target: TARGET, Level::DEBUG) {
            return None;
        }
        let resource = info.resource.as_ref();
        let verb = resource.map(|it| Key::of(info, it, &head.method, &head.headers, query).verb);
        Some(Box::new(Self {
            verb,
            method: head.method.clone(),
            uri: head.uri.clone(),
            user_agent: head.headers.get(USER_AGENT).cloned(),
            audit_id: audit_id.clone(),
            from,
            slow,
        }))
    }

    /// Writes the lines that are enabled, when the response has been sent or aborted.
    pub(crate) fn write(&self, code: u16, took: Duration, timing: &Timing) {
        let is_slow = self.slow.is_some_and(|slow| took > slow);
        let is_logged = tracing::enabled!(target: TARGET, Level::DEBUG);
        if !is_slow && !is_logged {
            return;
        }
        let user_agent = self.user_agent.as_ref().map(header_text::text).unwrap_or_default();
        let audit_id = header_text::text(&self.audit_id);
        let texts = Texts {
            verb: cut(match self.verb {
                None | Some(VerbLabel::Other) => self.method.as_str(),
                Some(verb) => verb.name(),
            }),
            uri: cut(self.uri.path_and_query().map_or("/", |it| it.as_str())),
            latency: format!("{took:?}"),
            user_agent: cut(&user_agent),
            audit_id: cut(&audit_id),
            from: self.from.to_string(),
        };
        if tracing::enabled!(target: TARGET, Level::TRACE) {
            with_layers!(trace, "HTTP", texts, code, took, timing);
            return;
        }
        if is_logged {
            tracing::debug!(
                target: TARGET, verb = texts.verb, URI = texts.uri, latency = texts.latency,
                userAgent = texts.user_agent, "audit-ID" = texts.audit_id, srcIP = texts.from,
                resp = code, "HTTP"
            );
        }
        if is_slow {
            with_layers!(info, "slow request", texts, code, took, timing);
        }
    }
}

/// A layer's time; `None` if the request did not spend any in it.
fn shown(time: Duration) -> Option<DebugValue<Duration>> {
    (!time.is_zero()).then(|| debug(time))
}

/// The webhooks that were called, each with its time.
fn webhooks(timing: &Timing) -> Option<String> {
    let calls = timing.calls();
    let list = calls.iter().fold(String::new(), |mut list, (name, took)| {
        let comma = if list.is_empty() { "" } else { ", " };
        let _ = write!(list, "{comma}{name} {took:?}"); // writing to a String cannot fail
        list
    });
    (!list.is_empty()).then_some(list)
}

/// Truncates a text that is too long, at a character boundary.
fn cut(text: &str) -> &str {
    &text[..text.floor_char_boundary(TEXT_BYTES_MAX)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn webhooks_are_listed_with_their_times() {
        let timing = Timing::default();
        assert_eq!(webhooks(&timing), None);
        timing.called("a.example.com", Duration::from_millis(3));
        timing.called("b.example.com", Duration::from_millis(4));
        assert_eq!(webhooks(&timing).as_deref(), Some("a.example.com 3ms, b.example.com 4ms"));
    }

    #[test]
    fn long_texts_are_cut_between_characters() {
        assert_eq!(cut("kubectl"), "kubectl");
        let long = "a".to_owned() + &"ü".repeat(TEXT_BYTES_MAX);
        assert_eq!(cut(&long).len(), TEXT_BYTES_MAX - 1);
    }
}
