//! The cache: every stored object in memory, and the log of recent changes.
//!
//! Purpose: all reads. The store's commits come in as a [`Follower`]; lists, gets and watches look at
//! one [`Collection`] each. Nothing here waits for the disk.
//!
//! Must not know: definitions beyond what selection needs, requests, encodings.
//!
//! Invariants:
//! - A reader that saw revision V sees every change up to V, in every collection.
//! - A collection's log is the exact sequence of its changes after its floor.

mod collection;
mod cursor;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::RwLock;
use pintle_store::{Follower, Record, Revision};
use tokio::sync::watch;

pub(crate) use collection::{Change, Collection, Snapshot};
pub(crate) use cursor::{Cursor, Lagged};

/// All collections.
pub(crate) struct Cache {
    collections: RwLock<HashMap<Arc<str>, Arc<Collection>>>,
    /// The newest revision that is applied in every collection.
    visible: watch::Sender<Revision>,
    /// The revision before which no collection can tell its state.
    floor: AtomicU64,
    /// How much of each collection's log is kept, in bytes of objects.
    log_bytes_max: usize,
}

impl Cache {
    /// An empty cache to follow a store whose floor is `floor`.
    pub(crate) fn new(floor: Revision, log_bytes_max: usize) -> Self {
        Self {
            collections: RwLock::default(),
            visible: watch::Sender::new(floor),
            floor: AtomicU64::new(floor.0),
            log_bytes_max,
        }
    }

    /// The newest revision that readers see.
    pub(crate) fn visible(&self) -> Revision {
        *self.visible.borrow()
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

    /// How many objects each collection holds.
    pub(crate) fn counts(&self) -> Vec<(Arc<str>, usize)> {
        let collections = self.collections.read();
        collections.iter().map(|(name, c)| (name.clone(), c.len())).collect()
    }
}

impl Follower for Cache {
    fn apply(&self, records: &[Record]) {
        let Some(last) = records.last() else { return };
        // Runs of one collection are applied under one lock.
        for run in records.chunk_by(|a, b| a.key.collection == b.key.collection) {
            self.collection(&run[0].key.collection).apply(run, self.log_bytes_max);
        }
        self.visible.send_if_modified(|visible| {
            let newer = last.revision > *visible;
            *visible = (*visible).max(last.revision);
            newer
        });
    }
}
