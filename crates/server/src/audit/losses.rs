//! Lost events: they are counted and logged.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use super::Measures;
use crate::machine::now;

/// The causes of lost events, by upstream's names.
pub(crate) const LOSSES: [&str; 4] = ["buffered", "log", "truncate", "webhook"];

/// An index of [`LOSSES`].
#[derive(Clone, Copy)]
pub(super) enum Loss {
    Buffered,
    Log,
    Truncate,
    Webhook,
}

/// Counts and logs the events that a backend loses.
pub(super) struct Losses {
    /// The backend's name.
    name: &'static str,
    measures: Arc<Measures>,
    log_limit: LogLimit,
}

/// Limits a log message to one per second. Contains the Unix time of the last message, in seconds.
#[derive(Default)]
struct LogLimit(AtomicI64);

impl Losses {
    pub(super) fn of(name: &'static str, measures: Arc<Measures>) -> Arc<Self> {
        Arc::new(Self { name, measures, log_limit: LogLimit::default() })
    }

    /// Counts `count` lost events and logs the reason.
    pub(super) fn lost(&self, to: Loss, count: usize, why: &str) {
        self.measures.lost(to, count);
        let name = self.name;
        self.log_limit.run(|| tracing::error!("the audit {name} backend loses events: {why}"));
    }
}

impl LogLimit {
    /// Calls `log`, unless it was called in this second.
    fn run(&self, log: impl FnOnce()) {
        let second = now().unix_seconds();
        if self.0.swap(second, Ordering::Relaxed) != second {
            log();
        }
    }
}
