//! A line of the log for each request, as kube-apiserver writes it, and where the request's time went
//! (upstream: `apiserver/pkg/server/httplog`).
//!
//! Invariants: nothing is noted of a request while [`TARGET`] is not logged. A text that the client chose is
//! quoted, its control characters are escaped, and it has at most [`TEXT_BYTES_MAX`]: no client can forge
//! a line or fill the log with one.

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

/// The target of the lines: at DEBUG one for each request, at TRACE the same line with the times of its stages.
const TARGET: &str = "pintle::requests";
/// Longer texts are cut off.
const TEXT_BYTES_MAX: usize = 4096;

/// What the line of a request says, as far as the request has come.
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

/// How long after its begin a request had passed a stage; `None` where it did not come so far.
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
    /// Impersonation included.
    authorization: Duration,
    /// Admission webhooks, one after the other or side by side.
    webhooks: Duration,
    /// The rest until there is an answer: reading the body, admission, validation, the store.
    handling: Duration,
    /// Until the client has taken the answer.
    sending: Duration,
}

impl RequestLog {
    /// The line of a request that was read; `None` where requests are not logged.
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

    /// There is an answer, of which nothing is sent yet.
    pub(crate) fn answered(&mut self) {
        self.stages.answered = Some(self.began.elapsed());
    }

    /// Writes the line of a request whose answer has been sent, or broken off. `webhooks` is how long it
    /// waited for admission webhooks.
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
    /// What each stage took of a request that took so long. A stage that the request did not reach took
    /// nothing; the one in which it ended took the rest.
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

/// A text, cut off between two characters where it is too long.
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
