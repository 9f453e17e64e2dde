//! The medium of a store that outlives its process: a redb database.
//!
//! Purpose: the log on disk. `docs/decisions/0001-store-engine.md` says why it is redb, and
//! `0002-storage-format.md` what is in it.
//!
//! Invariants: a batch is one transaction with one synchronisation of the disk; nothing that fails its
//! checksum is handed out.

use std::fmt::Display;
use std::io;
use std::ops::Bound;
use std::path::Path;

use redb::backends::FileBackend;
use redb::{
    Builder, Database, ReadOnlyTable, ReadableDatabase, StorageBackend, TableDefinition, TableError,
};

use super::directory::Directory;
use super::{Batch, Engine, Failure, Visitor};
use crate::{Durability, Error, Record, Revision, encoding};

/// Each record, under its revision.
const LOG: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("log");

/// Numbers about the log, by name.
const NUMBERS: TableDefinition<'_, &str, u64> = TableDefinition::new("numbers");
const FLOOR: &str = "floor";

/// What redb may keep in memory, and does once the log has been read. Little is read back, for whoever
/// follows the store has the values; measured, 1 MiB to 32 MiB write equally fast.
const CACHE_BYTES: usize = 1 << 20;

/// The file is made smaller when a store is opened, if it is larger than this and this many times as
/// large as its records. Space that compaction frees is used again, but redb gives it back only when
/// nobody reads or writes. The factor is well above what a file has in use: it grows by doubling, and
/// holds what was overwritten until it is compacted.
const TRIM_BYTES_MIN: u64 = 64 << 20;
const TRIM_FACTOR_MIN: u64 = 8;

/// A log in a directory.
#[derive(Debug)]
pub(crate) struct DiskEngine {
    // Before the directory, for another process may have that only when the database is closed.
    database: Database,
    directory: Option<Directory>,
}

impl DiskEngine {
    /// Opens the log in a directory, or begins one.
    pub(crate) fn open(path: &Path, durability: Durability) -> Result<Self, Error> {
        let directory = Directory::claim(path)?;
        let (file, begun) = directory.open()?;
        let file = FileBackend::new(file).map_err(failure)?;
        let engine = match durability {
            Durability::Disk => Self::over(file),
            Durability::System => Self::over(Unsynced(file)),
        }?;
        // redb cannot open what a crash leaves of a database that was being made.
        if !begun {
            directory.keep()?;
        }
        Ok(Self { directory: Some(directory), ..engine })
    }

    /// Opens the log on a storage that redb can write to, or begins one.
    pub(crate) fn over(storage: impl StorageBackend) -> Result<Self, Failure> {
        let database = Builder::new().set_cache_size(CACHE_BYTES).create_with_backend(storage);
        let database = database.map_err(failure)?;
        let engine = Self { database, directory: None };
        match engine.database.begin_read().map_err(failure)?.open_table(LOG) {
            Err(TableError::TableDoesNotExist(_)) => engine.begin()?,
            other => drop(other.map_err(failure)?),
        }
        Ok(engine)
    }

    /// Writes an empty log.
    fn begin(&self) -> Result<(), Failure> {
        let write = self.database.begin_write().map_err(failure)?;
        write.open_table(LOG).map_err(failure)?;
        write.open_table(NUMBERS).map_err(failure)?;
        write.commit().map_err(failure)
    }

    /// Moves the records together and makes the file as small as it can be.
    pub(crate) fn shrink(&mut self) -> Result<(), Failure> {
        self.database.compact().map_err(failure)?;
        Ok(())
    }

    fn log(&self) -> Result<ReadOnlyTable<u64, &'static [u8]>, Failure> {
        self.database.begin_read().map_err(failure)?.open_table(LOG).map_err(failure)
    }
}

impl Engine for DiskEngine {
    fn commit(&self, batch: &Batch) -> Result<(), Failure> {
        let write = self.database.begin_write().map_err(failure)?;
        {
            let mut log = write.open_table(LOG).map_err(failure)?;
            for record in &batch.records {
                let bytes = encoding::encode(record)?;
                log.insert(record.revision.0, &*bytes).map_err(failure)?;
            }
            for revision in &batch.garbage {
                log.remove(revision.0).map_err(failure)?;
            }
        }
        if let Some(floor) = batch.floor {
            let mut numbers = write.open_table(NUMBERS).map_err(failure)?;
            numbers.insert(FLOOR, floor.0).map_err(failure)?;
        }
        write.commit().map_err(failure)
    }

    fn read(&self, revision: Revision) -> Result<Option<Record>, Failure> {
        let log = self.log()?;
        let bytes = log.get(revision.0).map_err(failure)?;
        bytes.map(|bytes| encoding::decode(revision, bytes.value())).transpose()
    }

    fn scan(&self, after: Revision, visitor: &mut Visitor<'_>) -> Result<(), Failure> {
        let later = (Bound::Excluded(after.0), Bound::Unbounded);
        let log = self.log()?;
        for row in log.range::<u64>(later).map_err(failure)? {
            let (revision, bytes) = row.map_err(failure)?;
            if !visitor(encoding::decode(Revision(revision.value()), bytes.value())?)? {
                break;
            }
        }
        Ok(())
    }

    fn floor(&self) -> Result<Revision, Failure> {
        let read = self.database.begin_read().map_err(failure)?;
        let numbers = read.open_table(NUMBERS).map_err(failure)?;
        let floor = numbers.get(FLOOR).map_err(failure)?;
        Ok(Revision(floor.map_or(0, |floor| floor.value())))
    }

    fn trim(&mut self, record_bytes: u64) -> Result<(), Failure> {
        let Some(directory) = &self.directory else { return Ok(()) };
        let size = directory.size()?;
        if size > TRIM_BYTES_MIN && size > TRIM_FACTOR_MIN * record_bytes {
            self.shrink()?;
        }
        Ok(())
    }
}

/// A file that is written to, but that nobody waits for.
#[derive(Debug)]
struct Unsynced(FileBackend);

impl StorageBackend for Unsynced {
    fn len(&self) -> io::Result<u64> {
        self.0.len()
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.0.read(offset, out)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.0.set_len(len)
    }

    fn sync_data(&self) -> io::Result<()> {
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.0.write(offset, data)
    }
}

fn failure(error: impl Display) -> Failure {
    Failure(error.to_string())
}
