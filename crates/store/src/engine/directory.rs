//! The directory that a store lies in: one process has it, and it says which format it has.
//!
//! Purpose: to refuse a directory before anything in it is touched.
//!
//! Must not know: the database in it.

use std::fs::{self, File, TryLockError};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

use super::Failure;
use crate::Error;

/// The storage format that this version reads and writes.
const FORMAT: u32 = 1;

/// The file that is locked while a process has the store open. It is empty, and stays.
const LOCK: &str = "lock";

/// The file that holds the format: this, the number, and a line end.
const FORMAT_FILE: &str = "format";
const FORMAT_PREFIX: &str = "pintle-store ";

/// The database's file, and what it is called until there is a database in it.
const DATABASE: &str = "store.redb";
const UNFINISHED_DATABASE: &str = "store.redb.new";

/// A directory that this process has for itself, until this is dropped.
#[derive(Debug)]
pub(super) struct Directory {
    path: PathBuf,
    lock: File,
}

impl Directory {
    /// Takes a directory for this process; makes one where there is none.
    pub(super) fn claim(path: &Path) -> Result<Self, Error> {
        let failed = |e| failure(path, e);
        make(path).map_err(failed)?;
        let lock =
            File::options().create(true).append(true).open(path.join(LOCK)).map_err(failed)?;
        lock.try_lock().map_err(|e| match e {
            TryLockError::WouldBlock => Error::InUse { path: path.display().to_string() },
            TryLockError::Error(e) => failed(e).into(),
        })?;
        let directory = Self { path: path.to_owned(), lock };
        match fs::read(path.join(FORMAT_FILE)) {
            Ok(bytes) => directory.check(parse(&bytes))?,
            Err(e) if e.kind() == ErrorKind::NotFound => directory.begin()?,
            Err(e) => return Err(failed(e).into()),
        }
        Ok(directory)
    }

    /// Opens the database's file, and says whether there is a database in it already. If not, one can be
    /// made in it, and is to be [kept](Self::keep) then.
    pub(super) fn open(&self) -> Result<(File, bool), Failure> {
        let begun = self.database().exists();
        let name = if begun { DATABASE } else { UNFINISHED_DATABASE };
        let mut options = File::options();
        options.read(true).write(true).create(!begun).truncate(!begun);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let file = options.open(self.path.join(name)).map_err(|e| failure(&self.path, e))?;
        Ok((file, begun))
    }

    /// Says that the new database is whole: a crash before this leaves no store, not half of one.
    pub(super) fn keep(&self) -> Result<(), Failure> {
        let kept = fs::rename(self.path.join(UNFINISHED_DATABASE), self.database());
        kept.map_err(|e| failure(&self.path, e))?;
        self.sync()
    }

    /// The size of the database's file.
    pub(super) fn size(&self) -> Result<u64, Failure> {
        let file = fs::metadata(self.database()).map_err(|e| failure(&self.path, e))?;
        Ok(file.len())
    }

    fn database(&self) -> PathBuf {
        self.path.join(DATABASE)
    }

    /// Makes durable that the directory's files are there, and the directory itself.
    fn sync(&self) -> Result<(), Failure> {
        let synced = File::open(&self.path).and_then(|directory| directory.sync_all());
        synced.map_err(|e| failure(&self.path, e))?;
        // Whoever may not read the parent did not make the directory either.
        if let Some(Ok(parent)) = self.path.parent().map(File::open) {
            parent.sync_all().map_err(|e| failure(&self.path, e))?;
        }
        Ok(())
    }

    fn check(&self, found: u32) -> Result<(), Error> {
        if found == FORMAT {
            return Ok(());
        }
        let path = self.path.display().to_string();
        Err(Error::Format { path, found, supported: FORMAT })
    }

    /// Says the format, before there is a database.
    fn begin(&self) -> Result<(), Error> {
        if self.database().exists() {
            return self.check(0);
        }
        self.write_format().map_err(|e| failure(&self.path, e))?;
        // Before there is a database, which without a format is nobody's.
        Ok(self.sync()?)
    }

    fn write_format(&self) -> io::Result<()> {
        let unfinished = self.path.join("format.new");
        let mut file = File::create(&unfinished)?;
        file.write_all(format!("{FORMAT_PREFIX}{FORMAT}\n").as_bytes())?;
        file.sync_all()?;
        fs::rename(unfinished, self.path.join(FORMAT_FILE))
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        // To close the file is not enough while a process that is just being started has it too. If
        // it fails the lock goes with the process.
        let _ = self.lock.unlock();
    }
}

/// Makes a directory where there is none, for this user alone: secrets come to lie in it.
fn make(path: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path)
}

/// The format that the file says; 0 where it is not one of ours.
fn parse(bytes: &[u8]) -> u32 {
    let text = std::str::from_utf8(bytes).ok();
    let number = text.and_then(|text| text.strip_prefix(FORMAT_PREFIX)?.strip_suffix('\n'));
    number.and_then(|number| number.parse().ok()).unwrap_or(0)
}

fn failure(path: &Path, error: io::Error) -> Failure {
    Failure(format!("{}: {error}", path.display()))
}
