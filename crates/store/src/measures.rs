//! The measures of the embedded store's commits.

use pintle_measure::{Distribution, nanoseconds};

/// Buckets of durations of commits.
pub static COMMIT_BOUNDS: [u64; 12] = nanoseconds([
    0.000_1, 0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0,
]);
/// Buckets of numbers of writes in a batch.
pub static BATCH_BOUNDS: [u64; 11] = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024];

/// Measures of the committer.
#[derive(Debug)]
pub struct Measures {
    /// How long the medium took to commit a batch, its synchronisation included.
    pub commits: Distribution,
    /// The numbers of writes in batches.
    pub batches: Distribution,
}

impl Default for Measures {
    fn default() -> Self {
        Self {
            commits: Distribution::new(&COMMIT_BOUNDS),
            batches: Distribution::new(&BATCH_BOUNDS),
        }
    }
}
