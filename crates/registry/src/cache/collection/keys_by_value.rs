//! The keys of the objects that have a value in a selectable field, so that a list of the pods of a
//! node does not look at all pods (upstream: the index of `spec.nodeName` in the watch cache).
//!
//! A list makes the index of a field when it needs it first, and brings it up to date from the log
//! whenever it uses it: a write does nothing for it. An index that no list uses is dropped when the
//! log was trimmed past it.
//!
//! Invariant: with all changes before `next`, the sets have exactly the keys of the live objects,
//! each under its object's value, or in `unreadable`. So they name the objects of the state that was
//! live when the index was found to be up to date.

use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use pintle_store::{Kind, Revision};
use pintle_value::Str;

use super::{Collection, Snapshot, UNDONE_AT_ONCE, UNDONE_BYTES};
use crate::cache::state::Change;
use crate::cache::topics::FieldOf;
use crate::object::Unreadable;
use crate::{Object, work};

/// Lists of a value that more objects have scan the collection: objects that are looked up one by
/// one take several times as long as in a scan.
const SHARED_MAX: usize = 1024;

/// How many changes are applied to an index before other requests get their turn: as many as are
/// undone at once.
const APPLIED_AT_ONCE: u64 = UNDONE_AT_ONCE;

/// The index of one field.
pub(super) struct FieldIndex {
    field: FieldOf,
    /// `None` until a list has made it. Lists that need it wait for the one that makes it.
    keys: tokio::sync::Mutex<Option<KeysByValue>>,
}

/// The keys of the live objects by the values of one field.
#[derive(Default)]
struct KeysByValue {
    by_value: HashMap<Str, BTreeSet<Arc<str>>>,
    /// The keys of the objects that cannot be read: every selector matches them.
    unreadable: BTreeSet<Arc<str>>,
    /// The number of the first change that was not applied yet.
    next: u64,
    /// Whether so many objects share a value that the index would help few lists. Then it is empty,
    /// and falls behind until it is dropped.
    is_useless: bool,
}

impl Collection {
    /// Returns the newest state, without the objects that have another value in a field. It
    /// includes all changes up to `visible`, as [`Collection::snapshot`] does. `None` if a scan is as
    /// good, because many objects have the value.
    pub(crate) async fn snapshot_with(
        &self,
        field: &FieldOf,
        value: &str,
        visible: Revision,
    ) -> Option<Snapshot> {
        let index = self.field_index(field);
        let mut index = index.keys.lock().await;
        loop {
            let keys = match &mut *index {
                Some(keys) => keys,
                none => none.insert(self.keys_by_value(field).await),
            };
            if keys.is_useless {
                return None;
            }
            let (changes, newest) = {
                let state = self.state.read();
                let changes =
                    state.numbered(keys.next..state.end().min(keys.next + APPLIED_AT_ONCE));
                let revision = visible.max(state.last);
                (changes, Snapshot { objects: state.live.clone(), revision, next: state.end() })
            };
            match changes {
                Some(changes) if changes.is_empty() => return keys.among(newest, value),
                Some(changes) => {
                    work::ahead(changes.iter().map(to_read).sum()).await;
                    keys.apply(field, &changes);
                    if changes.len() as u64 == APPLIED_AT_ONCE {
                        work::pause().await;
                    }
                }
                None => *index = None, // the log was trimmed past the index, or restarted
            }
        }
    }

    /// Returns the index of a field; makes an empty one if there is none.
    fn field_index(&self, field: &FieldOf) -> Arc<FieldIndex> {
        let mut indexes = self.field_indexes.lock();
        if let Some(index) = indexes.iter().find(|index| index.field == *field) {
            return index.clone();
        }
        let index = Arc::new(FieldIndex { field: field.clone(), keys: Default::default() });
        indexes.push(index.clone());
        index
    }

    /// Reads the field of all live objects. It keeps nothing else of those that were read from
    /// disk.
    async fn keys_by_value(&self, field: &FieldOf) -> KeysByValue {
        let (live, next) = {
            let state = self.state.read();
            (state.live.clone(), state.end())
        };
        let mut keys = KeysByValue { next, ..KeysByValue::default() };
        let mut bytes = work::YIELD_BYTES;
        for object in live.iter() {
            bytes += if object.is_indexed() { UNDONE_BYTES } else { object.size() };
            if bytes > work::YIELD_BYTES {
                bytes = 0;
                work::pause().await;
            }
            keys.insert(object.field_once(&field.resource, field.position), object);
        }
        if live.len() > SHARED_MAX.saturating_mul(keys.by_value.len()) {
            return KeysByValue { next, is_useless: true, ..KeysByValue::default() };
        }
        keys
    }

    /// Drops the indexes that the log cannot bring up to date any more. One that is in use stays.
    pub(super) fn drop_stale_indexes(&self) {
        let first = self.state.read().first;
        self.field_indexes.lock().retain(|index| match index.keys.try_lock() {
            Ok(keys) => keys.as_ref().is_some_and(|keys| keys.next >= first),
            Err(_) => true,
        });
    }
}

/// The cost of reading the fields of a change's objects, in bytes.
fn to_read(change: &Change) -> usize {
    let objects = [Some(&change.object), change.previous.as_ref()].into_iter().flatten();
    let unread = objects.filter(|object| !object.is_indexed());
    UNDONE_BYTES + unread.map(|object| object.size()).sum::<usize>()
}

impl KeysByValue {
    fn apply(&mut self, field: &FieldOf, changes: &[Change]) {
        let value = |object| Object::field(object, &field.resource, field.position);
        for change in changes {
            if let Some(previous) = &change.previous {
                self.remove(value(previous), previous);
            }
            if change.object.kind() != Kind::Deleted {
                self.insert(value(&change.object), &change.object);
            }
        }
        self.next += changes.len() as u64;
    }

    fn insert(&mut self, value: Result<Cow<'_, str>, Unreadable>, object: &Object) {
        let keys = match value {
            Ok(value) => match self.by_value.get_mut(&*value) {
                Some(keys) => keys,
                None => self.by_value.entry(Str::from(&*value)).or_default(),
            },
            Err(_) => &mut self.unreadable,
        };
        keys.insert(object.item.clone());
    }

    fn remove(&mut self, value: Result<Cow<'_, str>, Unreadable>, object: &Object) {
        let Ok(value) = value else {
            self.unreadable.remove(&object.item);
            return;
        };
        if let Some(keys) = self.by_value.get_mut(&*value) {
            keys.remove(&object.item);
            if keys.is_empty() {
                self.by_value.remove(&*value);
            }
        }
    }

    /// Returns a state without the objects that have another value; `None` if more than
    /// [`SHARED_MAX`] have this one.
    fn among(&self, newest: Snapshot, value: &str) -> Option<Snapshot> {
        let none = BTreeSet::new();
        let keys = self.by_value.get(value).unwrap_or(&none);
        if keys.len() + self.unreadable.len() > SHARED_MAX {
            return None;
        }
        let keys = keys.iter().chain(&self.unreadable);
        let objects = keys.filter_map(|item| newest.objects.get(item).cloned()).collect();
        Some(Snapshot { objects, ..newest })
    }
}
