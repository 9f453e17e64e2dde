//! Events that are given on together, most of them as the text that is written.

use std::mem;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::oneshot;

use super::moment::Moment;
use super::queue::Writing;

/// Texts of events, one behind the other, and what belongs to each.
#[derive(Default)]
pub(super) struct Events {
    pub(super) text: Vec<u8>,
    pub(super) entries: Vec<Entry>,
}

/// One event.
pub(super) struct Entry {
    /// How many bytes of the text are its.
    pub(super) length: usize,
    /// The event, where its text is not written yet.
    pub(super) unwritten: Option<Arc<Moment>>,
    /// Who waits for it.
    pub(super) asker: Option<oneshot::Sender<bool>>,
}

/// How much waits, with what the backend has taken and not given on yet.
#[derive(Default)]
pub(super) struct Load {
    pub(super) events: AtomicUsize,
    pub(super) bytes: AtomicUsize,
}

/// Events that are given on together. They count as waiting until it is dropped.
pub(super) struct Batch {
    pub(super) events: Events,
    pub(super) load: Arc<Load>,
}

impl Batch {
    /// The texts of its events, one behind the other.
    pub(super) fn text(&self) -> &[u8] {
        &self.events.text
    }

    /// How many events there are.
    pub(super) fn len(&self) -> usize {
        self.events.entries.len()
    }

    /// How long the text of each event is.
    pub(super) fn lengths(&self) -> impl Iterator<Item = usize> {
        self.events.entries.iter().map(|entry| entry.length)
    }

    /// Says of the first so many of the events that nobody told of whether they are recorded.
    pub(super) fn answer(&mut self, of: Range<usize>, is_recorded: bool) {
        let entries = self.events.entries.get_mut(of).unwrap_or_default();
        let askers = entries.iter_mut().filter_map(|entry| entry.asker.take());
        askers.for_each(|asker| answer(asker, is_recorded));
    }

    /// The first so many events; the rest stays.
    pub(super) fn split(&mut self, count: usize) -> Self {
        Self { events: self.events.split(count), load: self.load.clone() }
    }

    /// The same events, all of them as text; without those that are too large.
    pub(super) fn written(mut self, writing: &Writing) -> Self {
        if self.events.entries.iter().all(|entry| entry.unwritten.is_none()) {
            return self;
        }
        let mut events = Events::default();
        let mut rest = &*self.events.text;
        for entry in &mut self.events.entries {
            let start = events.text.len();
            let is_written = match &entry.unwritten {
                Some(moment) => writing.write(moment, &mut events.text),
                None => {
                    let text;
                    (text, rest) = rest.split_at(entry.length);
                    events.text.extend_from_slice(text);
                    true
                }
            };
            let asker = entry.asker.take();
            match is_written {
                true => {
                    let length = events.text.len() - start;
                    events.entries.push(Entry { length, unwritten: None, asker });
                }
                false => asker.into_iter().for_each(|asker| answer(asker, true)),
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

impl Events {
    /// Takes the first so many out.
    pub(super) fn split(&mut self, count: usize) -> Self {
        if count >= self.entries.len() {
            return mem::take(self);
        }
        let rest = self.entries.split_off(count);
        let bytes = self.entries.iter().map(|entry| entry.length).sum();
        let text = self.text.split_off(bytes);
        mem::replace(self, Self { text, entries: rest })
    }

    /// Puts others behind these.
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
        let unwritten = self.unwritten.as_ref().map_or(0, |moment| moment.size());
        size_of::<Self>() + self.length + unwritten
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

pub(super) fn answer(asker: oneshot::Sender<bool>, is_recorded: bool) {
    let _ = asker.send(is_recorded); // who asked may have left
}
