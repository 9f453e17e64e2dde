//! Reads the database and the journal of a directory without changing the directory.
//!
//! Opening and closing a store that was not closed cleanly changes its files: redb repairs the
//! database, and the journal's entries are applied to it. These writes go to overlays in memory, so
//! the files stay as they are.
//!
//! The caller has [locked](super::share) the directory: the files would change while a process has
//! the store open.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use parking_lot::Mutex;
use redb::StorageBackend;

use super::directory::{DATABASE, JOURNAL, has};
use super::rewrite::Medium;
use super::{Failure, Location};

/// The unit of the overlay.
const PAGE: u64 = 4096;
/// The most pages of an overlay. A repair and the journal's entries change few pages.
const PAGES_MAX: usize = 64 << 10;

/// A directory that is only read.
#[derive(Debug)]
pub(crate) struct ReadOnly {
    database: PathBuf,
    /// `None` for a store of an earlier version, which has none.
    journal: Option<PathBuf>,
}

impl ReadOnly {
    pub(crate) fn new(directory: &Path) -> Result<Self, Failure> {
        let journal = has(directory, JOURNAL)?.then(|| directory.join(JOURNAL));
        Ok(Self { database: directory.join(DATABASE), journal })
    }
}

impl Location for ReadOnly {
    fn is_new(&self) -> bool {
        false
    }

    fn storage(&self) -> Result<Box<dyn Medium>, Failure> {
        Ok(Box::new(Overlay::of(&self.database)?))
    }

    fn journal(&self) -> Result<Box<dyn Medium>, Failure> {
        Ok(Box::new(Overlay::of(self.journal.as_deref().unwrap_or(Path::new("/dev/null")))?))
    }

    fn mark_complete(&self) -> Result<(), Failure> {
        Ok(())
    }

    fn replacement(&self) -> Result<Box<dyn Medium>, Failure> {
        Err(Failure("a store that is only read has no replacement".to_owned()))
    }

    fn mark_encrypted(&self) -> Result<(), Failure> {
        Ok(())
    }

    fn replace(&self) -> Result<(), Failure> {
        Ok(())
    }

    fn discard_replacement(&self) -> Result<(), Failure> {
        Ok(())
    }

    fn mark_open(&self) -> Result<bool, Failure> {
        Ok(true) // nothing has to be on disk for reading
    }

    fn mark_clean(&self) {}

    fn release(&self) {}

    fn check_room(&self) -> Result<(), Failure> {
        Ok(())
    }

    fn size(&self) -> Result<u64, Failure> {
        let size = fs::metadata(&self.database).map_err(|error| failure(&self.database, error))?;
        let Some(journal) = &self.journal else { return Ok(size.len()) };
        Ok(size.len() + fs::metadata(journal).map_err(|error| failure(journal, error))?.len())
    }
}

/// A file with changed pages in memory.
#[derive(Debug)]
struct Overlay {
    file: File,
    overlay: Mutex<Pages>,
}

#[derive(Debug)]
struct Pages {
    len: u64,
    /// The bytes of the file that are read. Those behind a shorter length are not read again.
    file_len: u64,
    /// The changed pages by their number.
    pages: BTreeMap<u64, Vec<u8>>,
}

impl Overlay {
    fn of(path: &Path) -> Result<Self, Failure> {
        let file = File::open(path).map_err(|error| failure(path, error))?;
        let len = file.metadata().map_err(|error| failure(path, error))?.len();
        Ok(Self { file, overlay: Mutex::new(Pages { len, file_len: len, pages: BTreeMap::new() }) })
    }

    /// Reads a page of the file; bytes from `file_len` on are zero.
    fn page(&self, number: u64, file_len: u64) -> io::Result<Vec<u8>> {
        let mut page = vec![0; PAGE as usize];
        let start = number * PAGE;
        let length = file_len.saturating_sub(start).min(PAGE) as usize;
        let mut filled = 0;
        while filled < length {
            match self.file.read_at(&mut page[filled..length], start + filled as u64)? {
                0 => break,
                count => filled += count,
            }
        }
        Ok(page)
    }
}

impl StorageBackend for Overlay {
    fn len(&self) -> io::Result<u64> {
        Ok(self.overlay.lock().len)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let overlay = self.overlay.lock();
        let end = offset.checked_add(out.len() as u64).filter(|end| *end <= overlay.len);
        end.ok_or_else(|| io::Error::from(io::ErrorKind::UnexpectedEof))?;
        let mut done = 0;
        while done < out.len() {
            let (number, start) = split(offset + done as u64);
            let count = (PAGE as usize - start).min(out.len() - done);
            let read = match overlay.pages.get(&number) {
                Some(page) => page[start..start + count].to_vec(),
                None => self.page(number, overlay.file_len)?[start..start + count].to_vec(),
            };
            out[done..done + count].copy_from_slice(&read);
            done += count;
        }
        Ok(())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        let mut overlay = self.overlay.lock();
        (overlay.len, overlay.file_len) = (len, overlay.file_len.min(len));
        let (last, end) = split(len);
        overlay.pages.retain(|number, _| *number <= last);
        overlay.pages.get_mut(&last).into_iter().for_each(|page| page[end..].fill(0));
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        let mut overlay = self.overlay.lock();
        let mut done = 0;
        while done < data.len() {
            let (number, start) = split(offset + done as u64);
            let count = (PAGE as usize - start).min(data.len() - done);
            if !overlay.pages.contains_key(&number) {
                if overlay.pages.len() >= PAGES_MAX {
                    return Err(io::Error::other("its repair would change too much of it"));
                }
                let page = self.page(number, overlay.file_len)?;
                overlay.pages.insert(number, page);
            }
            if let Some(page) = overlay.pages.get_mut(&number) {
                page[start..start + count].copy_from_slice(&data[done..done + count]);
            }
            done += count;
        }
        Ok(())
    }
}

impl Medium for Overlay {
    fn hole_end(&self, position: u64) -> u64 {
        position
    }
}

fn failure(path: &Path, error: io::Error) -> Failure {
    Failure(format!("{}: {error}", path.display()))
}

/// The page of a position, and the position within it.
fn split(position: u64) -> (u64, usize) {
    (position / PAGE, (position % PAGE) as usize)
}
