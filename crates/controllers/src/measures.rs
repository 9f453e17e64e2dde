//! Measures of controllers: the sizes and durations of queues, and how often API services became
//! unavailable.

use std::time::Duration;

use parking_lot::Mutex;
use pintle_measure::{Counter, Distribution, Gauge, Series};
use tokio::time::Instant;

/// Upstream's buckets of queue durations in nanoseconds, each ten times the previous.
pub static QUEUE_BOUNDS: [u64; 10] = [
    10,
    100,
    1_000,
    10_000,
    100_000,
    1_000_000,
    10_000_000,
    100_000_000,
    1_000_000_000,
    10_000_000_000,
];

/// How often each API service became unavailable, by name and reason.
pub type Lapses = Series<2, Counter>;

/// The measures of queues, by upstream's names.
pub type Queues = Series<1, QueueMeasures>;

/// The measures of one queue.
#[derive(Debug)]
pub struct QueueMeasures {
    /// How often a name was enqueued that was not queued already.
    pub adds: Counter,
    /// How often a name was retried.
    pub retries: Counter,
    /// How many names are queued.
    pub depth: Gauge,
    /// How long due names waited.
    pub waited: Distribution,
    /// How long reconciliations took.
    pub worked: Distribution,
    /// When the reconciliations in progress started.
    in_progress: Mutex<Vec<Instant>>,
}

impl Default for QueueMeasures {
    fn default() -> Self {
        Self {
            adds: Counter::default(),
            retries: Counter::default(),
            depth: Gauge::default(),
            waited: Distribution::new(&QUEUE_BOUNDS),
            worked: Distribution::new(&QUEUE_BOUNDS),
            in_progress: Mutex::default(),
        }
    }
}

impl QueueMeasures {
    /// Starts a reconciliation of a name that was due.
    pub(crate) fn begin(&self, due: Instant, now: Instant) {
        self.waited.took(now.saturating_duration_since(due));
        self.in_progress.lock().push(now);
    }

    /// Ends a reconciliation that started at `began`.
    pub(crate) fn end(&self, began: Instant) {
        self.worked.took(began.elapsed());
        let mut in_progress = self.in_progress.lock();
        if let Some(index) = in_progress.iter().position(|one| *one == began) {
            in_progress.swap_remove(index);
        }
    }

    /// Returns the total and the longest duration of the reconciliations in progress.
    pub fn unfinished(&self) -> (Duration, Duration) {
        let in_progress = self.in_progress.lock();
        let taken = || in_progress.iter().map(Instant::elapsed);
        (taken().sum(), taken().max().unwrap_or_default())
    }
}
