//! Events that are lost.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use super::Measures;
use crate::machine::now;

/// What may lose events, by upstream's names.
pub(crate) const LOSSES: [&str; 4] = ["buffered", "log", "truncate", "webhook"];

/// An index of [`LOSSES`].
#[derive(Clone, Copy)]
pub(super) enum Loss {
    Buffered,
    Log,
    Truncate,
    Webhook,
}

/// What a backend loses is counted, and told.
pub(super) struct Losses {
    /// What loses events, in words.
    name: &'static str,
    measures: Arc<Measures>,
    complaints: Paced,
}

/// Says something once a second at most.
#[derive(Default)]
struct Paced(AtomicI64);

impl Losses {
    pub(super) fn of(name: &'static str, measures: Arc<Measures>) -> Arc<Self> {
        Arc::new(Self { name, measures, complaints: Paced::default() })
    }

    /// Counts so many lost events, and says why they are lost.
    pub(super) fn lost(&self, to: Loss, count: usize, why: &str) {
        self.measures.lost(to, count);
        let name = self.name;
        self.complaints.tell(|| tracing::error!("the audit {name} loses events: {why}"));
    }
}

impl Paced {
    /// Says it, unless something was said in this second.
    fn tell(&self, say: impl FnOnce()) {
        let second = now().unix_seconds();
        if self.0.swap(second, Ordering::Relaxed) != second {
            say();
        }
    }
}
