//! The queue of a backend: events that wait, most of them as the text that will be written.
//!
//! A request's thread appends the text of its event to one buffer, which the backend takes as a whole. So
//! an event is not kept as an object that another thread reads and frees: that costs several times what
//! the text costs. An event with objects is kept as it is, for its objects may take long to write.

use std::cell::RefCell;
use std::mem;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use parking_lot::Mutex;
use pintle_audit::Form;
use tokio::sync::{Notify, oneshot, watch};
use tokio::time::{Instant, sleep_until};

use super::batch::{Batch, Entry, Events, Load, answer};
use super::moment::Moment;
use super::throttle::Throttle;
use super::{Loss, Losses};
use crate::config::{AuditDelivery, AuditMode};

/// How many bytes the events that wait may keep in memory.
const WAITING_BYTES_MAX: usize = 256 * 1024 * 1024;
/// How long events gather before a backend that no request waits for takes them. To wake its thread for each
/// costs several times what the event costs.
const GATHERING_TIME: Duration = Duration::from_millis(20);
/// How large an empty buffer stays.
const IDLE_BUFFER_BYTES: usize = 1024 * 1024;

/// The end of the queue that events are put into.
pub(super) struct Waiting {
    buffer: Mutex<Buffer>,
    arrived: Notify,
    load: Arc<Load>,
    events_max: usize,
}

/// How the events of a backend are written.
#[derive(Clone)]
pub(super) struct Writing {
    pub(super) form: Form,
    /// An event may have fewer bytes than these.
    pub(super) event_bytes_max: Option<usize>,
    pub(super) losses: Arc<Losses>,
}

/// Events that the backend has not taken yet.
#[derive(Default)]
struct Buffer {
    events: Events,
    /// The backend is woken when there are so many.
    wanted: usize,
    is_closed: bool,
}

/// The backend's end of the queue.
pub(super) struct Queue {
    waiting: Arc<Waiting>,
    /// What is taken from the buffer.
    taken: Events,
    /// An empty buffer, here for its memory.
    spare: Events,
    closing: watch::Receiver<bool>,
    delivery: AuditDelivery,
    throttle: Option<Throttle>,
    writing: Writing,
}

/// Both ends of a queue for so many events.
pub(super) fn queue(
    delivery: AuditDelivery,
    events_max: usize,
    writing: Writing,
    closing: watch::Receiver<bool>,
) -> (Arc<Waiting>, Queue) {
    let waiting = Arc::new(Waiting {
        buffer: Mutex::new(Buffer { wanted: 1, ..Buffer::default() }),
        arrived: Notify::new(),
        load: Arc::default(),
        events_max,
    });
    let throttle = delivery.throttle.map(Throttle::new);
    let (taken, spare) = Default::default();
    let queue =
        Queue { waiting: waiting.clone(), taken, spare, closing, delivery, throttle, writing };
    (waiting, queue)
}

impl Waiting {
    /// How many events wait.
    pub(super) fn events(&self) -> usize {
        self.load.events.load(Ordering::Relaxed)
    }

    /// Puts an event into the queue, and who waits for it. `false` where it is lost. What is too large for
    /// the backend holds up no request, as upstream has it.
    pub(super) fn put(
        &self,
        moment: &Arc<Moment>,
        asker: Option<oneshot::Sender<bool>>,
        writing: &Writing,
    ) -> bool {
        let is_full = self.events() >= self.events_max
            || self.load.bytes.load(Ordering::Relaxed) > WAITING_BYTES_MAX;
        let is_queued = !is_full
            && match moment.has_objects() {
                true => {
                    let unwritten = Some(moment.clone());
                    self.append(b"", Entry { length: 0, unwritten, asker })
                }
                false => with_scratch(|text| match writing.write(moment, text) {
                    true => self.append(text, Entry { length: text.len(), unwritten: None, asker }),
                    false => {
                        asker.into_iter().for_each(|asker| answer(asker, true));
                        true
                    }
                }),
            };
        if !is_queued {
            writing.losses.lost(Loss::Buffered, 1, "audit buffer queue blocked");
        }
        is_queued
    }

    fn append(&self, text: &[u8], entry: Entry) -> bool {
        let bytes = entry.bytes();
        let is_awaited = {
            let mut buffer = self.buffer.lock();
            if buffer.is_closed {
                return false;
            }
            buffer.events.text.extend_from_slice(text);
            buffer.events.entries.push(entry);
            self.load.add(1, bytes);
            buffer.events.entries.len() == buffer.wanted
        };
        if is_awaited {
            self.arrived.notify_one();
        }
        true
    }
}

impl Queue {
    /// The events of the next batch, of so many at most; `None` when there are no more.
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
        let batch = Batch { events, load: self.waiting.load.clone() };
        Some(batch.written(&self.writing))
    }

    /// When batches are made.
    pub(super) const fn delivery(&self) -> &AuditDelivery {
        &self.delivery
    }

    /// Takes back what was given on, for its memory.
    pub(super) fn reuse(&mut self, mut batch: Batch) {
        batch.load.subtract(&batch.events);
        self.spare = mem::take(&mut batch.events);
        self.spare.text.clear();
        self.spare.text.shrink_to(IDLE_BUFFER_BYTES);
        self.spare.entries.clear();
        self.spare.entries.shrink_to(IDLE_BUFFER_BYTES / size_of::<Entry>());
    }

    /// Takes events until there are so many, or the time is over, or there will be no more.
    async fn gather(&mut self, count: usize, until: Option<Instant>) {
        loop {
            let is_over = until.is_some_and(|until| Instant::now() >= until);
            {
                let mut buffer = self.waiting.buffer.lock();
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
                    self.waiting.buffer.lock().is_closed = true;
                }
                () = self.waiting.arrived.notified() => {}
                () = time_is_over => {}
            }
        }
    }
}

impl Writing {
    /// Appends the text of an event. `false`, and the event is lost, where it is too large.
    pub(super) fn write(&self, moment: &Moment, text: &mut Vec<u8>) -> bool {
        let is_written =
            moment.with_event(|event| event.write(self.form, self.event_bytes_max, text));
        if !is_written {
            self.losses.lost(Loss::Truncate, 1, "an event is too large even without its objects");
        }
        is_written
    }
}

/// Gives a function an empty text, whose memory the next one uses, too.
fn with_scratch<T>(then: impl FnOnce(&mut Vec<u8>) -> T) -> T {
    /// More is given back.
    const KEPT_BYTES: usize = 16 * 1024;
    thread_local! {
        static SCRATCH: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
    }
    let mut text = SCRATCH.take();
    text.clear();
    let value = then(&mut text);
    text.shrink_to(KEPT_BYTES);
    SCRATCH.set(text);
    value
}
