//! A cursor over a collection's log: all that a watcher is to the cache.

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

/// How many changes one call returns, so that a watcher that catches up holds the lock only briefly.
const BATCH_MAX: usize = 512;

impl Cursor {
    /// At the change numbered `next`.
    pub(crate) const fn at(collection: Arc<Collection>, next: u64) -> Self {
        Self { collection, next }
    }

    /// Just after `revision`; fails where the log no longer reaches back so far.
    pub(crate) fn after(collection: Arc<Collection>, revision: Revision) -> Result<Self, Lagged> {
        let state = collection.state.read();
        if revision < state.floor {
            return Err(Lagged);
        }
        let next = state.first + state.after(revision) as u64;
        drop(state);
        Ok(Self { collection, next })
    }

    /// The next changes, at least one; waits for them. Cancel safe: the cursor moves only when changes
    /// are returned.
    pub(crate) async fn next(&mut self) -> Result<Vec<Change>, Lagged> {
        loop {
            let collection = self.collection.clone();
            // Registered before looking, so that a change in between is not missed.
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

    /// The next changes, if there are any yet.
    pub(crate) fn take(&mut self) -> Result<Vec<Change>, Lagged> {
        let state = self.collection.state.read();
        let Some(from) = self.next.checked_sub(state.first) else { return Err(Lagged) };
        let from = (from as usize).min(state.log.len());
        let changes: Vec<_> = state.log.range(from..).take(BATCH_MAX).cloned().collect();
        drop(state);
        self.next += changes.len() as u64;
        Ok(changes)
    }

    /// Whether the cursor has seen every change there is.
    pub(crate) fn caught_up(&self) -> bool {
        self.next == self.collection.state.read().end()
    }
}
