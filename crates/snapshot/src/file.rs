//! A file that appears when it is complete.
//!
//! The file is written beside its final name, synchronised, and renamed. A crash leaves the old
//! file under the final name, and the unfinished file under its other name. The next attempt
//! overwrites the unfinished file.

use std::ffi::OsString;
use std::fs::{self, File, TryLockError};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use pintle_store::entries;

use crate::Error;

/// The ending of a file that is not complete.
pub(crate) const UNFINISHED: &str = ".partial";

/// A file without its final name. Dropping this removes the file, unless it was finished.
#[derive(Debug)]
pub struct Replacement {
    file: File,
    unfinished: PathBuf,
    path: PathBuf,
    is_finished: bool,
}

impl Replacement {
    /// Begins a file that will be at `path`, readable by its owner only.
    pub fn begin(path: &Path) -> Result<Self, Error> {
        if path.is_dir() {
            return Err(io::Error::from(io::ErrorKind::IsADirectory).into());
        }
        let mut unfinished = OsString::from(path);
        unfinished.push(UNFINISHED);
        let unfinished = PathBuf::from(unfinished);
        let file = claim(&unfinished)?;
        file.set_len(0)?;
        Ok(Self { file, unfinished, path: path.to_owned(), is_finished: false })
    }

    /// Synchronises the file to disk and gives it its final name.
    pub fn finish(mut self) -> Result<(), Error> {
        self.file.sync_all()?;
        fs::rename(&self.unfinished, &self.path)?;
        self.is_finished = true;
        Ok(entries::sync_entry(&self.path)?)
    }
}

/// Opens a file and locks it for this process. Before the lock is taken, another process may rename
/// or remove the file; then the locked file is not the one at the path, and the file at the path is
/// tried.
fn claim(path: &Path) -> Result<File, Error> {
    loop {
        let mut options = File::options();
        let file = options.create(true).append(true).mode(0o600).open(path)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(Error::Busy),
            Err(TryLockError::Error(error)) => return Err(error.into()),
        }
        let locked = file.metadata()?;
        match fs::metadata(path) {
            Ok(named) if (named.dev(), named.ino()) == (locked.dev(), locked.ino()) => {
                return Ok(file);
            }
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error.into()),
            Ok(_) | Err(_) => {}
        }
    }
}

impl Write for Replacement {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Drop for Replacement {
    fn drop(&mut self) {
        if !self.is_finished {
            let _ = fs::remove_file(&self.unfinished); // the next attempt overwrites it
        }
    }
}
