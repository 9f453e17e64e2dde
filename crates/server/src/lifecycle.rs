//! The phases of a server: starting, serving, draining, stopping.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;

/// The current phase.
pub(crate) struct Lifecycle {
    started_at: Instant,
    /// The start has finished.
    started: AtomicBool,
    /// The server will stop soon: it is not ready, and still serves (HLT-08).
    draining: AtomicBool,
    /// The server stops: watches end, connections close.
    stopping: watch::Sender<bool>,
}

/// Waits for the server to stop.
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

    /// Marks the start as finished.
    pub(crate) fn start(&self) {
        self.started.store(true, Ordering::Release);
    }

    /// True once the start has finished.
    pub(crate) fn is_started(&self) -> bool {
        self.started.load(Ordering::Acquire)
    }

    /// Begins to drain: the server is not ready from now on.
    pub(crate) fn drain(&self) {
        self.draining.store(true, Ordering::Release);
    }

    /// True while the server drains.
    pub(crate) fn is_draining(&self) -> bool {
        self.draining.load(Ordering::Acquire)
    }

    /// Stops the server.
    pub(crate) fn stop(&self) {
        self.stopping.send_replace(true);
    }

    /// Returns a handle that waits for the server's stop.
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
