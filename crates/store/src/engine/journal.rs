//! The journal: the file of the commits that are durable, but maybe not in the database yet (a
//! write-ahead log; `docs/decisions/0014-journal.md` has its format).
//!
//! A commit is one write behind the last entry and one synchronisation, where a transaction of
//! the database writes pages all over its file. The file is a ring: entries are written one after
//! the other, and behind the last one that fits, the next entry is written at the beginning again,
//! over entries that the database has. The file keeps its length meanwhile, because overwriting
//! costs less than growing.
//!
//! It must not know what the database is.
//!
//! Invariants:
//! - Entries are numbered without gaps, over all passes through the file. So an old entry is never
//!   taken for a new one.
//! - An entry is overwritten only after the database has it durably ([`Journal::release`]).
//! - An entry is written only after the one before it is on disk. So only the last entry can be
//!   torn, and anything else that cannot be read is damage: the store then refuses to open.

mod sectors;

use std::collections::VecDeque;
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
    /// The position behind the last entry.
    end: u64,
    /// The number of the last entry.
    last: u64,
    /// The entries that must not be overwritten, in order: their numbers and positions. After the
    /// journal was opened, one stands for all that were found.
    retained: VecDeque<(u64, u64)>,
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
    /// entry has room until all that were found are [released](Self::release).
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
        // Where the entries are does not matter: nothing has room until the last one is released.
        let (end, retained) = (LENGTH_MAX, VecDeque::from([(last, 0)]));
        Ok((Self { medium, length, end, last, retained, has_failed: false }, found))
    }

    /// Removes everything from the file, durably. The database must have all entries.
    pub(super) fn clear(&mut self) -> Result<(), Failure> {
        if self.length > 0 {
            self.medium.set_len(0).and_then(|()| self.medium.sync_data()).map_err(failure)?;
        }
        self.length = 0;
        self.release(self.last);
        Ok(())
    }

    /// Allows entries up to a number to be overwritten: the database has them durably.
    pub(super) fn release(&mut self, applied: u64) {
        while self.retained.pop_front_if(|(number, _)| *number <= applied).is_some() {}
        if self.retained.is_empty() {
            self.end = 0;
        }
    }

    /// Returns the number of the last entry.
    pub(super) const fn last(&self) -> u64 {
        self.last
    }

    /// Whether the next entry fits.
    pub(super) fn has_room(&self, entry: &Entry) -> bool {
        self.room(sectors::length(entry)).is_some()
    }

    /// Returns the position for the next entry, if its length fits: behind the last one, or at the
    /// beginning.
    fn room(&self, length: u64) -> Option<u64> {
        let first = self.retained.front().map(|(_, position)| *position);
        match first {
            // The entries wrap: the free space is between the last and the first.
            Some(first) if self.end <= first => (self.end + length <= first).then_some(self.end),
            _ if self.end + length <= LENGTH_MAX => Some(self.end),
            Some(first) => (length <= first).then_some(0),
            None => None,
        }
    }

    /// Writes the next entry and synchronises it. After a failure the journal takes no more
    /// entries: it must be opened again.
    pub(super) fn append(&mut self, entry: &Entry) -> Result<(), Failure> {
        if self.has_failed {
            return Err(Failure("its journal has failed before".to_owned()));
        }
        let Sectors { bytes } = Sectors::of(self.last + 1, entry)?;
        let position = self.room(bytes.len() as u64).ok_or_else(|| failure("it is full"))?;
        let written = self.write(position, &bytes);
        self.has_failed = written.is_err();
        written?;
        self.last += 1;
        self.retained.push_back((self.last, position));
        self.end = position + bytes.len() as u64;
        Ok(())
    }

    fn write(&mut self, position: u64, bytes: &[u8]) -> Result<(), Failure> {
        let end = position + bytes.len() as u64;
        if end > self.length {
            let length = end.next_multiple_of(GROWTH);
            let zeros = vec![0; (length - self.length) as usize];
            self.medium.write(self.length, &zeros).map_err(failure)?;
            self.length = length;
        }
        self.medium.write(position, bytes).map_err(failure)?;
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
