//! The index: the revision of each key's value, at every revision since the floor.
//!
//! It locates records. It is in memory and is rebuilt from the log when a store opens.
//!
//! It must not know values, the medium, or followers.
//!
//! Invariants:
//! - `history` has one change for each revision above `base`, without gaps: the change of revision
//!   `r` is at `r - base - 1`.
//! - From every key whose newest version is above `base`, the changes lead back to its version at
//!   any revision from `base` on.
//! - A key is in the map while it has a value, or while its deletion is above `base`.

use std::collections::{BTreeMap, VecDeque, btree_map};
use std::mem;
use std::ops::Bound;
use std::sync::Arc;

use crate::{Key, Kind, Revision};

/// The state of every key at every revision from `base` to the newest.
///
/// A key costs its name and 24 bytes, a change since `base` 16 bytes, and a deletion its key.
#[derive(Debug, Default)]
pub(crate) struct Index {
    collections: BTreeMap<Arc<str>, BTreeMap<Arc<str>, Version>>,
    history: VecDeque<Change>,
    base: Revision,
}

/// A version of a key: the revision of a write, and whether it put or deleted the value. Packed in
/// one word, because every key has one.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Version(u64);

impl Version {
    pub(crate) const fn new(revision: Revision, live: bool) -> Self {
        Self(revision.0 << 1 | live as u64)
    }

    pub(crate) const fn revision(self) -> Revision {
        Revision(self.0 >> 1)
    }

    pub(crate) const fn live(self) -> bool {
        self.0 & 1 == 1
    }
}

impl std::fmt::Debug for Version {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}{}", self.revision(), if self.live() { "" } else { " (deleted)" })
    }
}

/// The effect of one write. It is small, because there is one for every write since `base`.
#[derive(Debug)]
struct Change {
    /// The key's version before, or [`UNKNOWN`].
    before: Version,
    /// The key, if this write deleted it: it leaves the map when the change is dropped.
    deleted: Option<Box<Key>>,
}

impl Change {
    /// Returns the key's version before this change, if the key was in the index.
    fn before(&self) -> Option<Version> {
        Some(self.before).filter(|before| *before != UNKNOWN)
    }
}

/// No version; revision 0 is before the first write.
const UNKNOWN: Version = Version::new(Revision(0), false);

impl Index {
    /// Makes an empty index that begins after `base`.
    pub(crate) fn new(base: Revision) -> Self {
        Self { base, ..Self::default() }
    }

    /// Returns the revision of the newest change.
    pub(crate) fn newest(&self) -> Revision {
        Revision(self.base.0 + self.history.len() as u64)
    }

    /// Returns the key's newest version.
    pub(crate) fn current(&self, key: &Key) -> Option<Version> {
        self.collections.get(&key.collection)?.get(&key.item).copied()
    }

    /// Returns the key's version at a revision, which must not be below `base`.
    pub(crate) fn at(&self, key: &Key, revision: Revision) -> Option<Version> {
        self.version_at(self.current(key)?, revision)
    }

    /// Returns the revisions of a collection's values at a revision, for items that begin with
    /// `prefix`, ordered by item.
    pub(crate) fn list(&self, collection: &str, prefix: &str, at: Revision) -> Vec<Revision> {
        let Some(items) = self.collections.get(collection) else { return Vec::new() };
        items
            .range::<str, _>((Bound::Included(prefix), Bound::Unbounded))
            .take_while(|(item, _)| item.starts_with(prefix))
            .filter_map(|(_, &newest)| self.version_at(newest, at))
            .filter(|version| version.live())
            .map(Version::revision)
            .collect()
    }

    /// Replaces a key's strings by those of the index, if it has the key, to hold them once in
    /// memory.
    pub(crate) fn share(&self, key: &mut Key) {
        let Some((collection, items)) = self.collections.get_key_value(&key.collection) else {
            return;
        };
        key.collection = collection.clone();
        if let Some((item, _)) = items.get_key_value(&key.item) {
            key.item = item.clone();
        }
    }

    /// Adds the change of the next revision; replaces the key's strings by those of the index.
    pub(crate) fn push(&mut self, key: &mut Key, kind: Kind) {
        let deleted = kind == Kind::Deleted;
        let version = Version::new(Revision(self.newest().0 + 1), !deleted);
        let before = self.set(key, version).unwrap_or(UNKNOWN);
        let deleted = deleted.then(|| Box::new(key.clone()));
        self.history.push_back(Change { before, deleted });
    }

    /// Adds a record at or below `base` while the index is rebuilt; returns the revisions that it
    /// makes garbage. Replaces the key's strings by those of the index.
    pub(crate) fn restore(
        &mut self,
        revision: Revision,
        key: &mut Key,
        kind: Kind,
    ) -> impl Iterator<Item = Revision> + use<> {
        debug_assert!(revision <= self.base, "restored records are at or below the base");
        let deleted = kind == Kind::Deleted;
        let older =
            if deleted { self.remove(key) } else { self.set(key, Version::new(revision, true)) };
        older.map(Version::revision).into_iter().chain(deleted.then_some(revision))
    }

    /// Rebuilds the maps after recovery: inserting keys in order leaves their nodes half empty.
    pub(crate) fn pack(&mut self) {
        for items in self.collections.values_mut() {
            *items = mem::take(items).into_iter().collect();
        }
        self.history.shrink_to_fit();
    }

    /// Moves `base` to `floor`, but by at most `limit` changes; returns the revisions of the
    /// records that are garbage then.
    pub(crate) fn drop_history(&mut self, floor: Revision, limit: usize) -> Vec<Revision> {
        let mut garbage = Vec::new();
        for _ in 0..limit {
            if self.base >= floor {
                break;
            }
            let Some(change) = self.history.pop_front() else { break };
            self.base.0 += 1;
            garbage.extend(change.before().filter(|v| v.live()).map(Version::revision));
            if let Some(key) = change.deleted {
                garbage.push(self.base);
                let deletion = Version::new(self.base, false);
                if self.current(&key) == Some(deletion) {
                    self.remove(&key);
                }
            }
        }
        // A burst of writes leaves a long queue that is empty later.
        if self.history.len() < self.history.capacity() / 4 {
            self.history.shrink_to(self.history.len() * 2);
        }
        garbage
    }

    /// Returns the number of keys that have a value at the newest revision.
    pub(crate) fn count(&self) -> usize {
        let items = self.collections.values().flat_map(BTreeMap::values);
        items.filter(|version| version.live()).count()
    }

    /// Returns the oldest revision whose state is known.
    pub(crate) fn base(&self) -> Revision {
        self.base
    }

    fn version_at(&self, newest: Version, at: Revision) -> Option<Version> {
        debug_assert!(at >= self.base, "states before the base are dropped");
        let mut version = newest;
        while version.revision() > at {
            let index = version.revision().0 - self.base.0 - 1;
            version = self.history.get(usize::try_from(index).ok()?)?.before()?;
        }
        Some(version)
    }

    /// Sets a key's newest version; returns the previous one.
    fn set(&mut self, key: &mut Key, version: Version) -> Option<Version> {
        let collection = self.collections.entry(key.collection.clone());
        if let btree_map::Entry::Occupied(known) = &collection {
            key.collection = known.key().clone();
        }
        match collection.or_default().entry(key.item.clone()) {
            btree_map::Entry::Vacant(new) => {
                new.insert(version);
                None
            }
            btree_map::Entry::Occupied(mut known) => {
                key.item = known.key().clone();
                Some(known.insert(version))
            }
        }
    }

    fn remove(&mut self, key: &Key) -> Option<Version> {
        let items = self.collections.get_mut(&key.collection)?;
        let version = items.remove(&key.item);
        if items.is_empty() {
            self.collections.remove(&key.collection);
        }
        version
    }
}
