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
//! - After a commit that failed, the medium holds a state from before or after that batch. It is opened
//!   again ([`Engine::reopen`]) before it is asked to commit again, and what it holds then survives a
//!   crash.

mod cipher;
mod conversion;
mod directory;
mod disk;
mod memory;
mod rewrite;

use std::fmt::Debug;

pub(crate) use disk::DiskEngine;
pub(crate) use memory::MemoryEngine;
pub(crate) use rewrite::Medium;

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

/// What a batch did to the medium, in bytes of records as they are stored.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Moved {
    pub(crate) written: u64,
    pub(crate) removed: u64,
}

/// A log of records on some medium.
pub(crate) trait Engine: Send + Sync {
    /// Does all of the batch, durably, or fails. Returns the bytes of the records that it wrote and removed.
    fn commit(&self, batch: &Batch) -> Result<Moved, Failure>;

    /// The record of a revision, if there is one.
    fn read(&self, revision: Revision) -> Result<Option<Record>, Failure>;

    /// Shows the records after a revision, in order, for as long as the visitor says true. It must be
    /// quick, for writers may have to wait for it.
    fn scan(&self, after: Revision, visitor: &mut Visitor<'_>) -> Result<(), Failure>;

    /// The floor that was committed last.
    fn floor(&self) -> Result<Revision, Failure>;

    /// Gives back what the medium holds far beyond the bytes of its records. It may take as long as to
    /// write these again, in which nothing is read or committed.
    fn trim(&self, record_bytes: u64) -> Result<(), Failure>;

    /// How many bytes the medium takes on the disk, where it is on one.
    fn disk_bytes(&self) -> Option<u64> {
        None
    }

    /// Stores all records as they would be stored now, and leaves nothing of how they were stored before. To
    /// be asked when all of them have been read, and before anything is committed.
    fn convert(&self) -> Result<(), Failure> {
        Ok(())
    }

    /// Whether the record of a revision is stored as it would be stored now.
    fn is_current(&self, revision: Revision) -> Result<bool, Failure> {
        let _ = revision;
        Ok(true)
    }

    /// Opens the medium again after it failed: it is asked first whether it has room.
    fn reopen(&self) -> Result<(), Failure>;
}

/// The storage location of a database, used by one process.
pub(crate) trait Location: Debug + Send + Sync {
    /// Whether there is no database yet.
    fn is_new(&self) -> bool;

    /// The medium of the database.
    fn storage(&self) -> Result<Box<dyn Medium>, Failure>;

    /// Marks the new database as complete: after a crash before this call there is no store.
    fn mark_complete(&self) -> Result<(), Failure>;

    /// An empty medium for the database that will replace this one.
    fn replacement(&self) -> Result<Box<dyn Medium>, Failure>;

    /// Replaces the database by the replacement, which is complete and on disk. A crash leaves one or the other.
    fn replace(&self) -> Result<(), Failure>;

    /// Removes a replacement that a crash left.
    fn discard_replacement(&self) -> Result<(), Failure>;

    /// Takes the database into use; returns whether its last user [left](Self::leave) it.
    fn enter(&self) -> Result<bool, Failure>;

    /// Says that the database is closed and all of it known to be on disk.
    fn leave(&self);

    /// Whether anything more can be written.
    fn check_room(&self) -> Result<(), Failure>;

    /// How long the storage is, in bytes.
    fn size(&self) -> Result<u64, Failure>;
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
