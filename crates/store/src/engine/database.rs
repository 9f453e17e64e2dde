//! The records in a redb database (`docs/decisions/0001-store-engine.md`).
//!
//! It must not know the journal's file.
//!
//! Invariants:
//! - Before the first byte of the database is used, everything that can be read from it is on disk
//!   (see [`rewrite`]).
//! - Its records and its [`APPLIED`] number change in one transaction, so each entry of the journal
//!   is applied once.

use std::fmt::Display;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use parking_lot::{MappedRwLockReadGuard, RwLock, RwLockReadGuard};
use redb::{Builder, Database, ReadableDatabase, StorageBackend, TableDefinition};

use super::cipher::Cipher;
use super::conversion::convert;
use super::entry::{Entry, Row};
use super::rewrite::{Medium, rewrite};
use super::tables::{self, Packing, Tables};
use super::{Failure, Location, RowVisitor};
use crate::Revision;

/// Numbers about the log, by name.
pub(super) const NUMBERS: TableDefinition<'_, &str, u64> = TableDefinition::new("numbers");
const FLOOR: &str = "floor";
/// The number of the journal's last entry that the database has.
const APPLIED: &str = "journal";
/// The fingerprint of the configuration by which all values in the file are encrypted, those in
/// unused pages included; 0 or absent if no single configuration is known to have encrypted them.
pub(super) const ENCRYPTION: &str = "encryption";

/// The size of redb's cache, which is full once the log was read. Little is read back, because
/// followers have the values.
pub(super) const CACHE_BYTES: usize = 2 << 20;

/// The most bytes of changed pages that a transaction holds in memory: half of redb's cache. If a
/// transaction changes more, redb writes the first pages early, reads them again at the commit for
/// their checksums, and may write them a second time.
pub(super) const CHANGED_BYTES_MAX: usize = CACHE_BYTES / 2;

/// The file is to be shrunk if it is larger than the first constant, and as many times as large as
/// its records as the second says. redb reuses the space that compaction frees, but hardly returns
/// any by itself. The factor is well above the ratio of a file in use, which grows by doubling and
/// holds overwritten values until it is compacted.
const TRIM_BYTES_MIN: u64 = 64 << 20;
const TRIM_FACTOR_MIN: u64 = 8;

/// A log of records in a database.
#[derive(Debug)]
pub(super) struct LogDatabase {
    /// `None` while the database is reopened, after reopening failed, and when it is closed.
    database: RwLock<Option<Open>>,
    /// The file's [`ENCRYPTION`] number.
    encryption: AtomicU64,
}

/// An open database.
#[derive(Debug)]
struct Open {
    database: Database,
    synced: Arc<SyncState>,
}

impl LogDatabase {
    /// Opens the database at a location, or creates one. Unless everything is known to be on disk,
    /// the file is rewritten first.
    pub(super) fn open(location: &dyn Location, is_on_disk: bool) -> Result<Self, Failure> {
        let is_new = location.is_new();
        let open = Open::at(location, is_on_disk)?;
        // Not earlier, because redb cannot open a database whose creation was interrupted.
        if is_new {
            location.mark_complete()?;
        }
        let encryption = AtomicU64::new(open.number(ENCRYPTION)?);
        Ok(Self { database: RwLock::new(Some(open)), encryption })
    }

    /// Opens the database again after a failure, with its file rewritten.
    pub(super) fn reopen(&self, location: &dyn Location) -> Result<(), Failure> {
        // After a failure redb writes nothing any more, not even when it closes.
        drop(self.database.write().take());
        let open = Open::at(location, false)?;
        *self.database.write() = Some(open);
        Ok(())
    }

    /// Commits entries in one transaction; `applied` is the number of the last one, or `None` if
    /// they are not in the journal, and `packing` says how their records are stored. Returns the
    /// bytes of the removed records.
    pub(super) fn commit(
        &self,
        entries: &[Entry],
        applied: Option<u64>,
        packing: Packing,
    ) -> Result<u64, Failure> {
        let write = self.database()?.begin_write().map_err(failure)?;
        let marked = self.encryption.load(Ordering::Relaxed);
        let is_mixed = marked != 0
            && entries.iter().any(|entry| !entry.rows.is_empty() && entry.encryption != marked);
        let rows: Vec<&Row> = entries.iter().flat_map(|entry| &entry.rows).collect();
        let garbage = entries.iter().flat_map(|entry| &entry.garbage).copied().collect();
        let mut tables = Tables::open(&write)?;
        tables.insert(&rows, packing)?;
        let removed = tables.remove(garbage)?;
        drop(tables);
        let floor = entries.iter().rev().find_map(|entry| entry.floor);
        let numbers = [
            (FLOOR, floor.map(|floor| floor.0)),
            (APPLIED, applied),
            (ENCRYPTION, is_mixed.then_some(0)),
        ];
        if numbers.iter().any(|(_, number)| number.is_some()) {
            let mut table = write.open_table(NUMBERS).map_err(failure)?;
            for (name, number) in numbers {
                if let Some(number) = number {
                    table.insert(name, number).map_err(failure)?;
                }
            }
        }
        write.commit().map_err(failure)?;
        if is_mixed {
            self.encryption.store(0, Ordering::Relaxed);
        }
        Ok(removed)
    }

    /// Returns the encoded record of a revision, if it exists.
    pub(super) fn read(&self, revision: Revision) -> Result<Option<Vec<u8>>, Failure> {
        tables::read(&self.database()?.begin_read().map_err(failure)?, revision)
    }

    /// Calls the visitor with the encoded records after a revision, in order, until it returns
    /// false; returns whether it did.
    pub(super) fn scan(
        &self,
        after: Revision,
        visitor: &mut RowVisitor<'_>,
    ) -> Result<bool, Failure> {
        tables::scan(&self.database()?.begin_read().map_err(failure)?, after, visitor)
    }

    /// Returns the floor that was committed last.
    pub(super) fn floor(&self) -> Result<Revision, Failure> {
        self.number(FLOOR).map(Revision)
    }

    /// Returns the number of the journal's last entry that the database has.
    pub(super) fn applied(&self) -> Result<u64, Failure> {
        self.number(APPLIED)
    }

    fn number(&self, name: &str) -> Result<u64, Failure> {
        self.database.read().as_ref().ok_or_else(not_open)?.number(name)
    }

    /// Whether some bytes of the file may not be in the form in which the cipher encodes values
    /// now. All records must have been read with this cipher before.
    pub(super) fn needs_conversion(&self, cipher: &Cipher) -> bool {
        let is_as_wanted = self.encryption.load(Ordering::Relaxed) == cipher.fingerprint();
        cipher.is_on() && (!is_as_wanted || cipher.found_stale())
    }

    /// Rewrites all records as the cipher encodes them now.
    pub(super) fn convert(&self, location: &dyn Location, cipher: &Cipher) -> Result<(), Failure> {
        let wanted = cipher.fingerprint();
        let mut open = self.database.write();
        let Open { database, .. } = open.as_ref().ok_or_else(not_open)?;
        tracing::info!("rewriting the store's file: the encryption configuration has changed");
        convert(database, location, cipher)?;
        drop(open.take()); // its file is about to be replaced
        let replaced = location.replace();
        *open = Some(Open::at(location, true)?);
        replaced?;
        self.encryption.store(wanted, Ordering::Relaxed);
        Ok(())
    }

    /// Compacts the file as far as possible.
    pub(super) fn shrink(&self) -> Result<(), Failure> {
        let mut open = self.database.write();
        let Open { database, .. } = open.as_mut().ok_or_else(not_open)?;
        database.compact().map_err(failure)?;
        Ok(())
    }

    /// Whether a file of a size is far larger than its records.
    pub(super) const fn needs_shrinking(size: u64, record_bytes: u64) -> bool {
        size > TRIM_BYTES_MIN && size > TRIM_FACTOR_MIN * record_bytes
    }

    /// Closes the database; returns whether all of it is known to be on disk.
    pub(super) fn close(&self) -> bool {
        let Some(Open { database, synced }) = self.database.write().take() else { return false };
        drop(database);
        synced.is_synced()
    }

    /// Returns the database, which is not closed or replaced while the guard lives.
    fn database(&self) -> Result<MappedRwLockReadGuard<'_, Database>, Failure> {
        let open = RwLockReadGuard::try_map(self.database.read(), |open| {
            open.as_ref().map(|open| &open.database)
        });
        open.map_err(|_| not_open())
    }
}

impl Open {
    fn at(location: &dyn Location, is_on_disk: bool) -> Result<Self, Failure> {
        let (storage, is_new) = (location.storage()?, location.is_new());
        // redb would create a new database in an empty file.
        if !is_new && storage.len().map_err(failure)? == 0 {
            return Err(Failure("its database has lost its content: it has 0 bytes".to_owned()));
        }
        if !is_new && !is_on_disk {
            rewrite(&*storage).map_err(failure)?;
        }
        let synced = Arc::new(SyncState::default());
        let storage = TrackedStorage { storage, synced: synced.clone() };
        let database = Builder::new().set_cache_size(CACHE_BYTES).create_with_backend(storage);
        let open = Self { database: database.map_err(failure)?, synced };
        if !tables::exist(&open.database.begin_read().map_err(failure)?)? {
            if !is_new {
                return Err(Failure("its database has no table `log`".to_owned()));
            }
            open.begin()?;
        }
        Ok(open)
    }

    /// Returns a number about the log; 0 if it was never written.
    fn number(&self, name: &str) -> Result<u64, Failure> {
        let read = self.database.begin_read().map_err(failure)?;
        let numbers = read.open_table(NUMBERS).map_err(failure)?;
        Ok(numbers.get(name).map_err(failure)?.map_or(0, |number| number.value()))
    }

    /// Writes an empty log.
    fn begin(&self) -> Result<(), Failure> {
        let write = self.database.begin_write().map_err(failure)?;
        Tables::open(&write)?;
        write.open_table(NUMBERS).map_err(failure)?;
        write.commit().map_err(failure)
    }
}

/// Whether everything that was written is known to be on disk.
#[derive(Debug, Default)]
pub(super) struct SyncState {
    is_behind: AtomicBool,
    has_failed: AtomicBool,
}

impl SyncState {
    pub(super) fn is_synced(&self) -> bool {
        !self.is_behind.load(Ordering::Relaxed) && !self.has_failed.load(Ordering::Relaxed)
    }

    /// Records a change or a synchronisation.
    fn record<T>(&self, is_behind: bool, outcome: io::Result<T>) -> io::Result<T> {
        self.is_behind.store(is_behind, Ordering::Relaxed);
        self.has_failed.fetch_or(outcome.is_err(), Ordering::Relaxed);
        outcome
    }
}

/// A database's storage, with its synchronisation state.
#[derive(Debug)]
pub(super) struct TrackedStorage {
    pub(super) storage: Box<dyn Medium>,
    pub(super) synced: Arc<SyncState>,
}

impl StorageBackend for TrackedStorage {
    fn len(&self) -> io::Result<u64> {
        self.storage.len()
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.storage.read(offset, out)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.synced.record(true, self.storage.set_len(len))
    }

    fn sync_data(&self) -> io::Result<()> {
        self.synced.record(false, self.storage.sync_data())
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.synced.record(true, self.storage.write(offset, data))
    }
}

fn not_open() -> Failure {
    Failure("its database is not open".to_owned())
}

pub(super) fn failure(error: impl Display) -> Failure {
    Failure(error.to_string())
}
