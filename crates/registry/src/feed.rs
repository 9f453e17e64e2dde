//! A feed: all that an index over a resource's objects needs to follow them.
//!
//! Unlike a watch it is asked, and does not wait: who holds an index asks it before each use, so that
//! the index shows every write that was acknowledged before.

use std::sync::Arc;

use pintle_meta::Status;

use crate::cache::{Cache, Cursor, Lagged};
use crate::{Object, Resource};

/// A position in a resource's history.
pub struct Feed {
    cache: Arc<Cache>,
    resource: Arc<Resource>,
    /// `None` before the first look.
    cursor: Option<Cursor>,
}

/// What is new.
pub enum News {
    /// Forget what you know: these are the objects.
    State(Vec<Arc<Object>>),
    /// What became of some objects, in order; [`Object::kind`] says what.
    Changes(Vec<Arc<Object>>),
}

impl Feed {
    pub(crate) const fn new(cache: Arc<Cache>, resource: Arc<Resource>) -> Self {
        Self { cache, resource, cursor: None }
    }

    /// Whether there is nothing new.
    pub fn is_current(&self) -> bool {
        self.cursor.as_ref().is_some_and(Cursor::caught_up)
    }

    /// What is new since the last call: at first, and when the history is no longer known, everything.
    ///
    /// # Errors
    /// If the resource is virtual.
    pub fn take(&mut self) -> Result<News, Status> {
        if let Some(cursor) = &mut self.cursor
            && let Ok(changes) = Self::changes(cursor)
        {
            return Ok(News::Changes(changes));
        }
        let collection = self.resource.collection()?;
        let snapshot = collection.snapshot(self.cache.visible());
        self.cursor = Some(Cursor::at(collection.clone(), snapshot.next));
        Ok(News::State(snapshot.within("", "").cloned().collect()))
    }

    fn changes(cursor: &mut Cursor) -> Result<Vec<Arc<Object>>, Lagged> {
        let mut changes = Vec::new();
        while !cursor.caught_up() {
            changes.extend(cursor.take()?.into_iter().map(|change| change.object));
        }
        Ok(changes)
    }
}
