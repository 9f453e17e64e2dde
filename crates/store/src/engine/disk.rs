//! The medium on disk: a redb database (`docs/decisions/0001-store-engine.md`).
//!
//! Invariant: before the first byte of the database is used, everything that can be read from it is
//! on disk (see [`rewrite`]).

use std::fmt::Display;
use std::io;
use std::ops::Bound;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use parking_lot::{MappedRwLockReadGuard, RwLock, RwLockReadGuard};
use redb::{Builder, Database, ReadableDatabase, StorageBackend, TableDefinition, TableError};

use super::cipher::Cipher;
use super::conversion::convert;
use super::directory::Directory;
use super::rewrite::{Medium, rewrite};
use super::{Batch, Engine, Failure, Location, Moved, Visitor};
use crate::{Durability, Error, Record, Revision, Transformer, encoding};

/// The records by revision.
pub(super) const LOG: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("log");

/// Numbers about the log, by name.
pub(super) const NUMBERS: TableDefinition<'_, &str, u64> = TableDefinition::new("numbers");
const FLOOR: &str = "floor";
/// The fingerprint of the configuration by which all values in the file are encrypted, those in
/// unused pages included; 0 or absent if that is unknown.
pub(super) const ENCRYPTION: &str = "encryption";

/// redb's cache, which is full once the log was read. Little is read back, because followers have
/// the values; measured, 1 MiB to 32 MiB write equally fast.
pub(super) const CACHE_BYTES: usize = 1 << 20;

/// The file is shrunk if it is larger than this and this many times as large as its records. redb
/// reuses the space that compaction frees, but hardly returns any by itself. The factor is well
/// above the ratio of a file in use, which grows by doubling and holds overwritten values until it
/// is compacted.
const TRIM_BYTES_MIN: u64 = 64 << 20;
const TRIM_FACTOR_MIN: u64 = 8;

/// A log in a database.
#[derive(Debug)]
pub(crate) struct DiskEngine {
    /// `None` while the database is reopened, after that failed, and when it is closed.
    database: RwLock<Option<Open>>,
    location: Box<dyn Location>,
    cipher: Cipher,
    /// The file's [`ENCRYPTION`] number.
    encryption: AtomicU64,
}

/// Receives encoded records; returns whether it wants more.
type RowVisitor<'a> = dyn FnMut(Revision, &[u8]) -> Result<bool, Failure> + 'a;

/// An open database.
#[derive(Debug)]
struct Open {
    database: Database,
    synced: Arc<SyncState>,
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
        let is_new = location.is_new();
        let is_on_disk = location.mark_open()?;
        let open = Open::at(&location, is_on_disk)?;
        // redb cannot open a database whose creation was interrupted.
        if is_new {
            location.mark_complete()?;
        }
        let encryption = AtomicU64::new(open.number(ENCRYPTION)?);
        let (database, location) = (RwLock::new(Some(open)), Box::new(location));
        Ok(Self { database, location, cipher: Cipher::new(transformer), encryption })
    }

    /// Compacts the database's file as far as possible.
    pub(crate) fn shrink(&self) -> Result<(), Failure> {
        let mut open = self.database.write();
        let Open { database, .. } = open.as_mut().ok_or_else(not_open)?;
        database.compact().map_err(failure)?;
        Ok(())
    }

    /// Names the format of a database whose values may be encrypted.
    pub(crate) fn mark_encrypted(&self) -> Result<(), Failure> {
        self.location.mark_encrypted()
    }

    /// Calls the visitor with the encoded records after a revision, in order, until it returns
    /// false.
    fn scan_rows(&self, after: Revision, visitor: &mut RowVisitor<'_>) -> Result<(), Failure> {
        let later = (Bound::Excluded(after.0), Bound::Unbounded);
        let database = self.database()?;
        let log = database.begin_read().map_err(failure)?.open_table(LOG).map_err(failure)?;
        for row in log.range::<u64>(later).map_err(failure)? {
            let (revision, bytes) = row.map_err(failure)?;
            if !visitor(Revision(revision.value()), bytes.value())? {
                break;
            }
        }
        Ok(())
    }

    /// Returns a record; true if it is not in the current form.
    fn look_up(&self, revision: Revision) -> Result<Option<(Record, bool)>, Failure> {
        let database = self.database()?;
        let log = database.begin_read().map_err(failure)?.open_table(LOG).map_err(failure)?;
        let bytes = log.get(revision.0).map_err(failure)?;
        bytes.map(|bytes| self.cipher.decode(revision, bytes.value())).transpose()
    }

    /// Whether the file will hold values of another configuration than its [`ENCRYPTION`] says.
    fn is_mixed(&self) -> bool {
        let marked = self.encryption.load(Ordering::Relaxed);
        marked != 0 && marked != self.cipher.fingerprint()
    }

    /// Locks the database open.
    fn database(&self) -> Result<MappedRwLockReadGuard<'_, Database>, Failure> {
        let open = RwLockReadGuard::try_map(self.database.read(), |open| {
            open.as_ref().map(|open| &open.database)
        });
        open.map_err(|_| not_open())
    }
}

impl Drop for DiskEngine {
    fn drop(&mut self) {
        self.close();
    }
}

impl Open {
    fn at(location: &(impl Location + ?Sized), is_on_disk: bool) -> Result<Self, Failure> {
        let (storage, is_new) = (location.storage()?, location.is_new());
        // redb would create a new database in it.
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
        match open.database.begin_read().map_err(failure)?.open_table(LOG) {
            Err(TableError::TableDoesNotExist(_)) if is_new => open.begin()?,
            other => drop(other.map_err(failure)?),
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
        write.open_table(LOG).map_err(failure)?;
        write.open_table(NUMBERS).map_err(failure)?;
        write.commit().map_err(failure)
    }
}

impl Engine for DiskEngine {
    fn disk_bytes(&self) -> Option<u64> {
        self.location.size().ok()
    }

    fn commit(&self, batch: &Batch) -> Result<Moved, Failure> {
        let write = self.database()?.begin_write().map_err(failure)?;
        let mut moved = Moved::default();
        {
            let mut log = write.open_table(LOG).map_err(failure)?;
            for record in &batch.records {
                let bytes = self.cipher.encode(record)?;
                moved.written += bytes.len() as u64;
                log.insert(record.revision.0, &*bytes).map_err(failure)?;
            }
            for revision in &batch.garbage {
                let record = log.remove(revision.0).map_err(failure)?;
                moved.removed += record.map_or(0, |record| record.value().len() as u64);
            }
        }
        let is_mixed = self.is_mixed();
        if batch.floor.is_some() || is_mixed {
            let mut numbers = write.open_table(NUMBERS).map_err(failure)?;
            if let Some(floor) = batch.floor {
                numbers.insert(FLOOR, floor.0).map_err(failure)?;
            }
            if is_mixed {
                numbers.insert(ENCRYPTION, 0).map_err(failure)?;
            }
        }
        write.commit().map_err(failure)?;
        if is_mixed {
            self.encryption.store(0, Ordering::Relaxed);
        }
        Ok(moved)
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
        let open = self.database.read();
        Ok(Revision(open.as_ref().ok_or_else(not_open)?.number(FLOOR)?))
    }

    fn convert(&self) -> Result<(), Failure> {
        let wanted = self.cipher.fingerprint();
        let is_as_wanted = self.encryption.load(Ordering::Relaxed) == wanted;
        if !self.cipher.is_on() || is_as_wanted && !self.cipher.found_stale() {
            return self.location.discard_replacement();
        }
        let mut open = self.database.write();
        let Open { database, .. } = open.as_ref().ok_or_else(not_open)?;
        tracing::info!("rewriting the store's file: the encryption configuration has changed");
        convert(database, &*self.location, &self.cipher)?;
        drop(open.take()); // its file is about to be replaced
        let replaced = self.location.replace();
        *open = Some(Open::at(&*self.location, true)?);
        replaced?;
        self.encryption.store(wanted, Ordering::Relaxed);
        Ok(())
    }

    fn is_current(&self, revision: Revision) -> Result<bool, Failure> {
        if !self.cipher.is_on() {
            return Ok(true);
        }
        Ok(self.look_up(revision)?.is_none_or(|(_, is_stale)| !is_stale))
    }

    fn trim(&self, record_bytes: u64) -> Result<(), Failure> {
        let size = self.location.size()?;
        if size > TRIM_BYTES_MIN && size > TRIM_FACTOR_MIN * record_bytes {
            self.shrink()?;
        }
        Ok(())
    }

    fn reopen(&self) -> Result<(), Failure> {
        self.location.check_room()?;
        // After a failure redb writes nothing any more, and nothing when it closes.
        drop(self.database.write().take());
        let open = Open::at(&*self.location, false)?;
        *self.database.write() = Some(open);
        Ok(())
    }

    fn close(&self) {
        if let Some(Open { database, synced }) = self.database.write().take() {
            drop(database);
            if synced.is_synced() {
                self.location.mark_clean();
            }
        }
        self.location.release();
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
