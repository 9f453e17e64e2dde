//! One resource's objects: the live set in key order, and the log of recent changes.

mod keys_by_value;
mod settling;

use std::collections::{BTreeSet, VecDeque};
use std::ops::Range;
use std::sync::Arc;

use parking_lot::{Mutex, RwLock};
use pintle_store::{Kind, Record, Revision};
use tokio::sync::Notify;

use super::objects::Objects;
use super::topics::Topics;
use crate::measures::{Reads, Stored};
use crate::{Object, work};
use keys_by_value::FieldIndex;
pub(crate) use keys_by_value::FieldOf;

/// A change of one object. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct Change {
    /// The new state; for a deletion, the last state at the revision of the deletion.
    pub(crate) object: Arc<Object>,
    /// The state before the change.
    pub(crate) previous: Option<Arc<Object>>,
}

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

#[derive(Default)]
pub(super) struct State {
    live: Objects,
    /// The length of the JSON of the live objects. Shared field sets count for each object.
    live_bytes: usize,
    /// The keys of the live objects whose values could not be decrypted.
    undecryptable: BTreeSet<Arc<str>>,
    pub(super) log: VecDeque<Change>,
    /// The keys of live objects that have left the log, until [`Collection::settle`] is called.
    unsettled: Vec<Arc<str>>,
    /// The memory of the log's changes in bytes. It counts the newest object of a key, too,
    /// although dropping the change would not free that object: it stays in the live set.
    log_bytes: usize,
    /// The number of the log's first change. A cursor holds the number of the change that it reads
    /// next.
    pub(super) first: u64,
    /// The oldest revision whose state the log can reconstruct: the log has every later change.
    pub(super) floor: Revision,
    /// The revision of the newest change.
    pub(super) last: Revision,
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

/// The memory of a change in addition to its object's bytes: the object, its index, and the entry
/// in the log (`docs/performance.md`, "beside its JSON").
const CHANGE_BYTES: usize = 256;

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

impl State {
    /// Makes a state without history, whose next change has the number `first`.
    fn begin(live: Objects, first: u64, head: Revision) -> Self {
        let is_undecryptable = |object: &&Arc<Object>| object.is_undecryptable();
        Self {
            live_bytes: live.iter().map(|object| object.size()).sum(),
            undecryptable: live
                .iter()
                .filter(is_undecryptable)
                .map(|object| object.item.clone())
                .collect(),
            unsettled: live.iter().map(|object| object.item.clone()).collect(),
            live,
            first,
            floor: head,
            last: head,
            ..Self::default()
        }
    }

    /// Makes the object of a record. A deletion by another process carries no value: the object is
    /// the live one, or `None` if the key has none.
    fn object(&self, record: &Record) -> Option<Arc<Object>> {
        if record.kind == Kind::Deleted && record.body.is_empty() {
            return Some(self.live.get(&record.key.item)?.deleted_at(record.revision));
        }
        Some(Object::from_record(record))
    }

    fn apply(&mut self, object: Arc<Object>) {
        if object.kind() != Kind::Deleted && object.is_undecryptable() {
            self.undecryptable.insert(object.item.clone());
        } else if !self.undecryptable.is_empty() {
            self.undecryptable.remove(&object.item);
        }
        let previous = match object.kind() {
            Kind::Deleted => self.live.remove(&object.item),
            Kind::Created | Kind::Updated => self.live.insert(object.clone()),
        };
        self.live_bytes -= previous.as_ref().map_or(0, |previous| previous.size());
        self.live_bytes += if object.kind() == Kind::Deleted { 0 } else { object.size() };
        if object.revision <= self.floor {
            if object.kind() != Kind::Deleted {
                self.unsettled.push(object.item.clone());
            }
            return; // part of the initial state, not a change
        }
        self.log_bytes += object.size() + CHANGE_BYTES;
        self.log.push_back(Change { object, previous });
    }

    fn forget_first(&mut self) {
        if let Some(change) = self.log.pop_front() {
            self.log_bytes -= change.object.size() + CHANGE_BYTES;
            self.first += 1;
            self.floor = self.floor.max(change.object.revision);
            if self.is_live(&change.object) {
                self.unsettled.push(change.object.item.clone());
            }
        }
    }

    fn is_live(&self, object: &Arc<Object>) -> bool {
        self.live.get(&object.item).is_some_and(|live| Arc::ptr_eq(live, object))
    }

    /// Returns the number that the next change will get.
    pub(super) fn end(&self) -> u64 {
        self.first + self.log.len() as u64
    }

    /// Returns the changes with these numbers; `None` if the log does not have them any more.
    fn numbered(&self, numbers: Range<u64>) -> Option<Vec<Change>> {
        let at = |number: u64| usize::try_from(number.checked_sub(self.first)?).ok();
        let (start, end) = (at(numbers.start)?, at(numbers.end)?);
        (end <= self.log.len()).then(|| self.log.range(start..end).cloned().collect())
    }

    /// Returns the index in the log of the first change after `revision`.
    pub(super) fn after(&self, revision: Revision) -> usize {
        self.log.partition_point(|change| change.object.revision <= revision)
    }
}
