//! Limits the rate at which a backend takes batches, with a token bucket.

use std::time::Duration;

use tokio::time::Instant;

/// A token bucket: each batch takes a token.
pub(super) struct Throttle {
    per_second: f64,
    burst: f64,
    tokens: f64,
    filled: Instant,
}

impl Throttle {
    pub(super) fn new((per_second, burst): (f64, u32)) -> Self {
        let burst = f64::from(burst);
        Self { per_second, burst, tokens: burst, filled: Instant::now() }
    }

    /// Waits until another batch may be taken.
    pub(super) async fn wait(&mut self) {
        let now = Instant::now();
        let gained = now.duration_since(self.filled).as_secs_f64() * self.per_second;
        self.tokens = (self.tokens + gained).min(self.burst) - 1.0;
        self.filled = now;
        if self.tokens < 0.0 {
            let seconds = (-self.tokens / self.per_second).min(3600.0);
            tokio::time::sleep(Duration::from_secs_f64(seconds)).await;
        }
    }
}
