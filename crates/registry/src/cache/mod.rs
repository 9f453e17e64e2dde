//! The watch cache: every stored object in memory, and a log of recent changes.
//!
//! It serves all reads, except lists of a past state that no log reaches back to. The store's
//! commits arrive through [`Follower`]; a list, get or watch reads one [`Collection`]. Nothing here
//! waits for the disk.
//!
//! It must not know requests or encodings, and of definitions only what selection needs.
//!
//! Invariants:
//! - A reader that saw revision V sees every change up to V, in every collection.
//! - Changes of one revision become visible together. A collection has one change at each revision,
//!   unless another program on a shared database wrote several in one transaction. So a watcher
//!   that was disconnected can resume after the last revision that it saw.
//! - A collection's log is the exact sequence of its changes after its floor.

mod collection;
mod cursor;
mod dispatch;
mod objects;
mod state;
#[cfg(test)]
mod tests;
mod topics;

use std::collections::{BTreeSet, HashMap};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use futures_util::FutureExt as _;
use parking_lot::{Mutex, RwLock};
use pintle_store::{Follower, Record, Revision};
use tokio::sync::watch;

use crate::measures::Stored;
use crate::object::FieldSets;

pub(crate) use collection::{Collection, Snapshot};
pub(crate) use cursor::{BATCH_MAX, Cursor, ScopedCursor};
pub(crate) use objects::{Iter, Objects};
pub(crate) use state::Change;
pub(crate) use topics::{FieldOf, Lagged, Scope};

/// How many bytes of objects are settled in one call: the allocator returns their memory some time
/// later, and after a start there may be gigabytes.
const SETTLED_AT_ONCE: usize = 128 << 20;

/// All collections.
pub(crate) struct Cache {
    collections: RwLock<HashMap<Arc<str>, Arc<Collection>>>,
    /// The head: all changes up to it are applied in every collection.
    visible: watch::Sender<Head>,
    /// The revision before which no collection can reconstruct its state.
    floor: AtomicU64,
    /// The bound on each collection's log, in bytes of memory.
    log_bytes_max: usize,
    /// The collections, each with the head of its newest change or of the last reset. A collection
    /// that was never written to may be absent. The lock is held while changes are applied, so that
    /// they are applied one batch after the other.
    by_newest: Mutex<BTreeSet<(Head, Arc<str>)>>,
    /// The field sets that objects share.
    field_sets: Mutex<FieldSets>,
    /// Whether the dispatcher panicked.
    has_failed: AtomicBool,
}

/// The newest state that the cache has. Heads only grow, even if revisions go back because a
/// database was restored from a backup.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Head {
    /// How often the history was lost and the state was read again.
    resets: u64,
    /// The newest revision that readers see.
    pub revision: Revision,
}

impl Head {
    /// Makes a head, of a history that began after so many losses.
    pub const fn new(resets: u64, revision: Revision) -> Self {
        Self { resets, revision }
    }

    /// Returns how often the history was lost. A revision identifies a state only while this is the
    /// same: a database that was restored from a backup may use it again.
    pub const fn resets(self) -> u64 {
        self.resets
    }
}

impl Cache {
    /// Makes an empty cache that will follow a store with this floor.
    pub(crate) fn new(floor: Revision, log_bytes_max: usize) -> Self {
        Self {
            collections: RwLock::default(),
            visible: watch::Sender::new(Head { resets: 0, revision: floor }),
            floor: AtomicU64::new(floor.0),
            log_bytes_max,
            by_newest: Mutex::default(),
            field_sets: Mutex::default(),
            has_failed: AtomicBool::default(),
        }
    }

    /// Starts the task that wakes watches after changes; the task ends when the cache is dropped.
    /// The caller must be within a Tokio runtime.
    pub(crate) fn start_dispatcher(self: &Arc<Self>) {
        let mut heads = self.heads();
        let seen = *heads.borrow_and_update();
        let cache = Arc::downgrade(self);
        tokio::spawn(async move {
            let run = AssertUnwindSafe(dispatch::run(cache.clone(), heads, seen));
            if run.catch_unwind().await.is_err()
                && let Some(cache) = cache.upgrade()
            {
                tracing::error!("the dispatcher panicked; no watch gets events any more");
                cache.has_failed.store(true, Ordering::Relaxed);
            }
        });
    }

    /// Returns an error if the dispatcher panicked.
    pub(crate) fn check(&self) -> Result<(), pintle_store::Error> {
        if !self.has_failed.load(Ordering::Relaxed) {
            return Ok(());
        }
        let reason = "no watch gets events any more; the server must be started again";
        Err(pintle_store::Error::Failed { reason: reason.to_owned() })
    }

    /// Returns the newest revision that readers see.
    pub(crate) fn visible(&self) -> Revision {
        self.head().revision
    }

    /// Returns the current head.
    pub(crate) fn head(&self) -> Head {
        *self.visible.borrow()
    }

    /// Returns the collections that changed after a head, in the order of their newest changes. No
    /// collection with a visible change after the head is missing.
    pub(crate) fn changed_since(&self, head: Head) -> Vec<Arc<str>> {
        let by_newest = self.by_newest.lock();
        let newest_first = by_newest.iter().rev();
        let mut changed: Vec<_> = newest_first
            .take_while(|(newest, _)| *newest > head)
            .map(|(_, name)| name.clone())
            .collect();
        changed.reverse();
        changed
    }

    /// Returns a receiver of the head. A receiver that is slow sees only the newest of several
    /// heads.
    pub(crate) fn heads(&self) -> watch::Receiver<Head> {
        self.visible.subscribe()
    }

    /// Waits until `revision` is visible; returns `false` after the timeout.
    pub(crate) async fn wait_for(&self, revision: Revision, timeout: Duration) -> bool {
        if self.visible() >= revision {
            return true;
        }
        let mut visible = self.visible.subscribe();
        let reached = visible.wait_for(|head| head.revision >= revision);
        tokio::time::timeout(timeout, reached).await.is_ok_and(|r| r.is_ok())
    }

    /// Returns the collection of that name; makes it if it is new.
    pub(crate) fn collection(&self, name: &Arc<str>) -> Arc<Collection> {
        if let Some(collection) = self.collections.read().get(name) {
            return collection.clone();
        }
        let floor = Revision(self.floor.load(Ordering::Relaxed));
        let mut collections = self.collections.write();
        collections.entry(name.clone()).or_insert_with(|| Arc::new(Collection::new(floor))).clone()
    }

    /// Drops changes up to `floor` from every log, and the field sets that no object has any more.
    /// Does nothing if the history of that head was lost: its revisions are not those of the new
    /// history, which may not have reached them yet.
    pub(crate) fn trim(&self, floor: Head) {
        let collections: Vec<_> = self.collections.read().values().cloned().collect();
        let trim = |trim: &dyn Fn()| {
            let _no_reset = self.by_newest.lock();
            if self.head().resets == floor.resets {
                trim();
            }
        };
        trim(&|| _ = self.floor.fetch_max(floor.revision.0, Ordering::Relaxed));
        for collection in collections {
            trim(&|| collection.trim(floor.revision)); // others may write in between
        }
        self.field_sets.lock().sweep();
    }

    /// Reduces the memory of objects that have left the logs.
    /// After objects of [`SETTLED_AT_ONCE`] bytes the rest waits for the next call.
    pub(crate) async fn settle(&self) {
        let collections: Vec<_> = self.collections.read().values().cloned().collect();
        let mut bytes = SETTLED_AT_ONCE;
        for collection in collections {
            bytes = collection.settle(&self.field_sets, bytes).await;
        }
    }

    /// Returns the keys whose values could not be decrypted, by collection.
    pub(crate) fn undecryptable(&self) -> Vec<(Arc<str>, BTreeSet<Arc<str>>)> {
        let collections = self.collections.read();
        let found = collections.iter().map(|(name, c)| (name.clone(), c.undecryptable()));
        found.filter(|(_, items)| !items.is_empty()).collect()
    }

    /// Replaces objects of a collection whose values could not be decrypted with newly read ones.
    /// The replacement counts as a loss of the history, so that watches and feeds read the
    /// collection again.
    pub(crate) fn replace_undecryptable(&self, name: &Arc<str>, records: &[Record]) {
        let mut by_newest = self.by_newest.lock();
        self.collection(name).replace_undecryptable(records);
        let head = self.head();
        let new = Head { resets: head.resets + 1, ..head };
        let collections = std::mem::take(&mut *by_newest);
        let renewed = |(at, name)| (Head { resets: new.resets, ..at }, name);
        *by_newest = collections.into_iter().map(renewed).collect();
        self.visible.send_replace(new);
    }

    /// Returns the sizes and counters of the collections, sorted by name.
    pub(crate) fn stored(&self) -> Vec<Stored> {
        let collections = self.collections.read();
        let mut stored: Vec<_> =
            collections.iter().map(|(name, c)| c.stored(name.clone())).collect();
        stored.sort_by(|one, other| one.name.cmp(&other.name));
        stored
    }
}

impl Follower for Cache {
    fn apply(&self, records: &[Record], head: Revision) {
        let mut by_newest = self.by_newest.lock();
        let resets = self.head().resets;
        // Consecutive records of one collection are applied under one lock.
        for run in records.chunk_by(|a, b| a.key.collection == b.key.collection) {
            let (name, newest) = (&run[0].key.collection, run[run.len() - 1].revision);
            let before = self.collection(name).apply(run, self.log_bytes_max);
            by_newest.remove(&(Head { resets, revision: before }, name.clone()));
            by_newest.insert((Head { resets, revision: newest }, name.clone()));
        }
        self.visible.send_if_modified(|visible| {
            let is_newer = head > visible.revision;
            visible.revision = visible.revision.max(head);
            is_newer
        });
    }

    fn reset(&self, state: &[Record], head: Revision) {
        let mut states: HashMap<&Arc<str>, Vec<&Record>> = HashMap::new();
        for record in state {
            states.entry(&record.key.collection).or_default().push(record);
        }
        for name in states.keys() {
            self.collection(name);
        }
        let mut by_newest = self.by_newest.lock();
        let new = Head { resets: self.head().resets + 1, revision: head };
        self.floor.store(head.0, Ordering::Relaxed);
        by_newest.clear();
        for (name, collection) in self.collections.read().iter() {
            collection.reset(states.get(name).map_or(&[], Vec::as_slice), head);
            by_newest.insert((new, name.clone()));
        }
        self.visible.send_replace(new);
    }
}
