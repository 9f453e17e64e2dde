//! Backends: each takes events from a queue, on a thread of its own.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use parking_lot::Mutex;
use pintle_audit::Event;
use tokio::runtime::Builder;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::{Instant, timeout, timeout_at};

use super::{Loss, Measures};
use crate::Error;
use crate::config::{AuditDelivery, AuditMode};
use crate::machine::now;

/// How many events wait at most for a backend that requests wait for.
const BLOCKING_EVENTS_MAX: usize = 100_000;
/// How many bytes the events that wait may keep in memory.
const WAITING_BYTES_MAX: usize = 256 * 1024 * 1024;
/// How long events gather before a backend that no request waits for takes them. To wake its thread for each
/// costs several times what the event costs.
const GATHERING_TIME: Duration = Duration::from_millis(20);
/// How long a backend may take to give on what waits when the server stops.
const CLOSING_MAX: Duration = Duration::from_secs(10);

/// Where events go.
pub(super) struct Backend {
    queue: mpsc::UnboundedSender<Queued>,
    waiting: Arc<Waiting>,
    delivery: AuditDelivery,
    measures: Arc<Measures>,
    complaints: Paced,
    /// Says that no more events are taken.
    closing: watch::Sender<bool>,
    /// Ends when all events were given on.
    closed: Mutex<Option<oneshot::Receiver<()>>>,
}

/// The backend's end of the queue.
pub(super) struct Queue {
    events: mpsc::UnboundedReceiver<Queued>,
    closing: watch::Receiver<bool>,
    delivery: AuditDelivery,
    throttle: Option<Throttle>,
}

/// How many batches may be given on now.
struct Throttle {
    per_second: f64,
    burst: f64,
    tokens: f64,
    filled: Instant,
}

/// An event that waits.
pub(super) struct Queued {
    pub(super) event: Arc<Event>,
    /// Who waits for it.
    asker: Option<oneshot::Sender<bool>>,
    /// Its part of what waits.
    waiting: Arc<Waiting>,
    bytes: usize,
}

/// How much waits.
#[derive(Default)]
struct Waiting {
    events: AtomicUsize,
    bytes: AtomicUsize,
}

/// Says something once a second at most.
#[derive(Default)]
pub(super) struct Paced(AtomicI64);

impl Backend {
    /// Starts a thread on which `run` takes events from the queue until it ends.
    pub(super) fn start<F: Future<Output = ()>>(
        name: &str,
        delivery: AuditDelivery,
        measures: Arc<Measures>,
        run: impl FnOnce(Queue) -> F + Send + 'static,
    ) -> Result<Self, Error> {
        let (queue, events) = mpsc::unbounded_channel();
        let (closing, is_closing) = watch::channel(false);
        let (ended, closed) = oneshot::channel();
        let runtime = Builder::new_current_thread().enable_all().build().map_err(Error::Thread)?;
        let throttle = delivery.throttle.map(Throttle::new);
        let queue_end = Queue { events, closing: is_closing, delivery, throttle };
        thread::Builder::new()
            .name(name.to_owned())
            .spawn(move || {
                runtime.block_on(run(queue_end));
                let _ = ended.send(()); // nobody may wait for it
            })
            .map_err(Error::Thread)?;
        Ok(Self {
            queue,
            waiting: Arc::default(),
            delivery,
            measures,
            complaints: Paced::default(),
            closing,
            closed: Mutex::new(Some(closed)),
        })
    }

    /// Whether requests wait for it.
    pub(super) fn blocks(&self) -> bool {
        self.delivery.mode != AuditMode::Batch
    }

    /// Takes an event, and waits until it is recorded where requests do. `false` where it is not, and must
    /// be.
    pub(super) async fn process(&self, event: &Arc<Event>) -> bool {
        if !self.blocks() {
            self.hand_over(event);
            return true;
        }
        let (asker, answer) = oneshot::channel();
        let is_queued = self.put(event, Some(asker));
        let is_recorded = is_queued && answer.await.unwrap_or(false);
        is_recorded || self.delivery.mode != AuditMode::BlockingStrict
    }

    /// Takes an event, if there is room for it.
    pub(super) fn hand_over(&self, event: &Arc<Event>) {
        self.put(event, None);
    }

    fn put(&self, event: &Arc<Event>, asker: Option<oneshot::Sender<bool>>) -> bool {
        let events_max =
            if self.blocks() { BLOCKING_EVENTS_MAX } else { self.delivery.buffer_size };
        let is_full = self.waiting.events.load(Ordering::Relaxed) >= events_max
            || self.waiting.bytes.load(Ordering::Relaxed) > WAITING_BYTES_MAX;
        let is_queued = !is_full && {
            let queued = Queued::new(event.clone(), asker, &self.waiting);
            self.queue.send(queued).is_ok()
        };
        if !is_queued {
            self.measures.lost(Loss::Buffered, 1);
            let why = "the audit log loses events: audit buffer queue blocked";
            self.complaints.tell(|| tracing::error!("{why}"));
        }
        is_queued
    }

    /// Takes no more events, and returns when those that wait were given on.
    pub(super) async fn close(&self) {
        self.closing.send_replace(true);
        let Some(closed) = self.closed.lock().take() else { return };
        if timeout(CLOSING_MAX, closed).await.is_err() {
            let events = self.waiting.events.load(Ordering::Relaxed);
            tracing::warn!("{events} audit events are lost, for their backend takes too long");
        }
    }
}

impl Queue {
    /// The events of the next batch, of so many at most; `None` when there are no more.
    pub(super) async fn next_up_to(&mut self, events_max: usize) -> Option<Vec<Queued>> {
        let mut batch = Vec::new();
        self.receive(&mut batch, events_max).await;
        if self.delivery.mode == AuditMode::Batch {
            let until = Instant::now() + self.delivery.batch_wait.max(GATHERING_TIME);
            while !batch.is_empty() && batch.len() < events_max && !self.events.is_closed() {
                self.gather().await;
                let rest = events_max - batch.len();
                // What is there is taken, also when the time is over.
                if timeout_at(until, self.receive(&mut batch, rest)).await.is_err() {
                    break;
                }
            }
        }
        if let Some(throttle) = &mut self.throttle {
            throttle.wait().await;
        }
        (!batch.is_empty()).then_some(batch)
    }

    /// When batches are made.
    pub(super) const fn delivery(&self) -> &AuditDelivery {
        &self.delivery
    }

    /// Lets events gather, unless there will be no more.
    async fn gather(&mut self) {
        let closing = self.closing.wait_for(|is_closing| *is_closing);
        let _ = timeout(GATHERING_TIME, closing).await;
    }

    /// Waits for events, and takes them. None are taken where there will be no more.
    async fn receive(&mut self, batch: &mut Vec<Queued>, events_max: usize) {
        if !self.events.is_closed() {
            tokio::select! {
                biased;
                _ = self.closing.wait_for(|is_closing| *is_closing) => self.events.close(),
                _ = self.events.recv_many(batch, events_max) => return,
            }
        }
        self.events.recv_many(batch, events_max).await;
    }
}

impl Throttle {
    fn new((per_second, burst): (f64, u32)) -> Self {
        let burst = f64::from(burst);
        Self { per_second, burst, tokens: burst, filled: Instant::now() }
    }

    /// Waits until another batch may be given on.
    async fn wait(&mut self) {
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

impl Queued {
    fn new(
        event: Arc<Event>,
        asker: Option<oneshot::Sender<bool>>,
        waiting: &Arc<Waiting>,
    ) -> Self {
        let bytes = event.size();
        waiting.events.fetch_add(1, Ordering::Relaxed);
        waiting.bytes.fetch_add(bytes, Ordering::Relaxed);
        Self { event, asker, waiting: waiting.clone(), bytes }
    }

    /// Says whether the event is recorded.
    pub(super) fn answer(mut self, is_recorded: bool) {
        if let Some(asker) = self.asker.take() {
            let _ = asker.send(is_recorded); // who asked may have left
        }
    }
}

impl Drop for Queued {
    fn drop(&mut self) {
        self.waiting.events.fetch_sub(1, Ordering::Relaxed);
        self.waiting.bytes.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

impl Paced {
    /// Says it, unless something was said in this second.
    pub(super) fn tell(&self, say: impl FnOnce()) {
        let second = now().unix_seconds();
        if self.0.swap(second, Ordering::Relaxed) != second {
            say();
        }
    }
}
