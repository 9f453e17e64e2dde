//! The phases of a server: starting, serving, draining, stopping.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_util::FutureExt as _;
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
    /// See [`Lifecycle::panics`].
    panics: Panics,
}

/// Whether a task that runs as long as the server has panicked: the server must be started again,
/// because its controllers or its watches do nothing any more.
#[derive(Clone, Default)]
pub(crate) struct Panics(Arc<AtomicBool>);

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
            panics: Panics::default(),
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

    /// The panics of the server's tasks.
    pub(crate) const fn panics(&self) -> &Panics {
        &self.panics
    }

    /// Returns a handle that waits for the server's stop.
    pub(crate) fn stopping(&self) -> Stopping {
        Stopping(self.stopping.subscribe())
    }
}

impl Panics {
    /// Runs a task, and notes whether it panics.
    pub(crate) async fn watch(self, task: impl Future<Output = ()>) {
        if AssertUnwindSafe(task).catch_unwind().await.is_err() {
            tracing::error!(
                "a background task panicked; the server is unhealthy and must be started again"
            );
            self.0.store(true, Ordering::Relaxed);
        }
    }

    /// An error if a task has panicked.
    pub(crate) fn check(&self) -> Result<(), String> {
        if self.0.load(Ordering::Relaxed) {
            return Err("a background task panicked".to_owned());
        }
        Ok(())
    }
}

impl Stopping {
    /// Returns when the server stops. Cancel safe.
    pub(crate) async fn wait(&mut self) {
        // The sender is gone only when the server is.
        let _ = self.0.wait_for(|stopping| *stopping).await;
    }
}
