//! What can be read now: from the floor to the head; and who is reading.
//!
//! Purpose: readers and compaction out of each other's way. A reader pins the revision it reads at;
//! compaction moves the floor at once, so that nobody new reads below it, but removes nothing that a
//! pinned reader can still need.
//!
//! Must not know: keys, records, the medium.
//!
//! Invariants: floor ≤ head, both only grow.

use std::collections::BTreeMap;

use parking_lot::Mutex;

use crate::{At, Error, Revision};

/// The readable revisions.
#[derive(Debug)]
pub(crate) struct Horizon {
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    head: Revision,
    floor: Revision,
    /// How many readers read at a revision.
    pins: BTreeMap<Revision, usize>,
}

/// A reader at a revision: while it lives, what can be seen at that revision stays.
#[derive(Debug)]
pub(crate) struct Pin<'a> {
    horizon: &'a Horizon,
    pub(crate) revision: Revision,
}

impl Horizon {
    pub(crate) fn new(floor: Revision, head: Revision) -> Self {
        Self { state: Mutex::new(State { head, floor, pins: BTreeMap::new() }) }
    }

    pub(crate) fn head(&self) -> Revision {
        self.state.lock().head
    }

    pub(crate) fn floor(&self) -> Revision {
        self.state.lock().floor
    }

    /// Makes revisions up to `head` readable.
    pub(crate) fn advance(&self, head: Revision) {
        let mut state = self.state.lock();
        state.head = state.head.max(head);
    }

    /// Makes revisions below `floor` unreadable; false if they are already.
    pub(crate) fn raise(&self, floor: Revision) -> Result<bool, Error> {
        let mut state = self.state.lock();
        if floor > state.head {
            return Err(Error::Future { asked: floor, head: state.head });
        }
        let higher = floor > state.floor;
        state.floor = state.floor.max(floor);
        Ok(higher)
    }

    /// The oldest revision that somebody reads or may yet read at.
    pub(crate) fn oldest(&self) -> Revision {
        let state = self.state.lock();
        state.pins.keys().next().map_or(state.floor, |&pin| pin.min(state.floor))
    }

    /// Begins to read at a revision.
    pub(crate) fn pin(&self, at: At) -> Result<Pin<'_>, Error> {
        let mut state = self.state.lock();
        let State { head, floor, .. } = *state;
        let revision = match at {
            At::Head => head,
            At::Revision(asked) if asked < floor => return Err(Error::Compacted { asked, floor }),
            At::Revision(asked) if asked > head => return Err(Error::Future { asked, head }),
            At::Revision(asked) => asked,
        };
        Ok(self.add_pin(&mut state, revision))
    }

    /// Begins to read at the floor, whatever that is.
    pub(crate) fn pin_floor(&self) -> Pin<'_> {
        let mut state = self.state.lock();
        let floor = state.floor;
        self.add_pin(&mut state, floor)
    }

    fn add_pin(&self, state: &mut State, revision: Revision) -> Pin<'_> {
        *state.pins.entry(revision).or_insert(0) += 1;
        Pin { horizon: self, revision }
    }
}

impl Drop for Pin<'_> {
    fn drop(&mut self) {
        let mut state = self.horizon.state.lock();
        if let Some(count) = state.pins.get_mut(&self.revision) {
            *count -= 1;
            if *count == 0 {
                state.pins.remove(&self.revision);
            }
        }
    }
}
