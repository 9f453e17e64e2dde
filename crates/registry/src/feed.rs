//! A feed: the objects of a resource, and then their changes, for an index or a controller that
//! must see every change.
//!
//! Unlike a watch, a feed has no selection and no other versions, and never waits: its owner calls
//! [`Feed::take`] when the owner needs to be up to date. The owner of many feeds waits for a new
//! [head](Registry::heads), and then takes only the feeds of collections that
//! [changed](Registry::changed_since).
//!
//! Invariant: [`Feed::take`] returns every write that was acknowledged before the call.

use std::sync::Arc;

use pintle_meta::Status;
use tokio::sync::watch;

use crate::cache::{Cache, Cursor, Head, Lagged};
use crate::{Object, Registry, Resource};

/// A position in the log of a resource's collection.
pub struct Feed {
    cache: Arc<Cache>,
    resource: Arc<Resource>,
    /// `None` before the first call of [`Feed::take`].
    cursor: Option<Cursor>,
}

/// The result of [`Feed::take`].
pub enum FeedUpdate {
    /// All objects; they replace everything that was returned before.
    State(Vec<Arc<Object>>),
    /// New states and deletions of objects, in order; [`Object::kind`] tells them apart.
    Changes(Vec<Arc<Object>>),
}

impl Registry {
    /// Returns a feed of a resource's objects.
    pub fn feed(&self, resource: &Arc<Resource>) -> Feed {
        Feed { cache: self.cache.clone(), resource: resource.clone(), cursor: None }
    }

    /// Returns the names of the collections that changed after a head.
    pub fn changed_since(&self, head: Head) -> Vec<Arc<str>> {
        self.cache.changed_since(head)
    }

    /// Returns a receiver of the head: the newest state that reads see. A receiver that is slow
    /// sees only the newest of several heads.
    pub fn heads(&self) -> watch::Receiver<Head> {
        self.cache.heads()
    }
}

impl Feed {
    /// Whether [`Feed::take`] would return no changes.
    pub fn is_current(&self) -> bool {
        self.cursor.as_ref().is_some_and(Cursor::caught_up)
    }

    /// Returns the changes since the last call. The first call returns all objects; so does a call
    /// after the log was trimmed past the feed's position.
    ///
    /// # Errors
    /// If the resource is virtual.
    pub fn take(&mut self) -> Result<FeedUpdate, Status> {
        if let Some(cursor) = &mut self.cursor
            && let Ok(changes) = Self::changes(cursor)
        {
            return Ok(FeedUpdate::Changes(changes));
        }
        let collection = self.resource.collection()?;
        let snapshot = collection.snapshot(self.cache.visible());
        self.cursor = Some(Cursor::at(collection.clone(), snapshot.next));
        Ok(FeedUpdate::State(snapshot.objects.into_iter().collect()))
    }

    fn changes(cursor: &mut Cursor) -> Result<Vec<Arc<Object>>, Lagged> {
        let mut changes = Vec::new();
        while !cursor.caught_up() {
            changes.extend(cursor.take()?.into_iter().map(|change| change.object));
        }
        Ok(changes)
    }
}
