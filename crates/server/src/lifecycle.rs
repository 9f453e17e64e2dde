//! Whether the server starts, serves, or stops.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;

/// The server's phases, told to everything that must know them.
pub(crate) struct Lifecycle {
    started_at: Instant,
    /// Everything that is done once at start is done.
    started: AtomicBool,
    /// The server is to stop soon: it is no longer ready, and still serves (HLT-08).
    draining: AtomicBool,
    /// The server stops: watches end, connections close.
    stopping: watch::Sender<bool>,
}

/// Tells when the server stops.
#[derive(Clone)]
pub(crate) struct Stopping(watch::Receiver<bool>);

impl Lifecycle {
    /// A server that has just begun to start.
    pub(crate) fn new() -> Self {
        Self {
            started_at: Instant::now(),
            started: AtomicBool::new(false),
            draining: AtomicBool::new(false),
            stopping: watch::Sender::new(false),
        }
    }

    /// How long the server has been running.
    pub(crate) fn age(&self) -> Duration {
        self.started_at.elapsed()
    }

    /// Everything that is done once at start is done.
    pub(crate) fn start(&self) {
        self.started.store(true, Ordering::Release);
    }

    /// Whether everything that is done once at start is done.
    pub(crate) fn is_started(&self) -> bool {
        self.started.load(Ordering::Acquire)
    }

    /// The server is to stop soon.
    pub(crate) fn drain(&self) {
        self.draining.store(true, Ordering::Release);
    }

    /// Whether the server is to stop soon.
    pub(crate) fn is_draining(&self) -> bool {
        self.draining.load(Ordering::Acquire)
    }

    /// The server stops.
    pub(crate) fn stop(&self) {
        self.stopping.send_replace(true);
    }

    /// Something to wait on for the server's end.
    pub(crate) fn stopping(&self) -> Stopping {
        Stopping(self.stopping.subscribe())
    }
}

impl Stopping {
    /// Returns when the server stops. Cancel safe.
    pub(crate) async fn wait(&mut self) {
        // The sender is gone only when the server is.
        let _ = self.0.wait_for(|stopping| *stopping).await;
    }
}
