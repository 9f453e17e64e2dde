//! The queue of a backend: events that wait, mostly as encoded text.
//!
//! A request's thread encodes its event and appends the text to one buffer, and the backend takes
//! the buffer as a whole. Passing the event itself to another thread, which reads and frees it,
//! would cost several times as much. Only an event with objects is passed as it is, because its
//! encoding may take long.

use std::cell::RefCell;
use std::mem;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::{Notify, oneshot, watch};
use tokio::time::{Instant, sleep_until};

use super::Loss;
use super::batch::{Batch, Encoder, Entry, Events, Load, notify};
use super::moment::Moment;
use super::throttle::Throttle;
use crate::config::{AuditDelivery, AuditMode};

/// The memory in bytes that queued events may take.
const WAITING_BYTES_MAX: usize = 256 * 1024 * 1024;
/// The shortest time for which events gather before a non-blocking backend takes a batch that is
/// not full. Waking its thread for each event would cost several times as much as the event.
const GATHERING_TIME: Duration = Duration::from_millis(20);
/// The capacity in bytes up to which an empty buffer is reused.
const IDLE_BUFFER_BYTES: usize = 1024 * 1024;

/// The end of the queue into which requests put events.
pub(super) struct Inlet {
    buffer: Mutex<Buffer>,
    arrived: Notify,
    load: Arc<Load>,
    events_max: usize,
}

/// Events that the backend has not taken yet.
#[derive(Default)]
struct Buffer {
    events: Events,
    /// The number of events at which the backend is woken.
    wanted: usize,
    is_closed: bool,
}

/// The backend's end of the queue.
pub(super) struct Queue {
    inlet: Arc<Inlet>,
    /// Events that were taken from the buffer and are not in a batch yet.
    taken: Events,
    /// An empty buffer whose memory is reused.
    spare: Events,
    closing: watch::Receiver<bool>,
    delivery: AuditDelivery,
    throttle: Option<Throttle>,
    encoder: Encoder,
}

/// Makes a queue for at most `events_max` events, and returns both ends.
pub(super) fn queue(
    delivery: AuditDelivery,
    events_max: usize,
    encoder: Encoder,
    closing: watch::Receiver<bool>,
) -> (Arc<Inlet>, Queue) {
    let inlet = Arc::new(Inlet {
        buffer: Mutex::new(Buffer { wanted: 1, ..Buffer::default() }),
        arrived: Notify::new(),
        load: Arc::default(),
        events_max,
    });
    let throttle = delivery.throttle.map(Throttle::new);
    let (taken, spare) = Default::default();
    let queue = Queue { inlet: inlet.clone(), taken, spare, closing, delivery, throttle, encoder };
    (inlet, queue)
}

impl Inlet {
    /// The number of events that wait in the queue or are being written.
    pub(super) fn events(&self) -> usize {
        self.load.events.load(Ordering::Relaxed)
    }

    /// Appends an event to the queue; `waiter` receives whether it was recorded. Returns false if
    /// the event is lost because the queue is full or closed. An event that is too large for the
    /// backend counts as recorded for its request, as in upstream.
    pub(super) fn put(
        &self,
        moment: &Arc<Moment>,
        waiter: Option<oneshot::Sender<bool>>,
        encoder: &Encoder,
    ) -> bool {
        let is_full = self.events() >= self.events_max
            || self.load.bytes.load(Ordering::Relaxed) > WAITING_BYTES_MAX;
        let is_queued = !is_full
            && match moment.has_objects() {
                true => {
                    let unencoded = Some(moment.clone());
                    self.append(b"", Entry { length: 0, unencoded, waiter })
                }
                false => with_scratch(|text| match encoder.encode(moment, text) {
                    true => {
                        self.append(text, Entry { length: text.len(), unencoded: None, waiter })
                    }
                    false => {
                        waiter.into_iter().for_each(|waiter| notify(waiter, true));
                        true
                    }
                }),
            };
        if !is_queued {
            encoder.losses.lost(Loss::Buffered, 1, "audit buffer queue blocked");
        }
        is_queued
    }

    fn append(&self, text: &[u8], entry: Entry) -> bool {
        let bytes = entry.bytes();
        let is_due = {
            let mut buffer = self.buffer.lock();
            if buffer.is_closed {
                return false;
            }
            buffer.events.text.extend_from_slice(text);
            buffer.events.entries.push(entry);
            self.load.add(1, bytes);
            buffer.events.entries.len() == buffer.wanted
        };
        if is_due {
            self.arrived.notify_one();
        }
        true
    }
}

impl Queue {
    /// The next batch, with at most `events_max` events; `None` after the last.
    pub(super) async fn next_up_to(&mut self, events_max: usize) -> Option<Batch> {
        self.gather(1, None).await;
        if self.delivery.mode == AuditMode::Batch && !self.taken.entries.is_empty() {
            let until = Instant::now() + self.delivery.batch_wait.max(GATHERING_TIME);
            self.gather(events_max, Some(until)).await;
        }
        if self.taken.entries.is_empty() {
            return None;
        }
        if let Some(throttle) = &mut self.throttle {
            throttle.wait().await;
        }
        let events = self.taken.split(events_max);
        let batch = Batch { events, load: self.inlet.load.clone() };
        Some(batch.encode(&self.encoder))
    }

    /// The options of batches.
    pub(super) const fn delivery(&self) -> &AuditDelivery {
        &self.delivery
    }

    /// Reuses the memory of a batch that was written.
    pub(super) fn reuse(&mut self, mut batch: Batch) {
        batch.load.subtract(&batch.events);
        self.spare = mem::take(&mut batch.events);
        self.spare.text.clear();
        self.spare.text.shrink_to(IDLE_BUFFER_BYTES);
        self.spare.entries.clear();
        self.spare.entries.shrink_to(IDLE_BUFFER_BYTES / size_of::<Entry>());
    }

    /// Takes events when `count` of them wait, at the time `until`, or when the queue is closed.
    async fn gather(&mut self, count: usize, until: Option<Instant>) {
        loop {
            let is_over = until.is_some_and(|until| Instant::now() >= until);
            {
                let mut buffer = self.inlet.buffer.lock();
                let there = self.taken.entries.len() + buffer.events.entries.len();
                if there >= count || is_over || buffer.is_closed {
                    buffer.wanted = 1;
                    let spare = mem::take(&mut self.spare);
                    let events = mem::replace(&mut buffer.events, spare);
                    drop(buffer);
                    self.taken.append(events);
                    return;
                }
                buffer.wanted = count - self.taken.entries.len();
            }
            let time_is_over = async {
                match until {
                    Some(until) => sleep_until(until).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                _ = self.closing.wait_for(|is_closing| *is_closing) => {
                    self.inlet.buffer.lock().is_closed = true;
                }
                () = self.inlet.arrived.notified() => {}
                () = time_is_over => {}
            }
        }
    }
}

/// Calls `then` with an empty buffer, which the thread's next call reuses.
fn with_scratch<T>(then: impl FnOnce(&mut Vec<u8>) -> T) -> T {
    /// The capacity in bytes up to which the buffer is reused.
    const CAPACITY_MAX: usize = 16 * 1024;
    thread_local! {
        static SCRATCH: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
    }
    let mut text = SCRATCH.take();
    text.clear();
    let value = then(&mut text);
    text.shrink_to(CAPACITY_MAX);
    SCRATCH.set(text);
    value
}
