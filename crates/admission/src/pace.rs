//! Pauses in work whose length clients decide, such as the evaluation of a policy for each of its
//! parameters.

use std::time::{Duration, Instant};

use pintle_registry::work;

/// The longest work without a pause.
const UNPAUSED_MAX: Duration = Duration::from_millis(10);

/// Divides work by its duration.
pub(crate) struct Pace {
    paused: Instant,
}

impl Pace {
    /// Begins work.
    pub(crate) fn begin() -> Self {
        Self { paused: Instant::now() }
    }

    /// Yields to other requests, if the work since the last pause was long.
    pub(crate) async fn step(&mut self) {
        if self.paused.elapsed() >= UNPAUSED_MAX {
            work::pause().await;
            self.paused = Instant::now();
        }
    }
}
