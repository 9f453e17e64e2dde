//! Rewriting of a whole file, so that everything that can be read from it is on disk.
//!
//! It is used when a store opens after a synchronisation may have failed. Linux marks pages that it
//! could not write as clean: while they stay in memory they are read as they were written, no later
//! synchronisation writes them, and after a power failure the disk has their old content. A process
//! cannot ask which pages these are, and a killed process cannot know whether its last
//! synchronisation failed. So everything in doubt is rewritten before a byte of it is used.
//!
//! It must not know what the bytes mean, except that the first page refers to the newest state.
//!
//! Invariants:
//! - When [`rewrite`] returns, every readable page is on disk as it is read.
//! - The first page is written after all others are on disk: a crash in between leaves a state
//!   that a crash during a commit could have left, too.

use std::fs::File;
use std::io;
use std::ops::Range;

use redb::StorageBackend;

/// The unit in which the kernel caches and loses file content.
const PAGE: usize = 4096;

/// The size of one read or write.
const CHUNK: usize = 256 * PAGE;

/// The storage of a database or a journal, with the method that a rewrite needs in addition.
pub(crate) trait Medium: StorageBackend {
    /// Returns the end of the hole at a position, in which nothing is stored and zeros are read.
    /// Returns the position itself if there is no hole.
    fn hole_end(&self, position: u64) -> u64;
}

/// Rewrites everything and synchronises it.
pub(super) fn rewrite(medium: &(impl Medium + ?Sized)) -> io::Result<()> {
    let len = medium.len()?;
    let first = len.min(PAGE as u64);
    copy(medium, first..len)?;
    medium.sync_data()?;
    copy(medium, 0..first)?;
    medium.sync_data()
}

/// Reads a range and writes it in place, without filling its holes: filling them needs space, which
/// a full disk does not have.
fn copy(medium: &(impl Medium + ?Sized), part: Range<u64>) -> io::Result<()> {
    let mut buffer = vec![0; CHUNK];
    let mut hole_end = 0;
    let mut start = part.start;
    while start < part.end {
        let len = usize::try_from(part.end - start).map_or(CHUNK, |left| left.min(CHUNK));
        let chunk = &mut buffer[..len];
        medium.read(start, chunk)?;
        let mut is_hole = |page: &Range<usize>| {
            if chunk[page.clone()].iter().any(|byte| *byte != 0) {
                return false;
            }
            let position = start + page.start as u64;
            if position >= hole_end {
                hole_end = medium.hole_end(position);
            }
            start + page.end as u64 <= hole_end
        };
        let mut at = 0;
        while at < len {
            let pages = (at..len).step_by(PAGE).map(|at| at..len.min(at + PAGE));
            let end = pages.take_while(|page| !is_hole(page)).last().map_or(at, |last| last.end);
            if end > at {
                medium.write(start + at as u64, &chunk[at..end])?;
            }
            at = end + PAGE; // the next page is in a hole
        }
        start += len as u64;
    }
    Ok(())
}

/// Returns the end of a file's hole at a position, or the position if the system does not tell.
#[cfg(any(target_os = "linux", target_os = "android"))]
pub(super) fn hole_end(file: &File, position: u64) -> u64 {
    use rustix::fs::{SeekFrom, seek};
    match seek(file, SeekFrom::Data(position)) {
        Ok(data) => data,
        Err(rustix::io::Errno::NXIO) => u64::MAX, // a hole up to the end of the file
        Err(_) => position,
    }
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
pub(super) fn hole_end(_: &File, position: u64) -> u64 {
    position
}
