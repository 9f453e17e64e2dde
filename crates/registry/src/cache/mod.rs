//! The cache: every stored object in memory, and the log of recent changes.
//!
//! Purpose: all reads. The store's commits come in as a [`Follower`]; lists, gets and watches look at
//! one [`Collection`] each. Nothing here waits for the disk.
//!
//! Must not know: definitions beyond what selection needs, requests, encodings.
//!
//! Invariants:
//! - A reader that saw revision V sees every change up to V, in every collection.
//! - No two changes have one revision, so a watcher that was cut off anywhere goes on after the last one
//!   that it saw. A store whose writes of one group shared a revision would need more than that.
//! - A collection's log is the exact sequence of its changes after its floor.

mod collection;
mod cursor;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashMap};
use std::ops::Bound::{Excluded, Unbounded};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::{Mutex, RwLock};
use pintle_store::{Follower, Record, Revision};
use tokio::sync::watch;

use crate::measures::Stored;

pub(crate) use collection::{Change, Collection, Snapshot};
pub(crate) use cursor::{Cursor, Lagged};

/// All collections.
pub(crate) struct Cache {
    collections: RwLock<HashMap<Arc<str>, Arc<Collection>>>,
    /// The newest revision that is applied in every collection.
    visible: watch::Sender<Revision>,
    /// The revision before which no collection can tell its state.
    floor: AtomicU64,
    /// How much of each collection's log is kept, in bytes of memory.
    log_bytes_max: usize,
    /// The collections that were ever written to, each at its newest revision.
    by_newest: Mutex<BTreeMap<Revision, Arc<str>>>,
}

impl Cache {
    /// An empty cache to follow a store whose floor is `floor`.
    pub(crate) fn new(floor: Revision, log_bytes_max: usize) -> Self {
        Self {
            collections: RwLock::default(),
            visible: watch::Sender::new(floor),
            floor: AtomicU64::new(floor.0),
            log_bytes_max,
            by_newest: Mutex::default(),
        }
    }

    /// The newest revision that readers see.
    pub(crate) fn visible(&self) -> Revision {
        *self.visible.borrow()
    }

    /// The collections that changed after a revision: of all that is visible none is left out.
    pub(crate) fn changed_since(&self, revision: Revision) -> Vec<Arc<str>> {
        let by_newest = self.by_newest.lock();
        by_newest.range((Excluded(revision), Unbounded)).map(|(_, name)| name.clone()).collect()
    }

    /// The newest revision that readers see, and every one after it.
    pub(crate) fn heads(&self) -> watch::Receiver<Revision> {
        self.visible.subscribe()
    }

    /// Waits until `revision` is visible, for a bounded time; `false` if it did not come.
    pub(crate) async fn wait_for(&self, revision: Revision, patience: Duration) -> bool {
        let mut visible = self.visible.subscribe();
        let reached = visible.wait_for(|v| *v >= revision);
        tokio::time::timeout(patience, reached).await.is_ok_and(|r| r.is_ok())
    }

    /// The collection of that name, made if it is new.
    pub(crate) fn collection(&self, name: &Arc<str>) -> Arc<Collection> {
        if let Some(collection) = self.collections.read().get(name) {
            return collection.clone();
        }
        let floor = Revision(self.floor.load(Ordering::Relaxed));
        let mut collections = self.collections.write();
        collections.entry(name.clone()).or_insert_with(|| Arc::new(Collection::new(floor))).clone()
    }

    /// Forgets changes up to `floor` in every log.
    pub(crate) fn trim(&self, floor: Revision) {
        self.floor.fetch_max(floor.0, Ordering::Relaxed);
        for collection in self.collections.read().values() {
            collection.trim(floor);
        }
    }

    /// What each collection holds, by their names.
    pub(crate) fn stored(&self) -> Vec<Stored> {
        let collections = self.collections.read();
        let mut stored: Vec<_> =
            collections.iter().map(|(name, c)| c.stored(name.clone())).collect();
        stored.sort_by(|one, other| one.name.cmp(&other.name));
        stored
    }
}

impl Follower for Cache {
    fn apply(&self, records: &[Record]) {
        let Some(last) = records.last() else { return };
        // Runs of one collection are applied under one lock.
        for run in records.chunk_by(|a, b| a.key.collection == b.key.collection) {
            let (name, newest) = (&run[0].key.collection, run[run.len() - 1].revision);
            let before = self.collection(name).apply(run, self.log_bytes_max);
            let mut by_newest = self.by_newest.lock();
            if by_newest.get(&before).is_some_and(|one| one == name) {
                by_newest.remove(&before);
            }
            by_newest.insert(newest, name.clone());
        }
        self.visible.send_if_modified(|visible| {
            let newer = last.revision > *visible;
            *visible = (*visible).max(last.revision);
            newer
        });
    }
}
