//! Backends: each takes events from a queue on its own thread.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::runtime::Builder;
use tokio::sync::{oneshot, watch};
use tokio::time::timeout;

use super::batch::Encoder;
use super::moment::Moment;
use super::queue::{Inlet, Queue, queue};
use crate::Error;
use crate::config::{AuditDelivery, AuditMode};

/// The maximum number of events that wait in a blocking backend.
const BLOCKING_EVENTS_MAX: usize = 100_000;
/// The time in which a backend must write the queued events when the server stops.
const CLOSING_MAX: Duration = Duration::from_secs(10);

/// The handle of a backend.
pub(super) struct Backend {
    inlet: Arc<Inlet>,
    mode: AuditMode,
    encoder: Encoder,
    /// True once the backend accepts no more events.
    closing: watch::Sender<bool>,
    /// Resolves when all queued events have been written.
    closed: Mutex<Option<oneshot::Receiver<()>>>,
}

/// The outcome of an event in a backend.
pub(super) enum Outcome {
    /// The request need not wait.
    Accepted,
    /// The event is lost and the backend is strict.
    Refused,
    /// `recorded` receives whether the event was recorded.
    Pending { recorded: oneshot::Receiver<bool>, is_strict: bool },
}

impl Backend {
    /// Starts the thread on which `run` takes events from the queue until the queue ends.
    pub(super) fn start<F: Future<Output = ()>>(
        name: &str,
        delivery: AuditDelivery,
        encoder: Encoder,
        run: impl FnOnce(Queue) -> F + Send + 'static,
    ) -> Result<Self, Error> {
        let (closing, is_closing) = watch::channel(false);
        let (ended, closed) = oneshot::channel();
        let runtime = Builder::new_current_thread().enable_all().build().map_err(Error::Thread)?;
        let events_max = match delivery.mode {
            AuditMode::Batch => delivery.buffer_size,
            AuditMode::Blocking | AuditMode::BlockingStrict => BLOCKING_EVENTS_MAX,
        };
        let (inlet, queue) = queue(delivery, events_max, encoder.clone(), is_closing);
        thread::Builder::new()
            .name(name.to_owned())
            .spawn(move || {
                runtime.block_on(run(queue));
                let _ = ended.send(()); // the receiver may have been dropped
            })
            .map_err(Error::Thread)?;
        let (mode, closed) = (delivery.mode, Mutex::new(Some(closed)));
        Ok(Self { inlet, mode, encoder, closing, closed })
    }

    /// Whether requests wait until the backend has recorded their events.
    pub(super) fn blocks(&self) -> bool {
        self.mode != AuditMode::Batch
    }

    /// Queues an event, and returns the outcome that its request must wait for.
    pub(super) fn record(&self, moment: &Arc<Moment>) -> Outcome {
        if !self.blocks() {
            self.enqueue(moment);
            return Outcome::Accepted;
        }
        let is_strict = self.mode == AuditMode::BlockingStrict;
        let (waiter, recorded) = oneshot::channel();
        match self.inlet.put(moment, Some(waiter), &self.encoder) {
            true => Outcome::Pending { recorded, is_strict },
            false if is_strict => Outcome::Refused,
            false => Outcome::Accepted,
        }
    }

    /// Queues an event; counts it as lost if the queue is full.
    pub(super) fn enqueue(&self, moment: &Arc<Moment>) {
        self.inlet.put(moment, None, &self.encoder);
    }

    /// Stops accepting events, and returns when the queued ones have been written or the deadline
    /// has passed.
    pub(super) async fn close(&self) {
        self.closing.send_replace(true);
        let Some(closed) = self.closed.lock().take() else { return };
        if timeout(CLOSING_MAX, closed).await.is_err() {
            let events = self.inlet.events();
            tracing::warn!(
                "{events} audit events are lost, because their backend was too slow at shutdown"
            );
        }
    }
}

impl Outcome {
    /// Waits for the outcome. Returns false if a strict backend lost the event.
    pub(super) async fn wait(self) -> bool {
        match self {
            Self::Accepted => true,
            Self::Refused => false,
            Self::Pending { recorded, is_strict } => recorded.await.unwrap_or(false) || !is_strict,
        }
    }
}
