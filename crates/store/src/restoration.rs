//! Restoration: a new store that is filled with the records of a backup.
//!
//! The store is made beside its final name and gets that name when it is complete and on disk. A
//! crash leaves nothing under the final name. [`crate::open`] refuses the unfinished store that a
//! crash leaves under the other name, and the next restoration replaces it.
//!
//! It must not know the format of backups.

use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use crate::engine::{Batch, DiskEngine, Engine as _, directory};
use crate::entries::{directory_of, make_private_directory};
use crate::failure::Failure;
use crate::opening::stored_index;
use crate::record::is_encrypted;
use crate::{Durability, Error, Kind, Record, Revision};

/// The extension of the directory in which a store is made.
const UNFINISHED: &str = "restoring";

/// A new store without its final name. Dropping it removes it.
#[derive(Debug)]
pub struct Restoration {
    /// `None` once the store is finished.
    engine: Option<DiskEngine>,
    dir: PathBuf,
    parent: PathBuf,
    /// The parent, which is locked while this lives.
    lock: File,
    /// Whether the parent was made for this.
    is_parent_new: bool,
    count: usize,
    has_encrypted: bool,
}

/// Refuses a store's directory if an interrupted restoration left its directory beside it.
pub fn refuse_unfinished(dir: &Path) -> Result<(), Error> {
    let unfinished = unfinished(dir);
    if unfinished.exists() {
        return Err(Error::Unfinished { path: unfinished.display().to_string() });
    }
    Ok(())
}

fn unfinished(dir: &Path) -> PathBuf {
    dir.with_extension(UNFINISHED)
}

impl Restoration {
    /// Begins a store that will be at `dir`, whose parent must be empty or not exist. Removes the
    /// unfinished store that an interrupted restoration left there.
    pub fn begin(dir: &Path) -> Result<Self, Error> {
        let parent = directory_of(dir).to_owned();
        let is_parent_new = !parent.exists();
        make_private_directory(&parent).map_err(|e| failure(&parent, e))?;
        let lock = File::open(&parent).map_err(|e| failure(&parent, e))?;
        lock.try_lock().map_err(|e| match e {
            TryLockError::WouldBlock => Error::InUse { path: parent.display().to_string() },
            TryLockError::Error(e) => failure(&parent, e).into(),
        })?;
        refuse_filled(&parent, &unfinished(dir))?;
        let mut new = Self {
            engine: None,
            dir: dir.to_owned(),
            parent,
            lock,
            is_parent_new,
            count: 0,
            has_encrypted: false,
        };
        new.remove_unfinished().map_err(|e| failure(&unfinished(dir), e))?;
        new.engine = Some(DiskEngine::open(&unfinished(dir), Durability::Disk, None)?);
        Ok(new)
    }

    /// Adds records, whose values are in their stored form, each of another key and at another
    /// revision.
    pub fn add(&mut self, records: Vec<Record>) -> Result<(), Error> {
        if let Some(record) = records.iter().find(|record| record.kind == Kind::Deleted) {
            return Err(Failure(format!("revision {} is a deletion", record.revision)).into());
        }
        self.count += records.len();
        self.has_encrypted |= records.iter().any(|record| is_encrypted(&record.bytes));
        self.engine()?.commit_directly(&Batch { records, ..Batch::default() })?;
        Ok(())
    }

    /// Finishes the store: its state is that of the records, and its history begins after `floor`.
    /// Reads at older revisions, and watches from them, are refused as compacted.
    pub fn finish(mut self, floor: Revision) -> Result<(), Error> {
        let (engine, has_encrypted) = (self.engine()?, self.has_encrypted);
        engine.commit(&Batch { floor: Some(floor), ..Batch::default() })?;
        let index = stored_index(engine)?;
        if index.newest() != floor || index.count() != self.count {
            let reason = format!(
                "of {} records, {} are in its state at revision {floor}",
                self.count,
                index.count()
            );
            return Err(Failure(reason).into());
        }
        if has_encrypted {
            engine.mark_encrypted()?;
        }
        engine.close();
        let named = fs::rename(unfinished(&self.dir), &self.dir);
        named.and_then(|()| self.lock.sync_all()).map_err(|e| failure(&self.dir, e))?;
        self.is_parent_new = false;
        Ok(())
    }

    fn engine(&self) -> Result<&DiskEngine, Failure> {
        self.engine.as_ref().ok_or_else(|| Failure("the store is finished".to_owned()))
    }

    fn remove_unfinished(&self) -> io::Result<()> {
        match fs::remove_dir_all(unfinished(&self.dir)) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => Err(e),
            Ok(()) | Err(_) => Ok(()),
        }
    }
}

impl Drop for Restoration {
    fn drop(&mut self) {
        drop(self.engine.take());
        let removed = self.remove_unfinished();
        let removed = removed.and_then(|()| match self.is_parent_new {
            true => fs::remove_dir(&self.parent),
            false => Ok(()),
        });
        if let Err(error) = removed {
            tracing::warn!(%error, "cannot remove {}", unfinished(&self.dir).display());
        }
    }
}

/// Refuses a directory that has more than the unfinished store of an interrupted restoration.
fn refuse_filled(parent: &Path, unfinished: &Path) -> Result<(), Error> {
    for entry in fs::read_dir(parent).map_err(|e| failure(parent, e))? {
        let name = entry.map_err(|e| failure(parent, e))?.file_name();
        if name != directory::LOST_AND_FOUND && Some(&*name) != unfinished.file_name() {
            let (path, entry) = (parent.display().to_string(), name.display().to_string());
            return Err(Error::NotEmpty { path, entry });
        }
    }
    Ok(())
}

fn failure(path: &Path, error: io::Error) -> Failure {
    Failure(format!("{}: {error}", path.display()))
}
