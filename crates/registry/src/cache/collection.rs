//! One resource's objects and recent changes, as readers and writers use them.

mod keys_by_value;
mod settling;

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use parking_lot::{Mutex, RwLock};
use pintle_store::{Record, Revision};
use tokio::sync::Notify;

use super::objects::Objects;
use super::state::State;
use super::topics::Topics;
use crate::measures::{Reads, Stored};
use crate::{Object, work};
use keys_by_value::FieldIndex;

/// One resource's objects and recent changes.
pub(crate) struct Collection {
    pub(super) state: RwLock<State>,
    /// Notified when changes are dispatched: wakes the watches of the whole collection.
    pub(super) changed: Notify,
    /// The topics of the watches of a narrower scope.
    pub(super) topics: Mutex<Topics>,
    /// Counters of reads.
    pub(crate) reads: Arc<Reads>,
    /// The past states that were reconstructed last. Pages of one list share a state.
    recalled: Mutex<VecDeque<(Revision, Objects)>>,
    /// The indexes of the fields that lists selected by.
    field_indexes: Mutex<Vec<Arc<FieldIndex>>>,
}

/// A consistent state of a collection.
pub(crate) struct Snapshot {
    /// The objects, in key order.
    pub(crate) objects: Objects,
    /// The revision of the state.
    pub(crate) revision: Revision,
    /// The number of the first change after it.
    pub(crate) next: u64,
}

/// How many changes are undone before other requests get their turn: some tenths of a millisecond.
const UNDONE_AT_ONCE: u64 = 512;
/// The cost of undoing a change: decoding so many bytes takes as long.
const UNDONE_BYTES: usize = 64;

/// How many reconstructed past states a collection caches.
const RECALLED_MAX: usize = 4;

impl Collection {
    /// An empty collection whose log begins after `floor`.
    pub(super) fn new(floor: Revision) -> Self {
        Self {
            state: RwLock::new(State { floor, last: floor, ..State::default() }),
            changed: Notify::new(),
            topics: Mutex::default(),
            reads: Arc::default(),
            recalled: Mutex::default(),
            field_indexes: Mutex::default(),
        }
    }

    /// Applies committed writes, in order; returns the revision of the newest change before them.
    pub(super) fn apply(&self, records: &[Record], log_bytes_max: usize) -> Revision {
        let mut state = self.state.write();
        let before = state.last;
        for record in records {
            state.last = record.revision;
            if let Some(object) = state.object(record) {
                state.apply(object);
            }
        }
        while state.log_bytes > log_bytes_max && state.log.len() > 1 {
            state.forget_first();
        }
        before
    }

    /// Replaces the state and drops the history. All cursors lag.
    pub(super) fn reset(&self, records: &[&Record], head: Revision) {
        let live = records.iter().map(|record| Object::from_record(record)).collect();
        let mut state = self.state.write();
        self.recalled.lock().clear();
        *state = State::begin(live, state.end() + 1, head);
    }

    /// Returns the keys of the objects whose values could not be decrypted.
    pub(super) fn undecryptable(&self) -> BTreeSet<Arc<str>> {
        self.state.read().undecryptable.clone()
    }

    /// Replaces objects whose values could not be decrypted with newly read ones. An object that
    /// was written since stays. Watches and feeds could not read the old objects and must list
    /// again, so the history is dropped and all cursors lag.
    pub(super) fn replace_undecryptable(&self, records: &[Record]) {
        let mut state = self.state.write();
        let mut live = state.live.clone();
        for record in records {
            let is_same = |object: &Arc<Object>| object.revision == record.revision;
            if live.get(&record.key.item).is_some_and(is_same) {
                live.insert(Object::from_record(record));
            }
        }
        self.recalled.lock().clear();
        *state = State::begin(live, state.end() + 1, state.last);
    }

    /// Returns the object of a key.
    pub(crate) fn get(&self, item: &str) -> Option<Arc<Object>> {
        self.state.read().live.get(item).cloned()
    }

    /// Returns the collection's size and counters, for metrics.
    pub(super) fn stored(&self, name: Arc<str>) -> Stored {
        let state = self.state.read();
        Stored {
            name,
            objects: state.live.len(),
            bytes: state.live_bytes,
            revision: state.last,
            changes: state.end(),
            reads: self.reads.clone(),
        }
    }

    /// Returns the number and size of the live objects.
    pub(crate) fn extent(&self) -> crate::Extent {
        let state = self.state.read();
        crate::Extent { objects: state.live.len(), bytes: state.live_bytes }
    }

    /// The oldest revision after which the log has every change.
    pub(crate) fn floor(&self) -> Revision {
        self.state.read().floor
    }

    /// Returns the newest state. It includes all changes up to `visible`, which the caller read
    /// from the cache before the call.
    pub(crate) fn snapshot(&self, visible: Revision) -> Snapshot {
        let state = self.state.read();
        Snapshot {
            objects: state.live.clone(),
            revision: visible.max(state.last),
            next: state.end(),
        }
    }

    /// Returns the state just after `revision`; `None` if that state is not cached and the log does
    /// not reach back to it. The log's changes are undone from the newest on, some at a time,
    /// because writers wait while they are read.
    pub(crate) async fn snapshot_at(&self, revision: Revision) -> Option<Objects> {
        if let Some((_, objects)) = self.recalled.lock().iter().find(|(r, _)| *r == revision) {
            return Some(objects.clone());
        }
        let (mut objects, first, end) = {
            let state = self.state.read();
            if revision < state.floor {
                return None;
            }
            (state.live.clone(), state.first + state.after(revision) as u64, state.end())
        };
        let count = usize::try_from(end - first).unwrap_or(usize::MAX);
        work::ahead(count.saturating_mul(UNDONE_BYTES)).await;
        let mut after = end;
        while after > first {
            let next = after.saturating_sub(UNDONE_AT_ONCE).max(first);
            let changes = self.state.read().numbered(next..after)?;
            for change in changes.into_iter().rev() {
                match change.previous {
                    Some(previous) => objects.insert(previous),
                    None => objects.remove(&change.object.item),
                };
            }
            after = next;
            work::pause().await;
        }
        if end > first {
            self.remember(end, revision, &objects);
        }
        Some(objects)
    }

    /// Makes the state just after a revision from the store's records. Objects that are still
    /// current are shared with the live set. `end` is [`Collection::end`] before they were read.
    pub(crate) fn recall(&self, end: u64, revision: Revision, records: &[Record]) -> Objects {
        let live = self.state.read().live.clone();
        let object = |record: &Record| match live.get(&record.key.item) {
            Some(object) if object.revision == record.revision => object.clone(),
            _ => Object::from_record(record),
        };
        let objects = records.iter().map(object).collect();
        self.remember(end, revision, &objects);
        objects
    }

    /// Returns the number that the next change will get.
    pub(crate) fn end(&self) -> u64 {
        self.state.read().end()
    }

    /// Caches a past state that was reconstructed, unless the history was lost since the next
    /// change had the number `end`: another history may use its revision again.
    fn remember(&self, end: u64, revision: Revision, objects: &Objects) {
        let state = self.state.read();
        if end < state.first {
            return;
        }
        let mut recalled = self.recalled.lock();
        recalled.push_front((revision, objects.clone()));
        recalled.truncate(RECALLED_MAX);
    }

    /// Drops changes up to `floor` from the log.
    pub(super) fn trim(&self, floor: Revision) {
        self.recalled.lock().retain(|(revision, _)| *revision >= floor);
        let mut state = self.state.write();
        while state.log.front().is_some_and(|change| change.object.revision <= floor) {
            state.forget_first();
        }
        // A burst of writes leaves a long queue that is empty later.
        if state.log.len() < state.log.capacity() / 4 {
            let capacity = state.log.len() * 2;
            state.log.shrink_to(capacity);
        }
        state.floor = state.floor.max(floor);
        drop(state);
        self.drop_stale_indexes();
    }
}
