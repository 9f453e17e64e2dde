//! Trails: the objects of a collection and what becomes of them, as they are kept.
//!
//! Purpose: the server's own work that must know of every change. A trail has no selection and no
//! views, and it never waits: who follows many waits for the [head](Registry::heads) instead, and then
//! looks at those that [changed](Registry::changed_since).
//!
//! Invariant: after a head has been seen, [`Trail::take`] gives everything up to it.

use std::sync::Arc;

use pintle_meta::Status;
use tokio::sync::watch;

use crate::cache::{Cursor, Head};
use crate::{Object, Registry, Resource};

/// A position in a collection's log.
pub struct Trail {
    cursor: Cursor,
}

/// The log has moved past the trail: what happened meanwhile is not known, only what is.
#[derive(Debug)]
pub struct Lost;

impl Registry {
    /// The objects of a resource as they are kept, and a trail of what becomes of them.
    pub fn trail(&self, resource: &Resource) -> Result<(Vec<Arc<Object>>, Trail), Status> {
        let collection = resource.collection()?;
        let snapshot = collection.snapshot(self.cache.visible());
        let objects = snapshot.within("", "").cloned().collect();
        Ok((objects, Trail { cursor: Cursor::at(collection.clone(), snapshot.next) }))
    }

    /// The collections that changed after a head, by name: of many trails, those that have news.
    pub fn changed_since(&self, head: Head) -> Vec<Arc<str>> {
        self.cache.changed_since(head)
    }

    /// How far readers see, and every head after it.
    pub fn heads(&self) -> watch::Receiver<Head> {
        self.cache.heads()
    }
}

impl Trail {
    /// Some of the changes since the last call, in order, as the states that they led to; nothing where
    /// there were none.
    pub fn take(&mut self) -> Result<Vec<Arc<Object>>, Lost> {
        let changes = self.cursor.take().map_err(|_| Lost)?;
        Ok(changes.into_iter().map(|change| change.object).collect())
    }
}
