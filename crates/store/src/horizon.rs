//! What can be read now: from the floor to the head; and who is reading.
//!
//! Purpose: readers and compaction out of each other's way. A reader pins the revision it reads at;
//! compaction moves the floor at once, so that nobody new reads below it, but removes nothing that a
//! pinned reader can still need.
//!
//! Must not know: keys, records, the medium.
//!
//! Invariants: floor ≤ head, both only grow, but for a reset.

use std::collections::BTreeMap;

use parking_lot::Mutex;

use crate::{At, Error, Revision};

/// The readable revisions.
#[derive(Debug)]
pub struct Horizon {
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
pub struct Pin<'a> {
    horizon: &'a Horizon,
    /// What is read at.
    pub revision: Revision,
}

impl Horizon {
    /// Everything from the floor to the head is readable, and nobody reads.
    pub const fn new(floor: Revision, head: Revision) -> Self {
        Self { state: Mutex::new(State { head, floor, pins: BTreeMap::new() }) }
    }

    /// The newest readable revision.
    pub fn head(&self) -> Revision {
        self.state.lock().head
    }

    /// The oldest one, as far as is known where others compact, too.
    pub fn floor(&self) -> Revision {
        self.state.lock().floor
    }

    /// Makes revisions up to `head` readable.
    pub fn advance(&self, head: Revision) {
        let mut state = self.state.lock();
        state.head = state.head.max(head);
    }

    /// Begins anew with another history, which may be older.
    pub fn reset(&self, floor: Revision, head: Revision) {
        let mut state = self.state.lock();
        (state.floor, state.head) = (floor, head);
    }

    /// Makes revisions below `floor` unreadable; false if they are already.
    ///
    /// # Errors
    /// If it is beyond the head.
    pub fn raise(&self, floor: Revision) -> Result<bool, Error> {
        let mut state = self.state.lock();
        if floor > state.head {
            return Err(Error::Future { asked: floor, head: state.head });
        }
        let higher = floor > state.floor;
        state.floor = state.floor.max(floor);
        Ok(higher)
    }

    /// The oldest revision that somebody reads or may yet read at.
    pub fn oldest(&self) -> Revision {
        let state = self.state.lock();
        state.pins.keys().next().map_or(state.floor, |&pin| pin.min(state.floor))
    }

    /// The oldest revision that somebody reads at.
    pub fn lowest_pin(&self) -> Option<Revision> {
        self.state.lock().pins.keys().next().copied()
    }

    /// Begins to read at a revision.
    ///
    /// # Errors
    /// If it cannot be read, or cannot be read yet.
    pub fn pin(&self, at: At) -> Result<Pin<'_>, Error> {
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
    pub fn pin_floor(&self) -> Pin<'_> {
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
