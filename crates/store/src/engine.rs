//! The medium under the store: a log of records, keyed by revision.
//!
//! It is the interface between the store's logic and its records' location: memory or disk.
//!
//! It must not know preconditions, followers, or which record of a key is the newest.
//!
//! Invariants:
//! - A [`Batch`] is on the medium wholly or not at all, even after a crash during the commit.
//! - When [`Engine::commit`] returns, the batch survives a crash.
//! - After a failed commit, the medium holds the state before or after that batch. It is reopened
//!   ([`Engine::reopen`]) before the next commit, and its content then survives a crash.

mod block;
mod checkpoint;
mod cipher;
mod conversion;
mod database;
pub(crate) mod directory;
mod disk;
mod entry;
mod inspection;
mod journal;
mod lock;
mod memory;
mod rewrite;
mod tables;

use std::fmt::Debug;

pub(crate) use directory::check as check_directory;
pub(crate) use disk::DiskEngine;
pub(crate) use inspection::ReadOnly;
pub(crate) use lock::share;
pub(crate) use memory::MemoryEngine;
pub(crate) use rewrite::Medium;

use entry::Entry;

pub(crate) use crate::failure::Failure;
use crate::{Record, Revision};

/// The changes of one commit.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    /// New records, in the order of their revisions, all above the existing ones.
    pub(crate) records: Vec<Record>,
    /// The new floor, if it changes.
    pub(crate) floor: Option<Revision>,
    /// Records that no state at or above the floor needs.
    pub(crate) garbage: Vec<Revision>,
}

impl Batch {
    /// Whether the batch has no changes.
    pub(crate) fn is_empty(&self) -> bool {
        self.records.is_empty() && self.floor.is_none() && self.garbage.is_empty()
    }
}

/// The bytes of the records that were written, and of those that were removed from the medium
/// meanwhile: a medium may remove the garbage of a batch later than it commits the batch.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Moved {
    pub(crate) written: u64,
    pub(crate) removed: u64,
}

/// A log of records on some medium.
pub(crate) trait Engine: Send + Sync {
    /// Commits the whole batch durably, or fails.
    fn commit(&self, batch: &Batch) -> Result<Moved, Failure>;

    /// Finishes the work that earlier commits postponed. The committer calls it when the store is
    /// idle.
    fn settle(&self) -> Result<Moved, Failure> {
        Ok(Moved::default())
    }

    /// Returns the record of a revision, if it exists.
    fn read(&self, revision: Revision) -> Result<Option<Record>, Failure>;

    /// Calls the visitor with the records after a revision, in order, until it returns false. The
    /// visitor must be quick, because writers may wait for it.
    fn scan(&self, after: Revision, visitor: &mut Visitor<'_>) -> Result<(), Failure>;

    /// Like [`Self::scan`], but the values are in the form in which the medium stores them: nothing
    /// is decrypted.
    fn scan_stored(&self, after: Revision, visitor: &mut Visitor<'_>) -> Result<(), Failure>;

    /// Returns the floor that was committed last.
    fn floor(&self) -> Result<Revision, Failure>;

    /// Frees space if the medium holds far more than the bytes of its records. It may take as long
    /// as rewriting them; reads and commits wait meanwhile.
    fn trim(&self, record_bytes: u64) -> Result<(), Failure>;

    /// Returns the size on disk in bytes, if the medium is on disk.
    fn disk_bytes(&self) -> Option<u64> {
        None
    }

    /// Rewrites all records in the form of the current configuration, without leaving bytes in an
    /// old form. It is called after all records were read and before the first commit.
    fn convert(&self) -> Result<(), Failure> {
        Ok(())
    }

    /// Whether the record of a revision is stored in the current form.
    fn is_current(&self, revision: Revision) -> Result<bool, Failure> {
        let _ = revision;
        Ok(true)
    }

    /// Reopens the medium after a failure; fails early if it has no room.
    fn reopen(&self) -> Result<(), Failure>;

    /// Closes the medium, so that another process may use it. Reads may fail from now on.
    fn close(&self) {}
}

/// The storage location of a database, used by one process.
pub(crate) trait Location: Debug + Send + Sync {
    /// Whether there is no database yet.
    fn is_new(&self) -> bool;

    /// Returns the medium of the database.
    fn storage(&self) -> Result<Box<dyn Medium>, Failure>;

    /// Returns the medium of the journal.
    fn journal(&self) -> Result<Box<dyn Medium>, Failure>;

    /// Marks the new database as complete: after a crash before this call there is no store.
    fn mark_complete(&self) -> Result<(), Failure>;

    /// Returns an empty medium for a replacement of the database.
    fn replacement(&self) -> Result<Box<dyn Medium>, Failure>;

    /// Replaces the database by the replacement, which is complete and on disk. A crash leaves one
    /// of them.
    fn replace(&self) -> Result<(), Failure>;

    /// Changes the format, durably, to that of a database whose values may be encrypted.
    fn mark_encrypted(&self) -> Result<(), Failure>;

    /// Removes the replacement that a crash left, if there is one.
    fn discard_replacement(&self) -> Result<(), Failure>;

    /// Marks the database as open. Returns true if its files need not be made durable: its last
    /// user [closed](Self::mark_clean) it cleanly, or writes are not synchronised.
    fn mark_open(&self) -> Result<bool, Failure>;

    /// Marks the database as closed, with everything known to be on disk.
    fn mark_clean(&self);

    /// Lets another process use the location. This process must not use it any more.
    fn release(&self);

    /// Returns an error if the disk is full.
    fn check_room(&self) -> Result<(), Failure>;

    /// Returns the length of the database and the journal in bytes.
    fn size(&self) -> Result<u64, Failure>;
}

/// Receives records; returns whether it wants more.
pub(crate) type Visitor<'a> = dyn FnMut(Record) -> Result<bool, Failure> + 'a;

/// Receives encoded records; returns whether it wants more.
type RowVisitor<'a> = dyn FnMut(Revision, &[u8]) -> Result<bool, Failure> + 'a;
