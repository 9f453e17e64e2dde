//! The state of a collection: the live set in key order, and the log of recent changes.

use std::collections::{BTreeSet, VecDeque};
use std::ops::Range;
use std::sync::Arc;

use pintle_store::{Kind, Record, Revision};

use super::objects::Objects;
use crate::Object;

/// The state of a collection: its objects, and the log of their recent changes.
#[derive(Default)]
pub(super) struct State {
    pub(super) live: Objects,
    /// The length of the JSON of the live objects. Shared field sets count for each object.
    pub(super) live_bytes: usize,
    /// The keys of the live objects whose values could not be decrypted.
    pub(super) undecryptable: BTreeSet<Arc<str>>,
    pub(super) log: VecDeque<Change>,
    /// The keys of live objects that have left the log, until [`settle`](super::Collection::settle) is
    /// called.
    pub(super) unsettled: Vec<Arc<str>>,
    /// The memory of the log's changes in bytes. It counts the newest object of a key, too,
    /// although dropping the change would not free that object: it stays in the live set.
    pub(super) log_bytes: usize,
    /// The number of the log's first change. A cursor holds the number of the change that it reads
    /// next.
    pub(super) first: u64,
    /// The oldest revision whose state the log can reconstruct: the log has every later change.
    pub(super) floor: Revision,
    /// The revision of the newest change.
    pub(super) last: Revision,
}

/// A change of one object. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct Change {
    /// The new state; for a deletion, the last state at the revision of the deletion.
    pub(crate) object: Arc<Object>,
    /// The state before the change.
    pub(crate) previous: Option<Arc<Object>>,
}

/// The memory of a change in addition to its object's bytes: the object, its index, and the entry
/// in the log (`docs/performance.md`, "beside its JSON").
const CHANGE_BYTES: usize = 256;

impl State {
    /// Makes a state without history, whose next change has the number `first`.
    pub(super) fn begin(live: Objects, first: u64, head: Revision) -> Self {
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
    pub(super) fn object(&self, record: &Record) -> Option<Arc<Object>> {
        if record.kind == Kind::Deleted && record.body.is_empty() {
            return Some(self.live.get(&record.key.item)?.deleted_at(record.revision));
        }
        Some(Object::from_record(record))
    }

    pub(super) fn apply(&mut self, object: Arc<Object>) {
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

    pub(super) fn forget_first(&mut self) {
        if let Some(change) = self.log.pop_front() {
            self.log_bytes -= change.object.size() + CHANGE_BYTES;
            self.first += 1;
            self.floor = self.floor.max(change.object.revision);
            if self.is_live(&change.object) {
                self.unsettled.push(change.object.item.clone());
            }
        }
    }

    pub(super) fn is_live(&self, object: &Arc<Object>) -> bool {
        self.live.get(&object.item).is_some_and(|live| Arc::ptr_eq(live, object))
    }

    /// Returns the number that the next change will get.
    pub(super) fn end(&self) -> u64 {
        self.first + self.log.len() as u64
    }

    /// Returns the changes with these numbers; `None` if the log does not have them any more.
    pub(super) fn numbered(&self, numbers: Range<u64>) -> Option<Vec<Change>> {
        let at = |number: u64| usize::try_from(number.checked_sub(self.first)?).ok();
        let (start, end) = (at(numbers.start)?, at(numbers.end)?);
        (end <= self.log.len()).then(|| self.log.range(start..end).cloned().collect())
    }

    /// Returns the index in the log of the first change after `revision`.
    pub(super) fn after(&self, revision: Revision) -> usize {
        self.log.partition_point(|change| change.object.revision <= revision)
    }
}
