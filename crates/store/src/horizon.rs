//! The horizon: the readable revisions, from the floor to the head, and their readers.
//!
//! It keeps readers and compaction apart. A reader pins the revision that it reads at. Compaction
//! raises the floor at once, so that no new reader starts below it, but removes nothing that a
//! pinned reader can see.
//!
//! It must not know keys, records, or the medium.
//!
//! Invariants: floor ≤ head, and both only grow, except by a reset.

use std::collections::BTreeMap;
use std::sync::Arc;

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
    /// The number of readers at each revision.
    pins: BTreeMap<Revision, usize>,
}

/// A reader at a revision: everything visible at that revision stays until this is dropped.
#[derive(Debug)]
pub struct Pin<'a> {
    horizon: &'a Horizon,
    /// The pinned revision.
    pub revision: Revision,
}

/// A [`Pin`] that shares the horizon instead of borrowing it.
#[derive(Debug)]
pub struct LastingPin {
    horizon: Arc<Horizon>,
    /// The pinned revision.
    pub revision: Revision,
}

impl Horizon {
    /// Makes a horizon from a floor to a head, without readers.
    pub const fn new(floor: Revision, head: Revision) -> Self {
        Self { state: Mutex::new(State { head, floor, pins: BTreeMap::new() }) }
    }

    /// Returns the newest readable revision.
    pub fn head(&self) -> Revision {
        self.state.lock().head
    }

    /// Returns the oldest readable revision. If other processes compact the database, too, the
    /// actual one may be newer.
    pub fn floor(&self) -> Revision {
        self.state.lock().floor
    }

    /// Makes revisions up to `head` readable.
    pub fn advance(&self, head: Revision) {
        let mut state = self.state.lock();
        state.head = state.head.max(head);
    }

    /// Starts over with another history, which may be older. A floor beyond the head becomes the
    /// head: the database may have changed between the reads of the two.
    pub fn reset(&self, floor: Revision, head: Revision) {
        let mut state = self.state.lock();
        (state.floor, state.head) = (floor.min(head), head);
    }

    /// Makes revisions below `floor` unreadable; returns false if they are already.
    ///
    /// # Errors
    /// If the floor is beyond the head.
    pub fn raise_floor(&self, floor: Revision) -> Result<bool, Error> {
        let mut state = self.state.lock();
        if floor > state.head {
            return Err(Error::Future { requested: floor, head: state.head });
        }
        let higher = floor > state.floor;
        state.floor = state.floor.max(floor);
        Ok(higher)
    }

    /// Returns the oldest revision that a reader has pinned or can pin.
    pub fn oldest(&self) -> Revision {
        let state = self.state.lock();
        state.pins.keys().next().map_or(state.floor, |&pin| pin.min(state.floor))
    }

    /// Returns the oldest pinned revision.
    pub fn lowest_pin(&self) -> Option<Revision> {
        self.state.lock().pins.keys().next().copied()
    }

    /// Pins a revision for a reader.
    ///
    /// # Errors
    /// If the revision is compacted or does not exist yet.
    pub fn pin(&self, at: At) -> Result<Pin<'_>, Error> {
        let mut state = self.state.lock();
        let State { head, floor, .. } = *state;
        let revision = match at {
            At::Head => head,
            At::Revision(requested) if requested < floor => {
                return Err(Error::Compacted { requested, floor });
            }
            At::Revision(requested) if requested > head => {
                return Err(Error::Future { requested, head });
            }
            At::Revision(requested) => requested,
        };
        Ok(self.add_pin(&mut state, revision))
    }

    /// Pins the floor for a reader.
    pub fn pin_floor(&self) -> Pin<'_> {
        let mut state = self.state.lock();
        let floor = state.floor;
        self.add_pin(&mut state, floor)
    }

    /// Pins the head for a reader that outlives the caller's borrow.
    pub fn pin_head(self: &Arc<Self>) -> LastingPin {
        let mut state = self.state.lock();
        let revision = state.head;
        *state.pins.entry(revision).or_insert(0) += 1;
        LastingPin { horizon: self.clone(), revision }
    }

    fn add_pin(&self, state: &mut State, revision: Revision) -> Pin<'_> {
        *state.pins.entry(revision).or_insert(0) += 1;
        Pin { horizon: self, revision }
    }

    fn remove_pin(&self, revision: Revision) {
        let mut state = self.state.lock();
        if let Some(count) = state.pins.get_mut(&revision) {
            *count -= 1;
            if *count == 0 {
                state.pins.remove(&revision);
            }
        }
    }
}

impl Drop for Pin<'_> {
    fn drop(&mut self) {
        self.horizon.remove_pin(self.revision);
    }
}

impl Drop for LastingPin {
    fn drop(&mut self) {
        self.horizon.remove_pin(self.revision);
    }
}
