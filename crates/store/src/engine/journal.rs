//! The journal: the file of the commits that are durable, but maybe not in the database yet (a
//! write-ahead log; `docs/decisions/0014-journal.md` has its format).
//!
//! A commit is one write at the end of the journal and one synchronisation, where a transaction of
//! the database writes pages all over its file. Entries are written one after the other; when the
//! database has all of them, the next entry is written at the beginning of the file again. The file
//! keeps its length meanwhile, because overwriting costs less than growing.
//!
//! It must not know what the database is.
//!
//! Invariants:
//! - Entries are numbered without gaps, over all passes through the file. So an old entry is never
//!   taken for a new one.
//! - An entry is written only after the one before it is on disk. So only the last entry can be
//!   torn, and anything else that cannot be read is damage: the store then refuses to open.

mod sectors;

use std::fmt::Debug;

use super::rewrite::{Medium, rewrite};
use super::{Entry, Failure};
use sectors::Sectors;

/// The longest journal, and the steps in which the file grows, in bytes.
const LENGTH_MAX: u64 = 4 << 20;
const GROWTH: u64 = 256 << 10;

/// The longest entry, in bytes of its contents. Committing a longer one to the database directly
/// costs no more time, and writes its bytes once instead of twice.
pub(super) const ENTRY_BYTES_MAX: usize = 256 << 10;

/// An open journal.
#[derive(Debug)]
pub(super) struct Journal {
    medium: Box<dyn Medium>,
    /// The length of the file. All of its sectors were written: with entries or with zeros.
    length: u64,
    /// The position of the next entry.
    end: u64,
    /// The number of the last entry.
    last: u64,
    has_failed: bool,
}

/// The contents of a journal when it was opened.
pub(super) struct Found {
    /// The entries that the database does not have, in order. An empty one stands for an entry
    /// that is torn, so that its number is not used again.
    pub(super) entries: Vec<Entry>,
    /// The number of the last of these entries; without any, of the last one that the database has.
    pub(super) last: u64,
}

impl Journal {
    /// Opens the journal beside a database that has all entries up to the number `applied`. Unless
    /// everything is known to be on disk, its contents are made durable before they are read. No
    /// entry has room until [`Self::restart`] or [`Self::clear`].
    pub(super) fn open(
        medium: Box<dyn Medium>,
        is_on_disk: bool,
        applied: u64,
    ) -> Result<(Self, Found), Failure> {
        let length = medium.len().map_err(failure)?;
        if length > LENGTH_MAX {
            return Err(failure(format!(
                "it has {length} bytes, and this version writes at most {LENGTH_MAX}"
            )));
        }
        if !is_on_disk {
            rewrite(&*medium).map_err(failure)?;
        }
        let mut bytes = vec![0; length as usize];
        medium.read(0, &mut bytes).map_err(failure)?;
        let found = sectors::read(&bytes, applied)?;
        let last = found.last;
        // The end is not known, because a torn entry may follow the last whole one: the journal
        // counts as full.
        Ok((Self { medium, length, end: LENGTH_MAX, last, has_failed: false }, found))
    }

    /// Removes everything from the file, durably. The database must have all entries.
    pub(super) fn clear(&mut self) -> Result<(), Failure> {
        if self.length > 0 {
            self.medium.set_len(0).and_then(|()| self.medium.sync_data()).map_err(failure)?;
        }
        (self.length, self.end) = (0, 0);
        Ok(())
    }

    /// Begins the next pass. The database must have all entries.
    pub(super) fn restart(&mut self) {
        self.end = 0;
    }

    /// Returns the number of the last entry.
    pub(super) const fn last(&self) -> u64 {
        self.last
    }

    /// Whether an entry fits behind the last one.
    pub(super) fn has_room(&self, entry: &Entry) -> bool {
        self.end + sectors::length(entry) <= LENGTH_MAX
    }

    /// Writes the next entry and synchronises it. After a failure the journal takes no more
    /// entries: it must be opened again.
    pub(super) fn append(&mut self, entry: &Entry) -> Result<(), Failure> {
        if self.has_failed {
            return Err(Failure("its journal has failed before".to_owned()));
        }
        let sectors = Sectors::of(self.last + 1, entry)?;
        let written = self.write(&sectors.bytes);
        self.has_failed = written.is_err();
        written?;
        self.end += sectors.bytes.len() as u64;
        self.last += 1;
        Ok(())
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        let end = self.end + bytes.len() as u64;
        if end > self.length {
            let length = end.next_multiple_of(GROWTH);
            let zeros = vec![0; (length - self.length) as usize];
            self.medium.write(self.length, &zeros).map_err(failure)?;
            self.length = length;
        }
        self.medium.write(self.end, bytes).map_err(failure)?;
        self.medium.sync_data().map_err(failure)
    }

    /// Whether all writes succeeded.
    pub(super) const fn is_synced(&self) -> bool {
        !self.has_failed
    }
}

fn failure(error: impl std::fmt::Display) -> Failure {
    Failure(format!("its journal: {error}"))
}

#[cfg(test)]
mod tests;
