//! What the registry measures: of each collection, and of admission as a whole.

use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use pintle_measure::{Counter, Distribution, Observed, nanoseconds};
use pintle_meta::Status;
use pintle_store::Revision;

use crate::admission::Operation;

/// Upstream's buckets of how long readers wait for a revision.
pub static READ_WAIT_BOUNDS: [u64; 13] =
    nanoseconds([0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 1.25, 1.5, 2.0, 3.0]);
/// Upstream's buckets of how long admission takes.
pub static ADMISSION_BOUNDS: [u64; 6] = nanoseconds([0.005, 0.025, 0.1, 0.5, 1.0, 2.5]);

/// What was read of a collection.
#[derive(Debug)]
pub struct Reads {
    /// Lists.
    pub lists: Counter,
    /// Objects that lists looked at.
    pub looked_at: Counter,
    /// Objects that lists gave.
    pub listed: Counter,
    /// Lists of the newest state, which is that of the store.
    pub consistent: Counter,
    /// Objects that watches began with.
    pub initial_events: Counter,
    /// Watches that ended because what they were still to tell is no longer known.
    pub outrun: Counter,
    /// Objects that could not be read.
    pub unreadable: Counter,
    /// How long readers waited for a revision.
    pub waits: Distribution,
}

impl Default for Reads {
    fn default() -> Self {
        Self {
            lists: Counter::default(),
            looked_at: Counter::default(),
            listed: Counter::default(),
            consistent: Counter::default(),
            initial_events: Counter::default(),
            outrun: Counter::default(),
            unreadable: Counter::default(),
            waits: Distribution::new(&READ_WAIT_BOUNDS),
        }
    }
}

/// A collection at one moment.
#[derive(Clone, Debug)]
pub struct Stored {
    /// Its name.
    pub name: Arc<str>,
    /// How many objects it holds.
    pub objects: usize,
    /// The size of their JSON.
    pub bytes: usize,
    /// The newest change.
    pub revision: Revision,
    /// How many changes there were since the server started, and those that it found.
    pub changes: u64,
    /// What was read.
    pub reads: Arc<Reads>,
}

/// The two halves of admission.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Those who change objects.
    Admit,
    /// Those who refuse what is valid.
    Validate,
}

impl Phase {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Admit, Self::Validate];

    /// Upstream's name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Admit => "admit",
            Self::Validate => "validate",
        }
    }
}

/// How long something about admission took, by phase, operation, and whether it ended in a refusal. What
/// never happened takes no room.
#[derive(Debug, Default)]
pub struct PhaseDurations([OnceLock<Distribution>; Phase::ALL.len() * Operation::ALL.len() * 2]);

impl PhaseDurations {
    /// Measures a phase.
    pub(crate) async fn measured<T>(
        &self,
        phase: Phase,
        operation: Operation,
        work: impl Future<Output = Result<T, Status>>,
    ) -> Result<T, Status> {
        let began = Instant::now();
        let result = work.await;
        self.took(phase, operation, result.is_err(), began.elapsed());
        result
    }

    /// Counts a duration.
    pub fn took(&self, phase: Phase, operation: Operation, rejected: bool, took: Duration) {
        let cell = &self.0[index(phase, operation, rejected)];
        cell.get_or_init(|| Distribution::new(&ADMISSION_BOUNDS)).took(took);
    }

    /// What was counted, if anything was.
    pub fn observed(&self, phase: Phase, operation: Operation, rejected: bool) -> Option<Observed> {
        self.0[index(phase, operation, rejected)].get().map(Distribution::observed)
    }
}

fn index(phase: Phase, operation: Operation, rejected: bool) -> usize {
    (phase as usize * Operation::ALL.len() + operation as usize) * 2 + usize::from(rejected)
}
