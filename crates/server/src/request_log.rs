//! Writes one log line for each request, in kube-apiserver's format, with the time that each stage
//! took (upstream: `apiserver/pkg/server/httplog`).
//!
//! Invariants: a request costs nothing here while [`TARGET`] is not logged. A text from the client
//! is quoted, its control characters are escaped, and it has at most [`TEXT_BYTES_MAX`] bytes: no
//! client can forge or flood the log.

use std::net::IpAddr;
use std::time::{Duration, Instant};

use http::header::USER_AGENT;
use http::request::Parts;
use http::{HeaderValue, Method, Uri};
use tracing::Level;

use crate::header_text;
use crate::metrics::{Key, VerbLabel};
use crate::query::Query;
use crate::request_info::RequestInfo;

/// The log target. At DEBUG each request has one line; at TRACE the line has the times of its
/// stages.
const TARGET: &str = "pintle::requests";
/// Longer texts are truncated.
const TEXT_BYTES_MAX: usize = 4096;

/// The contents of a request's line, so far.
pub(crate) struct RequestLog {
    began: Instant,
    verb: Option<VerbLabel>,
    method: Method,
    uri: Uri,
    user_agent: Option<HeaderValue>,
    audit_id: HeaderValue,
    from: IpAddr,
    stages: Stages,
}

/// The time from a request's begin to the end of each stage; `None` for a stage that it did not
/// reach.
#[derive(Clone, Copy, Debug, Default)]
struct Stages {
    authenticated: Option<Duration>,
    authorized: Option<Duration>,
    answered: Option<Duration>,
}

/// How long each stage of a request took.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Times {
    authentication: Duration,
    /// Includes impersonation.
    authorization: Duration,
    /// The calls of admission webhooks, serial or parallel.
    webhooks: Duration,
    /// All else until the response begins: reading the body, admission, validation, the store.
    handling: Duration,
    /// Sending the response to the client.
    sending: Duration,
}

impl RequestLog {
    /// Begins the line of a parsed request; `None` if requests are not logged.
    pub(crate) fn begin(
        began: Instant,
        head: &Parts,
        (info, query): (&RequestInfo, &Query),
        audit_id: &HeaderValue,
        from: IpAddr,
    ) -> Option<Box<Self>> {
        if !tracing::enabled!(target: TARGET, Level::DEBUG) {
            return None;
        }
        let resource = info.resource.as_ref();
        let verb = resource.map(|it| Key::of(info, it, &head.method, &head.headers, query).verb);
        Some(Box::new(Self {
            began,
            verb,
            method: head.method.clone(),
            uri: head.uri.clone(),
            user_agent: head.headers.get(USER_AGENT).cloned(),
            audit_id: audit_id.clone(),
            from,
            stages: Stages::default(),
        }))
    }

    /// Authentication has ended.
    pub(crate) fn authenticated(&mut self) {
        self.stages.authenticated = Some(self.began.elapsed());
    }

    /// Authorization has ended.
    pub(crate) fn authorized(&mut self) {
        self.stages.authorized = Some(self.began.elapsed());
    }

    /// The response exists, and no byte of it is sent.
    pub(crate) fn answered(&mut self) {
        self.stages.answered = Some(self.began.elapsed());
    }

    /// Writes the line when the response has been sent or aborted. `webhooks` is the time that the
    /// request waited for admission webhooks.
    pub(crate) fn write(&self, code: u16, webhooks: Duration) {
        let took = self.began.elapsed();
        let verb = match self.verb {
            None | Some(VerbLabel::Other) => self.method.as_str(),
            Some(verb) => verb.name(),
        };
        let uri = self.uri.path_and_query().map_or("/", |it| it.as_str());
        let user_agent = self.user_agent.as_ref().map(header_text::text).unwrap_or_default();
        let audit_id = header_text::text(&self.audit_id);
        let (verb, uri) = (cut(verb), cut(uri));
        let (user_agent, audit_id) = (cut(&user_agent), cut(&audit_id));
        let latency = format!("{took:?}");
        let from = self.from.to_string();
        if !tracing::enabled!(target: TARGET, Level::TRACE) {
            tracing::debug!(
                target: TARGET, verb, URI = uri, latency, userAgent = user_agent, "audit-ID" = audit_id,
                srcIP = from, resp = code, "HTTP"
            );
            return;
        }
        let times = self.stages.times(took, webhooks);
        tracing::trace!(
            target: TARGET, verb, URI = uri, latency, userAgent = user_agent, "audit-ID" = audit_id,
            srcIP = from, resp = code,
            authentication = ?times.authentication, authorization = ?times.authorization,
            webhooks = ?times.webhooks, handling = ?times.handling, sending = ?times.sending, "HTTP"
        );
    }
}

impl Stages {
    /// Divides the latency among the stages. A stage that the request did not reach took no time;
    /// the last one that it reached took the rest.
    fn times(self, took: Duration, webhooks: Duration) -> Times {
        let authenticated = self.authenticated.unwrap_or(took);
        let authorized = self.authorized.unwrap_or(self.answered.unwrap_or(took));
        let answered = self.answered.unwrap_or(took);
        let handling = answered.saturating_sub(authorized);
        Times {
            authentication: authenticated,
            authorization: authorized.saturating_sub(authenticated),
            webhooks,
            handling: handling.saturating_sub(webhooks),
            sending: took.saturating_sub(answered),
        }
    }
}

/// Truncates a text that is too long, at a character boundary.
fn cut(text: &str) -> &str {
    &text[..text.floor_char_boundary(TEXT_BYTES_MAX)]
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(milliseconds: u64) -> Duration {
        Duration::from_millis(milliseconds)
    }

    #[test]
    fn the_stages_add_up_to_the_latency() {
        let (done, none) = (|at| Some(ms(at)), None);
        for (stages, expected) in [
            ([done(1), done(3), done(10)], [1, 2, 4, 3, 2]),
            ([none, none, none], [12, 0, 0, 0, 0]),
            ([done(1), none, done(4)], [1, 3, 0, 0, 8]),
        ] {
            let [authenticated, authorized, answered] = stages;
            let webhooks = ms(expected[2]);
            let stages = Stages { authenticated, authorized, answered };
            let times = stages.times(ms(12), webhooks);
            let [authentication, authorization, webhooks, handling, sending] = expected.map(ms);
            let expected = Times { authentication, authorization, webhooks, handling, sending };
            assert_eq!(times, expected, "{stages:?}");
        }
    }

    #[test]
    fn long_texts_are_cut_between_characters() {
        assert_eq!(cut("kubectl"), "kubectl");
        let long = "a".to_owned() + &"ü".repeat(TEXT_BYTES_MAX);
        assert_eq!(cut(&long).len(), TEXT_BYTES_MAX - 1);
    }
}
