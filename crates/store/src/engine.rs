//! The medium under the store: a log of records, keyed by revision.
//!
//! Purpose: the one seam between the store's logic and where its records lie. Two media stand behind
//! it, memory and disk.
//!
//! Must not know: expectations, followers, which record of a key is the newest.
//!
//! Invariants:
//! - A [`Batch`] is on the medium wholly or not at all, also after a crash in the middle of it.
//! - When [`Engine::commit`] has returned, the batch survives a crash.
//! - After a commit that failed, the medium holds a state from before or after that batch; the store
//!   never asks it to commit again.

mod directory;
mod disk;
mod memory;

pub(crate) use disk::DiskEngine;
pub(crate) use memory::MemoryEngine;

use crate::{Error, Record, Revision};

/// What is done to the medium at once.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    /// New records, in the order of their revisions, all above what is there.
    pub(crate) records: Vec<Record>,
    /// The new floor, when it moves.
    pub(crate) floor: Option<Revision>,
    /// Records that nothing at or above the floor needs.
    pub(crate) garbage: Vec<Revision>,
}

impl Batch {
    /// Whether there is nothing to do.
    pub(crate) fn is_empty(&self) -> bool {
        self.records.is_empty() && self.floor.is_none() && self.garbage.is_empty()
    }
}

/// A log of records on some medium.
pub(crate) trait Engine: Send + Sync {
    /// Does all of the batch, durably, or fails.
    fn commit(&self, batch: &Batch) -> Result<(), Failure>;

    /// The record of a revision, if there is one.
    fn read(&self, revision: Revision) -> Result<Option<Record>, Failure>;

    /// Shows the records after a revision, in order, for as long as the visitor says true. It must be
    /// quick, for writers may have to wait for it.
    fn scan(&self, after: Revision, visitor: &mut Visitor<'_>) -> Result<(), Failure>;

    /// The floor that was committed last.
    fn floor(&self) -> Result<Revision, Failure>;

    /// Gives back what the medium holds far beyond the bytes of its records. It may take as long as to
    /// write these again, so it is for the time when a store is opened.
    fn trim(&mut self, record_bytes: u64) -> Result<(), Failure>;
}

/// Is given records, and says whether it wants more.
pub(crate) type Visitor<'a> = dyn FnMut(Record) -> Result<bool, Failure> + 'a;

/// What the medium says when it fails.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Failure(pub(crate) String);

impl From<Failure> for Error {
    fn from(Failure(reason): Failure) -> Self {
        Self::Failed { reason }
    }
}
