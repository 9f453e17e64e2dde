//! Backends: each takes events from a queue, on a thread of its own.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::runtime::Builder;
use tokio::sync::{oneshot, watch};
use tokio::time::timeout;

use super::moment::Moment;
use super::queue::{Queue, Waiting, Writing, queue};
use crate::Error;
use crate::config::{AuditDelivery, AuditMode};

/// How many events wait at most for a backend that requests wait for.
const BLOCKING_EVENTS_MAX: usize = 100_000;
/// How long a backend may take to give on what waits when the server stops.
const CLOSING_MAX: Duration = Duration::from_secs(10);

/// Where events go.
pub(super) struct Backend {
    waiting: Arc<Waiting>,
    mode: AuditMode,
    writing: Writing,
    /// Says that no more events are taken.
    closing: watch::Sender<bool>,
    /// Ends when all events were given on.
    closed: Mutex<Option<oneshot::Receiver<()>>>,
}

/// What becomes of an event.
pub(super) enum Outcome {
    /// The event is recorded, or will be, or need not be.
    Settled,
    /// It is lost, and must not be.
    Refused,
    /// It is recorded when the backend says so. Where it must be, `is_strict` is set.
    Awaited { answer: oneshot::Receiver<bool>, is_strict: bool },
}

impl Backend {
    /// Starts a thread on which `run` takes events from the queue until it ends.
    pub(super) fn start<F: Future<Output = ()>>(
        name: &str,
        delivery: AuditDelivery,
        writing: Writing,
        run: impl FnOnce(Queue) -> F + Send + 'static,
    ) -> Result<Self, Error> {
        let (closing, is_closing) = watch::channel(false);
        let (ended, closed) = oneshot::channel();
        let runtime = Builder::new_current_thread().enable_all().build().map_err(Error::Thread)?;
        let events_max = match delivery.mode {
            AuditMode::Batch => delivery.buffer_size,
            AuditMode::Blocking | AuditMode::BlockingStrict => BLOCKING_EVENTS_MAX,
        };
        let (waiting, queue) = queue(delivery, events_max, writing.clone(), is_closing);
        thread::Builder::new()
            .name(name.to_owned())
            .spawn(move || {
                runtime.block_on(run(queue));
                let _ = ended.send(()); // nobody may wait for it
            })
            .map_err(Error::Thread)?;
        let (mode, closed) = (delivery.mode, Mutex::new(Some(closed)));
        Ok(Self { waiting, mode, writing, closing, closed })
    }

    /// Whether requests wait for it.
    pub(super) fn blocks(&self) -> bool {
        self.mode != AuditMode::Batch
    }

    /// Takes an event, and says what a request has to wait for.
    pub(super) fn record(&self, moment: &Arc<Moment>) -> Outcome {
        if !self.blocks() {
            self.hand_over(moment);
            return Outcome::Settled;
        }
        let is_strict = self.mode == AuditMode::BlockingStrict;
        let (asker, answer) = oneshot::channel();
        match self.waiting.put(moment, Some(asker), &self.writing) {
            true => Outcome::Awaited { answer, is_strict },
            false if is_strict => Outcome::Refused,
            false => Outcome::Settled,
        }
    }

    /// Takes an event, if there is room for it.
    pub(super) fn hand_over(&self, moment: &Arc<Moment>) {
        self.waiting.put(moment, None, &self.writing);
    }

    /// Takes no more events, and returns when those that wait were given on.
    pub(super) async fn close(&self) {
        self.closing.send_replace(true);
        let Some(closed) = self.closed.lock().take() else { return };
        if timeout(CLOSING_MAX, closed).await.is_err() {
            let events = self.waiting.events();
            tracing::warn!("{events} audit events are lost, for their backend takes too long");
        }
    }
}

impl Outcome {
    /// Waits for it. `false` where the event is lost, and must not be.
    pub(super) async fn settled(self) -> bool {
        match self {
            Self::Settled => true,
            Self::Refused => false,
            Self::Awaited { answer, is_strict } => answer.await.unwrap_or(false) || !is_strict,
        }
    }
}
