//! A cursor: the position of a watcher in a collection's log. The cache holds no other state for a
//! watcher.

use std::sync::Arc;

use pintle_store::Revision;

use super::collection::{Change, Collection};

/// A position in a collection's log.
pub(crate) struct Cursor {
    collection: Arc<Collection>,
    next: u64,
}

/// The log was trimmed past this cursor; its owner must list again.
#[derive(Debug)]
pub(crate) struct Lagged;

/// How many changes one call returns. The bound keeps the time short for which a lagging watcher
/// holds the lock.
const BATCH_MAX: usize = 512;

impl Cursor {
    /// Makes a cursor at the change with the number `next`.
    pub(crate) const fn at(collection: Arc<Collection>, next: u64) -> Self {
        Self { collection, next }
    }

    /// Makes a cursor just after `revision`; fails if the log does not reach back to it.
    pub(crate) fn after(collection: Arc<Collection>, revision: Revision) -> Result<Self, Lagged> {
        let state = collection.state.read();
        if revision < state.floor {
            return Err(Lagged);
        }
        let next = state.first + state.after(revision) as u64;
        drop(state);
        Ok(Self { collection, next })
    }

    /// Waits for the next changes and returns at least one. Cancel safe: the cursor moves only when
    /// changes are returned.
    pub(crate) async fn next(&mut self) -> Result<Vec<Change>, Lagged> {
        loop {
            let collection = self.collection.clone();
            // The waiter registers before it reads the log, so that it misses no change in between.
            let changed = collection.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            let changes = self.take()?;
            if !changes.is_empty() {
                return Ok(changes);
            }
            changed.await;
        }
    }

    /// Returns the next changes, if there are any.
    pub(crate) fn take(&mut self) -> Result<Vec<Change>, Lagged> {
        let state = self.collection.state.read();
        let Some(from) = self.next.checked_sub(state.first) else { return Err(Lagged) };
        let from = (from as usize).min(state.log.len());
        let changes: Vec<_> = state.log.range(from..).take(BATCH_MAX).cloned().collect();
        drop(state);
        self.next += changes.len() as u64;
        Ok(changes)
    }

    /// Whether the cursor has returned every change.
    pub(crate) fn caught_up(&self) -> bool {
        self.next == self.collection.state.read().end()
    }
}
