//! The measures of the garbage collector: what it has observed, and what it has still to do.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use pintle_store::Revision;

/// How far the collector is behind, for metrics.
#[derive(Debug, Default)]
pub struct Progress {
    observed: AtomicU64,
    queued: AtomicUsize,
    pub(super) evaluations: AtomicU64,
}

impl Progress {
    pub(super) fn report(&self, observed: Revision, queued: usize) {
        self.observed.store(observed.0, Ordering::Relaxed);
        self.queued.store(queued, Ordering::Relaxed);
    }

    /// How many of the writes up to a revision the collector has not observed; `None` if no
    /// collector runs.
    pub fn unobserved_writes(&self, head: Revision) -> Option<u64> {
        let observed = self.observed.load(Ordering::Relaxed);
        (observed > 0).then(|| head.0.saturating_sub(observed))
    }

    /// How many evaluations of objects there were.
    pub fn evaluations(&self) -> u64 {
        self.evaluations.load(Ordering::Relaxed)
    }

    /// How many objects are queued for evaluation or are being written.
    pub fn queued(&self) -> usize {
        self.queued.load(Ordering::Relaxed)
    }
}
