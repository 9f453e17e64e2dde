//! How long the phases of the start take.

use std::time::Instant;

/// The times of the start's phases, for the log.
pub(super) struct Phases {
    began: Instant,
    last: Instant,
    took: Vec<String>,
}

impl Phases {
    pub(super) fn new() -> Self {
        let now = Instant::now();
        Self { began: now, last: now, took: Vec::new() }
    }

    pub(super) fn end(&mut self, name: &str) {
        let now = Instant::now();
        self.took.push(format!("{name} {:.1?}", now - self.last));
        self.last = now;
    }

    pub(super) fn report(&self) {
        tracing::info!("started in {:.1?}: {}", self.began.elapsed(), self.took.join(", "));
    }
}
