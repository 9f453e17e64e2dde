//! The registry's measures: of each collection, and of admission.

use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use pintle_measure::{Counter, Distribution, Observed, nanoseconds};
use pintle_meta::Status;
use pintle_store::Revision;
use pintle_trace::{Layer, Timing};

use crate::operation::Operation;

/// Upstream's buckets for the time that readers wait for a revision.
pub static READ_WAIT_BOUNDS: [u64; 13] =
    nanoseconds([0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 1.25, 1.5, 2.0, 3.0]);
/// Upstream's buckets for the duration of admission.
pub static ADMISSION_BOUNDS: [u64; 6] = nanoseconds([0.005, 0.025, 0.1, 0.5, 1.0, 2.5]);

/// Counters of the reads of a collection.
#[derive(Debug)]
pub struct Reads {
    /// Lists.
    pub lists: Counter,
    /// Objects that lists scanned.
    pub looked_at: Counter,
    /// Objects that lists returned.
    pub listed: Counter,
    /// Consistent lists: of the newest state in the store.
    pub consistent: Counter,
    /// Objects in initial events of watches.
    pub initial_events: Counter,
    /// Watches that ended because the log was trimmed past them, or dropped as a whole.
    pub lagged: Counter,
    /// How often an object could not be decoded or decrypted.
    pub unreadable: Counter,
    /// How long readers waited for a revision.
    pub waits: Distribution,
}

impl Reads {
    /// Counts a list that scanned a number of objects and returned some of them.
    pub(crate) fn count(&self, scanned: u64, returned: usize) {
        self.lists.add(1);
        self.looked_at.add(scanned);
        self.listed.add(returned as u64);
    }
}

impl Default for Reads {
    fn default() -> Self {
        Self {
            lists: Counter::default(),
            looked_at: Counter::default(),
            listed: Counter::default(),
            consistent: Counter::default(),
            initial_events: Counter::default(),
            lagged: Counter::default(),
            unreadable: Counter::default(),
            waits: Distribution::new(&READ_WAIT_BOUNDS),
        }
    }
}

/// The size and counters of a collection at one moment.
#[derive(Clone, Debug)]
pub struct Stored {
    /// The collection's name.
    pub name: Arc<str>,
    /// The number of objects.
    pub objects: usize,
    /// The size of the objects in bytes: their JSON with its watch frames.
    pub bytes: usize,
    /// The revision of the newest change.
    pub revision: Revision,
    /// The number of changes in the log since the start, with those that were trimmed from it.
    pub changes: u64,
    /// Counters of reads.
    pub reads: Arc<Reads>,
}

/// The phases of admission.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Plugins that change objects.
    Admit,
    /// Plugins that refuse valid objects.
    Validate,
}

impl Phase {
    /// Both phases.
    pub const ALL: [Self; 2] = [Self::Admit, Self::Validate];

    /// Returns upstream's name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Admit => "admit",
            Self::Validate => "validate",
        }
    }
}

/// Durations of admission, by phase, operation, and whether admission refused the write. A
/// combination that never occurred allocates no distribution.
#[derive(Debug, Default)]
pub struct PhaseDurations([OnceLock<Distribution>; Phase::ALL.len() * Operation::ALL.len() * 2]);

impl PhaseDurations {
    /// Runs and measures a phase.
    pub(crate) async fn measured<T>(
        &self,
        (phase, operation): (Phase, Operation),
        timing: &Timing,
        work: impl Future<Output = Result<T, Status>>,
    ) -> Result<T, Status> {
        let began = Instant::now();
        let result = work.await;
        let took = timing.spent(Layer::Admission, began);
        self.took(phase, operation, result.is_err(), took);
        result
    }

    /// Records a duration.
    pub fn took(&self, phase: Phase, operation: Operation, rejected: bool, took: Duration) {
        let cell = &self.0[index(phase, operation, rejected)];
        cell.get_or_init(|| Distribution::new(&ADMISSION_BOUNDS)).took(took);
    }

    /// Returns the recorded durations, if there are any.
    pub fn observed(&self, phase: Phase, operation: Operation, rejected: bool) -> Option<Observed> {
        self.0[index(phase, operation, rejected)].get().map(Distribution::observed)
    }
}

fn index(phase: Phase, operation: Operation, rejected: bool) -> usize {
    (phase as usize * Operation::ALL.len() + operation as usize) * 2 + usize::from(rejected)
}
