//! Watches: cursors over a collection's log.

use pintle_store::Revision;

use crate::answer::Event;

/// A running watch. Dropping it costs nobody anything.
pub struct Watch {}

impl Watch {
    /// The next events, at least one, in order; waits until there are some. After an
    /// [`Event::Error`] nothing follows. Cancel safe.
    pub async fn next(&mut self) -> Vec<Event> {
        todo!()
    }

    /// A bookmark for what has been told so far, where the client wants bookmarks: the handler calls
    /// this by its own clock, about once a minute.
    pub fn bookmark(&self) -> Option<Revision> {
        todo!()
    }
}
