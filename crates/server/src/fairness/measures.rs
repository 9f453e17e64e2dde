//! What is measured of the requests of a flow schema.

use pintle_fairness::Rejection;
use pintle_measure::{Counter, Distribution, nanoseconds};

/// How long requests wait and are executed.
pub(crate) static FLOW_DURATION_BOUNDS: [u64; 13] =
    nanoseconds([0.0, 0.005, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 15.0, 30.0]);
/// How many requests are in a queue.
pub(crate) static QUEUE_LENGTH_BOUNDS: [u64; 8] = [0, 10, 25, 50, 100, 250, 500, 1000];
/// How many watches hear of a write.
pub(crate) static WATCH_COUNT_BOUNDS: [u64; 6] = [0, 1, 10, 100, 1000, 10000];
/// How many seats a request takes.
pub(crate) static SEATS_BOUNDS: [u64; 8] = [1, 2, 4, 8, 16, 32, 64, 100];

/// The requests of a flow schema in a priority level. Those that wait or are executed now are counted when
/// they are asked for.
pub(crate) struct FlowMeasures {
    pub(crate) dispatched: Counter,
    rejected: [Counter; 3],
    pub(crate) queue_length: Distribution,
    /// Of those that were executed, and of those that were not.
    pub(crate) waited: [Distribution; 2],
    /// Of watches until they were begun, and of others.
    pub(crate) executed: [Distribution; 2],
    pub(crate) watch_count: Distribution,
    pub(crate) estimated_seats: Distribution,
}

/// The reasons of rejections, in the order in which they are counted.
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

    /// A request was rejected.
    pub(super) fn reject(&self, why: Rejection) {
        let index = REJECTIONS.iter().position(|one| *one == why);
        index.into_iter().for_each(|index| self.rejected[index].add(1));
    }

    /// Whether there was ever a request.
    pub(super) fn is_used(&self) -> bool {
        self.estimated_seats.observed().count() > 0
    }

    /// How many were, for each of [`REJECTIONS`].
    pub(crate) fn rejected(&self) -> [u64; 3] {
        self.rejected.each_ref().map(Counter::get)
    }
}
