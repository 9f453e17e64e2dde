//! The directory of a store: at most one process has it open, and a file names its storage format.
//!
//! A directory is refused before any of its files but `lock` is changed. A directory whose store
//! was lost is never taken for a new one.
//!
//! It must not know what is in the database.
//!
//! Invariants:
//! - `format` exists, durably, from the moment when the new database is complete; so a `format`
//!   without a database or journal means that the missing file was lost.
//! - `closed` says that the page cache has nothing of the store that the disk lacks. Without it, a
//!   start rewrites the database, because a synchronisation may have failed. A process writes it at
//!   its end if that is so, and the next one removes it. The removal is not synchronised: after a
//!   crash of the process the file system has it, and a power failure, which may undo it, empties
//!   the page cache.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use redb::StorageBackend;
use redb::backends::FileBackend;

use super::rewrite::{self, Medium};
use super::{Failure, Location, lock};
use crate::entries::{make_private_directory, sync_entry};
use crate::{Durability, Error};

/// The storage formats of a store with plain values and of one with possibly encrypted values. They
/// do not differ otherwise.
const FORMAT: u32 = 5;
const ENCRYPTED_FORMAT: u32 = 6;

/// The same formats as earlier versions wrote them: without blocks, and before that without a
/// journal, too.
const OLD_FORMATS: [u32; 2] = [1, 3];
const OLD_ENCRYPTED_FORMATS: [u32; 2] = [2, 4];
const FORMATS_WITHOUT_JOURNAL: [u32; 2] = [1, 2];

/// The file that is locked while a process has the store open. It is empty and is never removed.
pub(super) const LOCK: &str = "lock";

/// The file with the format (prefix, number, line end), and its name until the database exists.
const FORMAT_FILE: &str = "format";
const UNFINISHED_FORMAT_FILE: &str = "format.new";
const FORMAT_PREFIX: &str = "pintle-store ";

/// The database's file, and the name of a new database or a replacement until it is complete.
pub(super) const DATABASE: &str = "store.redb";
const UNFINISHED_DATABASE: &str = "store.redb.new";

/// The journal's file.
pub(super) const JOURNAL: &str = "store.journal";

/// Marks that the whole store is on disk.
const CLOSED: &str = "closed";

/// Written to check whether the disk has room.
const PROBE: &str = "probe.new";

/// How many bytes must fit until the disk no longer counts as full: some batches of writes.
const PROBE_BYTES: usize = 1 << 20;

/// The files that may exist before the store does.
const OWN_FILES: [&str; 7] =
    [LOCK, UNFINISHED_FORMAT_FILE, DATABASE, UNFINISHED_DATABASE, JOURNAL, CLOSED, PROBE];

/// A file system creates this in a new directory by itself.
pub(crate) const LOST_AND_FOUND: &str = "lost+found";

/// A directory that this process has locked until this is released or dropped.
#[derive(Debug)]
pub(super) struct Directory {
    path: PathBuf,
    lock: File,
    durability: Durability,
    /// Whether there is no database yet.
    is_new: AtomicBool,
}

impl Directory {
    /// Locks a directory for this process; creates it if it does not exist.
    pub(super) fn claim(path: &Path, durability: Durability) -> Result<Self, Error> {
        make_private_directory(path).map_err(|e| unwritable(path, e))?;
        refuse_foreign(path)?;
        let lock_path = path.join(LOCK);
        let lock = File::options().create(true).append(true).open(&lock_path);
        let lock = lock.map_err(|e| unwritable(&lock_path, e))?;
        lock::exclusive(&lock, path)?;
        let is_new = AtomicBool::new(false);
        let directory = Self { path: path.to_owned(), lock, durability, is_new };
        let has_database = directory.has(DATABASE)?;
        if directory.has(FORMAT_FILE)? {
            let format = directory.check_format(FORMAT_FILE)?;
            if !has_database {
                return Err(lost(DATABASE).into());
            }
            directory.open_format(format)?;
        } else if !has_database {
            directory.begin()?;
        } else if directory.has(UNFINISHED_FORMAT_FILE)? {
            // A crash happened between the two renames of `mark_complete`.
            let format = directory.check_format(UNFINISHED_FORMAT_FILE)?;
            directory.rename(UNFINISHED_FORMAT_FILE, FORMAT_FILE)?;
            directory.open_format(format)?;
        } else {
            return Err(Failure(format!("its file `{FORMAT_FILE}` is missing")).into());
        }
        Ok(directory)
    }

    /// Refuses a directory whose journal is missing. One of an old format gets the journal that it
    /// may not have, and the newest format.
    fn open_format(&self, format: u32) -> Result<(), Failure> {
        if !self.has(JOURNAL)? {
            if !FORMATS_WITHOUT_JOURNAL.contains(&format) {
                return Err(lost(JOURNAL));
            }
            self.file(JOURNAL, true)?;
        }
        let newest = match format {
            old if OLD_FORMATS.contains(&old) => FORMAT,
            old if OLD_ENCRYPTED_FORMATS.contains(&old) => ENCRYPTED_FORMAT,
            // A process that was killed may have renamed the file without synchronising that.
            _ => return self.sync(),
        };
        self.write_format(newest)?;
        self.rename(UNFINISHED_FORMAT_FILE, FORMAT_FILE)
    }

    /// Makes an empty journal, and writes the format under its unfinished name.
    fn begin(&self) -> Result<(), Failure> {
        self.file(JOURNAL, true)?;
        self.write_format(FORMAT)?;
        self.is_new.store(true, Ordering::Relaxed);
        Ok(())
    }

    fn write_format(&self, format: u32) -> Result<(), Failure> {
        let write = || {
            let mut file = File::create(self.path.join(UNFINISHED_FORMAT_FILE))?;
            file.write_all(format!("{FORMAT_PREFIX}{format}\n").as_bytes())?;
            file.sync_all()
        };
        write().map_err(|e| failure(&self.path, e))?;
        self.sync()
    }

    /// Opens the file of a medium.
    fn file(&self, name: &str, is_new: bool) -> Result<Box<dyn Medium>, Failure> {
        let path = self.path.join(name);
        let mut options = File::options();
        options.read(true).write(true).create(is_new).truncate(is_new);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let opened = options.open(&path).and_then(|file| Ok((file.try_clone()?, file)));
        let (file, holes) = opened.map_err(|e| failure(&path, e))?;
        let file = FileBackend::new(file).map_err(|e| Failure(e.to_string()))?;
        let synced = self.durability == Durability::Disk;
        Ok(Box::new(MediumFile { file, holes, synced }))
    }

    fn check_format(&self, name: &str) -> Result<u32, Error> {
        check_format(&self.path, name)
    }

    /// Whether a file exists; a dangling link counts.
    fn has(&self, name: &str) -> Result<bool, Failure> {
        has(&self.path, name)
    }

    fn rename(&self, from: &str, to: &str) -> Result<(), Failure> {
        let renamed = fs::rename(self.path.join(from), self.path.join(to));
        renamed.map_err(|e| failure(&self.path, e))?;
        self.sync()
    }

    /// Synchronises the directory's entries, and the directory's own entry in its parent.
    fn sync(&self) -> Result<(), Failure> {
        let synced = File::open(&self.path).and_then(|directory| directory.sync_all());
        let synced = synced.and_then(|()| sync_entry(&self.path));
        synced.map_err(|e| failure(&self.path, e))
    }
}

impl Location for Directory {
    fn is_new(&self) -> bool {
        self.is_new.load(Ordering::Relaxed)
    }

    fn storage(&self) -> Result<Box<dyn Medium>, Failure> {
        let is_new = self.is_new();
        self.file(if is_new { UNFINISHED_DATABASE } else { DATABASE }, is_new)
    }

    fn journal(&self) -> Result<Box<dyn Medium>, Failure> {
        self.file(JOURNAL, false)
    }

    fn replacement(&self) -> Result<Box<dyn Medium>, Failure> {
        self.file(UNFINISHED_DATABASE, true)
    }

    fn replace(&self) -> Result<(), Failure> {
        self.mark_encrypted()?;
        self.rename(UNFINISHED_DATABASE, DATABASE)
    }

    fn mark_encrypted(&self) -> Result<(), Failure> {
        // The format changes before the first encrypted value, so that an older version refuses the
        // directory instead of reading encrypted values as plain ones.
        self.write_format(ENCRYPTED_FORMAT)?;
        self.rename(UNFINISHED_FORMAT_FILE, FORMAT_FILE)
    }

    fn discard_replacement(&self) -> Result<(), Failure> {
        let path = self.path.join(UNFINISHED_DATABASE);
        match fs::remove_file(&path) {
            Err(e) if e.kind() != ErrorKind::NotFound => Err(failure(&path, e)),
            Ok(()) | Err(_) => Ok(()),
        }
    }

    fn mark_complete(&self) -> Result<(), Failure> {
        self.rename(UNFINISHED_DATABASE, DATABASE)?;
        self.rename(UNFINISHED_FORMAT_FILE, FORMAT_FILE)?;
        self.is_new.store(false, Ordering::Relaxed);
        Ok(())
    }

    fn mark_open(&self) -> Result<bool, Failure> {
        let path = self.path.join(CLOSED);
        let closed = match fs::remove_file(&path) {
            Ok(()) => true,
            Err(e) if e.kind() == ErrorKind::NotFound => false,
            Err(e) => return Err(failure(&path, e)),
        };
        // If writes are not synchronised, no synchronisation can have failed.
        Ok(closed || self.durability == Durability::System)
    }

    fn mark_clean(&self) {
        if self.durability == Durability::System {
            return;
        }
        if let Err(error) = File::create(self.path.join(CLOSED)) {
            tracing::debug!(%error, "cannot mark the store as closed; the next start rewrites its file");
        }
    }

    fn release(&self) {
        // Closing the file is not enough: a process that is being spawned may have inherited it. If
        // unlocking fails, the lock ends with the process.
        let _ = self.lock.unlock();
    }

    fn check_room(&self) -> Result<(), Failure> {
        let path = self.path.join(PROBE);
        let write = || {
            let mut file = File::create(&path)?;
            file.write_all(&vec![1; PROBE_BYTES])?;
            file.sync_all()
        };
        let written = write();
        let removed = fs::remove_file(&path);
        written.and(removed).map_err(|e| Failure(format!("its disk has no room: {e}")))
    }

    fn size(&self) -> Result<u64, Failure> {
        let size = |name| {
            let path = self.path.join(name);
            Ok(fs::metadata(&path).map_err(|e| failure(&path, e))?.len())
        };
        Ok(size(DATABASE)? + size(JOURNAL)?)
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        self.release();
    }
}

/// The file of a medium.
#[derive(Debug)]
struct MediumFile {
    file: FileBackend,
    /// The same file, for finding its holes.
    holes: File,
    /// Whether writes must be synchronised to disk.
    synced: bool,
}

impl StorageBackend for MediumFile {
    fn len(&self) -> io::Result<u64> {
        self.file.len()
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.file.read(offset, out)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.file.set_len(len)
    }

    fn sync_data(&self) -> io::Result<()> {
        if self.synced { self.file.sync_data() } else { Ok(()) }
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.file.write(offset, data)
    }
}

impl Medium for MediumFile {
    fn hole_end(&self, position: u64) -> u64 {
        rewrite::hole_end(&self.holes, position)
    }
}

/// Whether a directory has a store, though maybe one whose creation was not finished.
pub(crate) fn has_store(path: &Path) -> bool {
    [FORMAT_FILE, DATABASE].iter().any(|name| path.join(name).exists())
}

/// Checks that a directory holds a complete store of a known format. Neither changes nor locks it.
pub(crate) fn check(path: &Path) -> Result<(), Error> {
    refuse_foreign(path)?;
    let mut has_journal = true;
    if has(path, FORMAT_FILE)? {
        let format = check_format(path, FORMAT_FILE)?;
        has_journal = has(path, JOURNAL)? || FORMATS_WITHOUT_JOURNAL.contains(&format);
    } else if has(path, DATABASE)? && !has(path, UNFINISHED_FORMAT_FILE)? {
        return Err(Failure(format!("its file `{FORMAT_FILE}` is missing")).into());
    }
    if !has(path, DATABASE)? {
        return Err(lost(DATABASE).into());
    }
    if !has_journal {
        return Err(lost(JOURNAL).into());
    }
    Ok(())
}

fn lost(name: &str) -> Failure {
    let what = if name == DATABASE { "database" } else { "journal" };
    Failure(format!("its {what}, {name}, is missing, though the directory has been in use"))
}

/// Returns the format that a file names.
fn check_format(directory: &Path, name: &str) -> Result<u32, Error> {
    let file = directory.join(name);
    match parse(&fs::read(&file).map_err(|e| failure(&file, e))?) {
        Some(known @ 1..=ENCRYPTED_FORMAT) => Ok(known),
        Some(found) => {
            let path = directory.display().to_string();
            Err(Error::Format { path, found, supported: ENCRYPTED_FORMAT })
        }
        None => Err(Failure(format!(
            "its file `{name}` is damaged: it must consist of the line \"{FORMAT_PREFIX}NUMBER\""
        ))
        .into()),
    }
}

/// Whether a directory has a file; a dangling link counts.
pub(super) fn has(directory: &Path, name: &str) -> Result<bool, Failure> {
    let path = directory.join(name);
    match fs::symlink_metadata(&path) {
        Ok(_) => Ok(true),
        Err(e) if e.kind() == ErrorKind::NotFound => Ok(false),
        Err(e) => Err(failure(&path, e)),
    }
}

/// Refuses a directory with foreign files and no store.
fn refuse_foreign(path: &Path) -> Result<(), Error> {
    let failed = |e| Error::from(failure(path, e));
    let mut foreign = None;
    for entry in fs::read_dir(path).map_err(failed)? {
        let name = entry.map_err(failed)?.file_name();
        if name == FORMAT_FILE {
            return Ok(());
        }
        let known = OWN_FILES.iter().any(|ours| name == *ours) || name == LOST_AND_FOUND;
        if !known && !name.as_encoded_bytes().starts_with(b".") {
            foreign = Some(name);
        }
    }
    match foreign {
        None => Ok(()),
        Some(name) => {
            let (path, name) = (path.display().to_string(), name.display().to_string());
            Err(Error::Foreign { path, name })
        }
    }
}

/// Parses the format file; `None` if it is invalid.
fn parse(bytes: &[u8]) -> Option<u32> {
    let text = std::str::from_utf8(bytes).ok();
    let number = text.and_then(|text| text.strip_prefix(FORMAT_PREFIX)?.strip_suffix('\n'));
    number.and_then(|number| number.parse().ok())
}

/// The error of a directory that cannot be created or locked.
fn unwritable(path: &Path, error: io::Error) -> Error {
    match error.kind() {
        ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => {
            Error::Unwritable { path: path.display().to_string(), why: error.to_string() }
        }
        _ => failure(path, error).into(),
    }
}

fn failure(path: &Path, error: io::Error) -> Failure {
    Failure(format!("{}: {error}", path.display()))
}
