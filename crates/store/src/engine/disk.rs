//! The medium on disk: a database, and a journal before it (`docs/decisions/0014-journal.md`).
//!
//! A commit is durable when the journal has it. Checkpoints apply the journal's entries to the
//! database, many at a time. Reads look first at the entries that are not applied yet.
//!
//! Invariants:
//! - An entry is overwritten only after the database has it durably.
//! - Opening the log applies no entry to the database, so a full disk does not prevent it.

use std::path::Path;
use std::sync::Arc;
use std::thread::JoinHandle;

use parking_lot::Mutex;

use super::checkpoint::{Portion, Unapplied};
use super::cipher::Cipher;
use super::database::LogDatabase;
use super::directory::Directory;
use super::journal::{ENTRY_BYTES_MAX, Found, Journal};
use super::tables::Packing;
use super::{Batch, Engine, Entry, Failure, Location, Moved, RowVisitor, Visitor};
use crate::threads::spawn;
use crate::{Durability, Error, Record, Revision, Transformer, encoding};

/// A log on disk.
#[derive(Debug)]
pub(crate) struct DiskEngine {
    location: Box<dyn Location>,
    cipher: Cipher,
    journal: Mutex<Journal>,
    stored: Arc<Stored>,
    /// The thread that applies entries; `None` once the engine is closed.
    checkpoints: Mutex<Option<JoinHandle<()>>>,
}

/// The records: those in the database, and those that are only in the journal yet.
#[derive(Debug)]
struct Stored {
    database: LogDatabase,
    unapplied: Unapplied,
}

impl DiskEngine {
    /// Opens the log in a directory, or creates one.
    pub(crate) fn open(
        path: &Path,
        durability: Durability,
        transformer: Option<Arc<dyn Transformer>>,
    ) -> Result<Self, Error> {
        Ok(Self::at(Directory::claim(path, durability)?, transformer)?)
    }

    /// Opens the log at a location, or creates one.
    pub(crate) fn at(
        location: impl Location + 'static,
        transformer: Option<Arc<dyn Transformer>>,
    ) -> Result<Self, Failure> {
        let is_on_disk = location.mark_open()?;
        let database = LogDatabase::open(&location, is_on_disk)?;
        let (journal, found) = recover(&location, &database, is_on_disk)?;
        let stored = Arc::new(Stored { database, unapplied: Unapplied::of(found) });
        let thread = {
            let stored = stored.clone();
            spawn("store-checkpoint", move || stored.unapplied.run(|portion| stored.apply(portion)))
        };
        Ok(Self {
            location: Box::new(location),
            cipher: Cipher::new(transformer),
            journal: Mutex::new(journal),
            stored,
            checkpoints: Mutex::new(Some(thread.map_err(|error| Failure(error.to_string()))?)),
        })
    }

    /// Commits a batch to the database, after all earlier batches. Its revisions may be in any
    /// order, and even below those of earlier batches.
    pub(crate) fn commit_directly(&self, batch: &Batch) -> Result<Moved, Failure> {
        self.apply(Entry::of(batch, &self.cipher)?, Packing::Rows)
    }

    fn apply(&self, entry: Entry, packing: Packing) -> Result<Moved, Failure> {
        let Stored { database, unapplied } = &*self.stored;
        unapplied.settle()?;
        let written = entry.row_bytes();
        let removed = database.commit(&[entry], None, packing)?;
        Ok(Moved { written, removed: removed + unapplied.take_removed() })
    }

    /// Compacts the database's file as far as possible.
    #[cfg(test)]
    pub(crate) fn shrink(&self) -> Result<(), Failure> {
        self.stored.unapplied.settle()?;
        self.stored.database.shrink()
    }

    /// Names the format of a store whose values may be encrypted.
    pub(crate) fn mark_encrypted(&self) -> Result<(), Failure> {
        self.location.mark_encrypted()
    }

    /// Calls the visitor with the encoded records after a revision, in order, until it returns
    /// false.
    fn scan_rows(&self, after: Revision, visitor: &mut RowVisitor<'_>) -> Result<(), Failure> {
        let Stored { database, unapplied } = &*self.stored;
        // The entries are read before the database: a record that is applied in between is then
        // found at least once.
        let (rows, garbage) = unapplied.changes(after);
        let mut last = after;
        let has_ended = database.scan(after, &mut |revision, bytes| {
            last = revision;
            Ok(garbage.contains(&revision) || visitor(revision, bytes)?)
        })?;
        let rows = rows.iter().filter(|(revision, _)| *revision > last && !has_ended);
        for (revision, bytes) in rows.filter(|(revision, _)| !garbage.contains(revision)) {
            if !visitor(*revision, bytes)? {
                break;
            }
        }
        Ok(())
    }

    /// Returns a record; true if it is not in the current form.
    fn look_up(&self, revision: Revision) -> Result<Option<(Record, bool)>, Failure> {
        let Stored { database, unapplied } = &*self.stored;
        if unapplied.removes(revision) {
            return Ok(None);
        }
        if let Some(bytes) = unapplied.read(revision) {
            return self.cipher.decode(revision, &bytes).map(Some);
        }
        let bytes = database.read(revision)?;
        bytes.map(|bytes| self.cipher.decode(revision, &bytes)).transpose()
    }
}

/// Opens the journal; returns it with the entries that the database does not have.
fn recover(
    location: &dyn Location,
    database: &LogDatabase,
    is_on_disk: bool,
) -> Result<(Journal, Found), Failure> {
    Journal::open(location.journal()?, is_on_disk, database.applied()?)
}

impl Stored {
    fn apply(&self, Portion { entries, last }: &Portion) -> Result<u64, Failure> {
        self.database.commit(entries, Some(*last), Packing::Blocks)
    }
}

impl Engine for DiskEngine {
    fn disk_bytes(&self) -> Option<u64> {
        self.location.size().ok()
    }

    fn commit(&self, batch: &Batch) -> Result<Moved, Failure> {
        let Stored { unapplied, .. } = &*self.stored;
        let entry = Entry::of(batch, &self.cipher)?;
        // A long entry is not written twice. Nobody waits for a batch that only removes records.
        if entry.size() > ENTRY_BYTES_MAX || entry.rows.is_empty() {
            return self.apply(entry, Packing::Blocks);
        }
        unapplied.check()?;
        let mut journal = self.journal.lock();
        journal.release(unapplied.applied());
        while !journal.has_room(&entry) && unapplied.advance()? {
            journal.release(unapplied.applied());
        }
        journal.append(&entry)?;
        let written = entry.row_bytes();
        unapplied.push(journal.last(), entry);
        Ok(Moved { written, removed: unapplied.take_removed() })
    }

    fn settle(&self) -> Result<Moved, Failure> {
        self.stored.unapplied.settle()?;
        Ok(Moved { written: 0, removed: self.stored.unapplied.take_removed() })
    }

    fn read(&self, revision: Revision) -> Result<Option<Record>, Failure> {
        Ok(self.look_up(revision)?.map(|(record, _)| record))
    }

    fn scan(&self, after: Revision, visitor: &mut Visitor<'_>) -> Result<(), Failure> {
        self.scan_rows(after, &mut |revision, bytes| {
            let (record, _) = self.cipher.decode(revision, bytes)?;
            visitor(record)
        })
    }

    fn scan_stored(&self, after: Revision, visitor: &mut Visitor<'_>) -> Result<(), Failure> {
        self.scan_rows(after, &mut |revision, bytes| visitor(encoding::decode(revision, bytes)?))
    }

    fn floor(&self) -> Result<Revision, Failure> {
        let Stored { database, unapplied } = &*self.stored;
        unapplied.floor().map_or_else(|| database.floor(), Ok)
    }

    fn convert(&self) -> Result<(), Failure> {
        let Stored { database, unapplied } = &*self.stored;
        if !database.needs_conversion(&self.cipher) {
            return self.location.discard_replacement();
        }
        unapplied.settle()?;
        self.journal.lock().clear()?;
        database.convert(&*self.location, &self.cipher)
    }

    fn is_current(&self, revision: Revision) -> Result<bool, Failure> {
        if !self.cipher.is_on() {
            return Ok(true);
        }
        Ok(self.look_up(revision)?.is_none_or(|(_, is_stale)| !is_stale))
    }

    fn trim(&self, record_bytes: u64) -> Result<(), Failure> {
        let Stored { database, unapplied } = &*self.stored;
        if LogDatabase::needs_shrinking(self.location.size()?, record_bytes) {
            unapplied.settle()?;
            database.shrink()?;
        }
        Ok(())
    }

    fn reopen(&self) -> Result<(), Failure> {
        let Stored { database, unapplied } = &*self.stored;
        self.location.check_room()?;
        unapplied.pause()?;
        let mut journal = self.journal.lock();
        database.reopen(&*self.location)?;
        let (opened, found) = recover(&*self.location, database, false)?;
        *journal = opened;
        unapplied.resume(found);
        Ok(())
    }

    fn close(&self) {
        let Some(thread) = self.checkpoints.lock().take() else { return };
        let Stored { database, unapplied } = &*self.stored;
        let is_settled = unapplied.settle().is_ok();
        unapplied.close();
        let has_ended = thread.join().is_ok();
        let mut journal = self.journal.lock();
        let is_synced = is_settled && has_ended && journal.is_synced() && journal.clear().is_ok();
        if database.close() && is_synced {
            self.location.mark_clean();
        }
        self.location.release();
    }
}

impl Drop for DiskEngine {
    fn drop(&mut self) {
        self.close();
    }
}
