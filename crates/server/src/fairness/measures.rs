//! Measures of a flow schema's requests.

use pintle_fairness::Rejection;
use pintle_measure::{Counter, Distribution, nanoseconds};

/// Buckets of waiting and execution times.
pub(crate) static FLOW_DURATION_BOUNDS: [u64; 13] =
    nanoseconds([0.0, 0.005, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 15.0, 30.0]);
/// Buckets of queue lengths.
pub(crate) static QUEUE_LENGTH_BOUNDS: [u64; 8] = [0, 10, 25, 50, 100, 250, 500, 1000];
/// Buckets of the watches that a write notifies.
pub(crate) static WATCH_COUNT_BOUNDS: [u64; 6] = [0, 1, 10, 100, 1000, 10000];
/// Buckets of seats per request.
pub(crate) static SEATS_BOUNDS: [u64; 8] = [1, 2, 4, 8, 16, 32, 64, 100];

/// Measures of a flow schema's requests in a level. Waiting and running requests are counted when
/// the metrics are read.
pub(crate) struct FlowMeasures {
    pub(crate) dispatched: Counter,
    rejected: [Counter; 3],
    pub(crate) queue_length: Distribution,
    /// The waits of executed and of rejected requests.
    pub(crate) waited: [Distribution; 2],
    /// The execution times of watches (until initialized) and of other requests.
    pub(crate) executed: [Distribution; 2],
    pub(crate) watch_count: Distribution,
    pub(crate) estimated_seats: Distribution,
}

/// The reasons of rejections, in order of their counters.
pub(crate) const REJECTIONS: [Rejection; 3] =
    [Rejection::ConcurrencyLimit, Rejection::QueueFull, Rejection::TimeOut];

impl FlowMeasures {
    pub(super) fn new() -> Self {
        let durations = || Distribution::new(&FLOW_DURATION_BOUNDS);
        Self {
            dispatched: Counter::default(),
            rejected: Default::default(),
            queue_length: Distribution::new(&QUEUE_LENGTH_BOUNDS),
            waited: std::array::from_fn(|_| durations()),
            executed: std::array::from_fn(|_| durations()),
            watch_count: Distribution::new(&WATCH_COUNT_BOUNDS),
            estimated_seats: Distribution::new(&SEATS_BOUNDS),
        }
    }

    /// Counts a rejection.
    pub(super) fn reject(&self, why: Rejection) {
        let index = REJECTIONS.iter().position(|one| *one == why);
        index.into_iter().for_each(|index| self.rejected[index].add(1));
    }

    /// True once there was a request.
    pub(super) fn is_used(&self) -> bool {
        self.estimated_seats.observed().count() > 0
    }

    /// The number of rejections, for each of [`REJECTIONS`].
    pub(crate) fn rejected(&self) -> [u64; 3] {
        self.rejected.each_ref().map(Counter::get)
    }
}
