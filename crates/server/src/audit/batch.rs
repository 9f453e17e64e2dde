//! Batches: events that a backend writes or posts together, mostly as encoded text.

use std::mem;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use pintle_audit::Form;
use tokio::sync::oneshot;

use super::moment::Moment;
use super::{Loss, Losses};

/// The concatenated texts of events, with an entry for each.
#[derive(Default)]
pub(super) struct Events {
    pub(super) text: Vec<u8>,
    pub(super) entries: Vec<Entry>,
}

/// One event.
pub(super) struct Entry {
    /// The length of its text in bytes.
    pub(super) length: usize,
    /// The event, if it has not been encoded yet.
    pub(super) unencoded: Option<Arc<Moment>>,
    /// Receives whether the event was recorded.
    pub(super) waiter: Option<oneshot::Sender<bool>>,
}

/// The events in the queue and in batches that have not been dropped, by number and size.
#[derive(Default)]
pub(super) struct Load {
    pub(super) events: AtomicUsize,
    pub(super) bytes: AtomicUsize,
}

/// Events that are written together. They count in the load until the batch is dropped.
pub(super) struct Batch {
    pub(super) events: Events,
    pub(super) load: Arc<Load>,
}

/// Encodes the events of a backend.
#[derive(Clone)]
pub(super) struct Encoder {
    pub(super) form: Form,
    /// An encoded event must have fewer bytes.
    pub(super) event_bytes_max: Option<usize>,
    pub(super) losses: Arc<Losses>,
}

impl Batch {
    /// The concatenated texts of its events.
    pub(super) fn text(&self) -> &[u8] {
        &self.events.text
    }

    /// The number of events.
    pub(super) fn len(&self) -> usize {
        self.events.entries.len()
    }

    /// The length of each event's text.
    pub(super) fn lengths(&self) -> impl Iterator<Item = usize> {
        self.events.entries.iter().map(|entry| entry.length)
    }

    /// Reports to the waiters of these events whether the events were recorded.
    pub(super) fn notify(&mut self, events: Range<usize>, is_recorded: bool) {
        let entries = self.events.entries.get_mut(events).unwrap_or_default();
        let waiters = entries.iter_mut().filter_map(|entry| entry.waiter.take());
        waiters.for_each(|waiter| notify(waiter, is_recorded));
    }

    /// Removes and returns the first `count` events.
    pub(super) fn split(&mut self, count: usize) -> Self {
        Self { events: self.events.split(count), load: self.load.clone() }
    }

    /// Encodes the events that have no text yet, and drops those that are too large.
    pub(super) fn encode(mut self, encoder: &Encoder) -> Self {
        if self.events.entries.iter().all(|entry| entry.unencoded.is_none()) {
            return self;
        }
        let mut events = Events::default();
        let mut rest = &*self.events.text;
        for entry in &mut self.events.entries {
            let start = events.text.len();
            let is_encoded = match &entry.unencoded {
                Some(moment) => encoder.encode(moment, &mut events.text),
                None => {
                    let text;
                    (text, rest) = rest.split_at(entry.length);
                    events.text.extend_from_slice(text);
                    true
                }
            };
            let waiter = entry.waiter.take();
            match is_encoded {
                true => {
                    let length = events.text.len() - start;
                    events.entries.push(Entry { length, unencoded: None, waiter });
                }
                false => waiter.into_iter().for_each(|waiter| notify(waiter, true)),
            }
        }
        let bytes = events.entries.iter().map(Entry::bytes).sum();
        self.load.add(events.entries.len(), bytes);
        Self { events, load: self.load.clone() }
    }
}

impl Drop for Batch {
    fn drop(&mut self) {
        self.load.subtract(&self.events);
    }
}

impl Encoder {
    /// Appends the text of an event. Returns false, and counts the event as lost, if it is too
    /// large.
    pub(super) fn encode(&self, moment: &Moment, text: &mut Vec<u8>) -> bool {
        let is_encoded =
            moment.with_event(|event| event.write(&self.form, self.event_bytes_max, text));
        if !is_encoded {
            self.losses.lost(Loss::Truncate, 1, "an event is too large even without its objects");
        }
        is_encoded
    }
}

impl Events {
    /// Removes and returns the first `count` events.
    pub(super) fn split(&mut self, count: usize) -> Self {
        if count >= self.entries.len() {
            return mem::take(self);
        }
        let rest = self.entries.split_off(count);
        let bytes = self.entries.iter().map(|entry| entry.length).sum();
        let text = self.text.split_off(bytes);
        mem::replace(self, Self { text, entries: rest })
    }

    /// Appends other events.
    pub(super) fn append(&mut self, mut others: Self) {
        if self.entries.is_empty() {
            *self = others;
        } else {
            self.text.append(&mut others.text);
            self.entries.append(&mut others.entries);
        }
    }
}

impl Entry {
    pub(super) fn bytes(&self) -> usize {
        let unencoded = self.unencoded.as_ref().map_or(0, |moment| moment.size());
        size_of::<Self>() + self.length + unencoded
    }
}

impl Load {
    pub(super) fn add(&self, events: usize, bytes: usize) {
        self.events.fetch_add(events, Ordering::Relaxed);
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(super) fn subtract(&self, events: &Events) {
        let bytes = events.entries.iter().map(Entry::bytes).sum();
        self.events.fetch_sub(events.entries.len(), Ordering::Relaxed);
        self.bytes.fetch_sub(bytes, Ordering::Relaxed);
    }
}

/// Reports whether an event was recorded.
pub(super) fn notify(waiter: oneshot::Sender<bool>, is_recorded: bool) {
    let _ = waiter.send(is_recorded); // the request may have been cancelled
}
