//! Measures of logs and relayed streams.

use pintle_measure::{Counter, Series};

use super::families::{LOGS, LOGS_UNTRUSTED, TRANSLATED, TUNNELLED, WEBSOCKETS};
use super::family::Page;
use crate::backends::Verification;

/// The measures of logs and streams.
#[derive(Default)]
pub(crate) struct Streams {
    verified_logs: Counter,
    unverified_logs: Counter,
    logs_of_strangers: Counter,
    /// By the server that handles WebSockets, the kubelet or this one, and by the subresource.
    opened: Series<2, Counter>,
    /// By code.
    translated: Series<1, Counter>,
    tunnelled: Series<1, Counter>,
}

impl Streams {
    /// Counts a request for a log.
    pub(crate) fn log(&self, verification: Verification) {
        match verification {
            Verification::Configured => self.verified_logs.add(1),
            Verification::Skipped => self.unverified_logs.add(1),
        }
    }

    /// Counts a log that failed because the kubelet's certificate was invalid.
    pub(crate) fn untrusted_log(&self) {
        self.logs_of_strangers.add(1);
    }

    /// Counts a request for a stream. As in upstream, it may be over SPDY, although the metric is
    /// named after WebSockets.
    pub(crate) fn opened(&self, subresource: &str, by_kubelet: bool) {
        let method = if by_kubelet { "proxied_to_kubelet" } else { "translated_at_apiserver" };
        self.opened.with([method, subresource]).add(1);
    }

    /// Counts a remote command that was translated.
    pub(crate) fn translated(&self, code: u16) {
        self.translated.with([&code.to_string()]).add(1);
    }

    /// Counts a port-forwarding request through a tunnel.
    pub(crate) fn tunnelled(&self, code: u16) {
        self.tunnelled.with([&code.to_string()]).add(1);
    }

    pub(super) fn write(&self, page: &mut Page) {
        super::counters(page, &WEBSOCKETS, &self.opened);
        super::counters(page, &TRANSLATED, &self.translated);
        super::counters(page, &TUNNELLED, &self.tunnelled);
        let mut logs = page.family(&LOGS);
        for (usage, logs_so_far) in
            [("enforce_tls", &self.verified_logs), ("skip_tls_allowed", &self.unverified_logs)]
        {
            logs.value(&[usage], logs_so_far.get());
        }
        page.single(&LOGS_UNTRUSTED, self.logs_of_strangers.get());
    }
}
