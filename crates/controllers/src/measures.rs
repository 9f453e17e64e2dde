//! What controllers measure: of each queue, how much it holds and how long its work takes; and how often
//! API services became unavailable.

use std::time::Duration;

use parking_lot::Mutex;
use pintle_measure::{Counter, Distribution, Gauge, Series};
use tokio::time::Instant;

/// Upstream's buckets of queues, in nanoseconds: ten times as much from one to the next.
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

/// How often each API service became unavailable, and for which reason.
pub type Lapses = Series<2, Counter>;

/// The measures of queues, by upstream's names of them.
pub type Queues = Series<1, QueueMeasures>;

/// The measures of one queue.
#[derive(Debug)]
pub struct QueueMeasures {
    /// How often something came up that did not wait already.
    pub adds: Counter,
    /// How often something was to be tried again.
    pub retries: Counter,
    /// How much waits, until it is due or to be taken up.
    pub depth: Gauge,
    /// How long what was due waited.
    pub waited: Distribution,
    /// How long the work took.
    pub worked: Distribution,
    /// When the work began that is under way.
    under_way: Mutex<Vec<Instant>>,
}

impl Default for QueueMeasures {
    fn default() -> Self {
        Self {
            adds: Counter::default(),
            retries: Counter::default(),
            depth: Gauge::default(),
            waited: Distribution::new(&QUEUE_BOUNDS),
            worked: Distribution::new(&QUEUE_BOUNDS),
            under_way: Mutex::default(),
        }
    }
}

impl QueueMeasures {
    /// Work begins on what was due.
    pub(crate) fn begin(&self, due: Instant, now: Instant) {
        self.waited.took(now.saturating_duration_since(due));
        self.under_way.lock().push(now);
    }

    /// Work ends that began then.
    pub(crate) fn end(&self, began: Instant) {
        self.worked.took(began.elapsed());
        let mut under_way = self.under_way.lock();
        if let Some(index) = under_way.iter().position(|one| *one == began) {
            under_way.swap_remove(index);
        }
    }

    /// How long all that is under way has taken so far, and the longest of it.
    pub fn unfinished(&self) -> (Duration, Duration) {
        let under_way = self.under_way.lock();
        let taken = || under_way.iter().map(Instant::elapsed);
        (taken().sum(), taken().max().unwrap_or_default())
    }
}
