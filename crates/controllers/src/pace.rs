//! The pace of long work: all controllers share one thread, so work on much data is divided.

use pintle_registry::work::YIELD_BYTES;

/// What a step costs besides the bytes that it reads.
const STEP_BYTES: usize = 256;

/// Counts the work of one controller and yields to the others.
#[derive(Debug, Default)]
pub(crate) struct Pace(usize);

impl Pace {
    /// Counts a step that reads `bytes` bytes, and yields if many were read since the last yield.
    pub(crate) async fn step(&mut self, bytes: usize) {
        self.0 = self.0.saturating_add(bytes).saturating_add(STEP_BYTES);
        if self.0 > YIELD_BYTES {
            self.0 = 0;
            tokio::task::yield_now().await;
        }
    }
}
