//! What the server relays between its clients and others, counted.

use pintle_measure::Counter;

use super::families::{LOGS, LOGS_OF_STRANGERS};
use super::family::Page;
use crate::backends::Verification;

/// The measures of logs and streams.
#[derive(Default)]
pub(crate) struct Streams {
    verified_logs: Counter,
    unverified_logs: Counter,
    logs_of_strangers: Counter,
}

impl Streams {
    /// Counts a log that is asked for.
    pub(crate) fn log(&self, verification: Verification) {
        match verification {
            Verification::Configured => self.verified_logs.add(1),
            Verification::Skipped => self.unverified_logs.add(1),
        }
    }

    /// Counts a log that was not read because the kubelet could not show who it is.
    pub(crate) fn log_of_a_stranger(&self) {
        self.logs_of_strangers.add(1);
    }

    pub(super) fn write(&self, page: &mut Page) {
        let mut logs = page.family(&LOGS);
        for (usage, logs_so_far) in
            [("enforce_tls", &self.verified_logs), ("skip_tls_allowed", &self.unverified_logs)]
        {
            logs.value(&[usage], logs_so_far.get());
        }
        page.single(&LOGS_OF_STRANGERS, self.logs_of_strangers.get());
    }
}
