//! Writing a whole file again, so that what is read from it is what its disk holds.
//!
//! Purpose: opening after a synchronisation that failed. Linux marks the pages that it could not write
//! as clean: they are read as they were written for as long as they stay in memory, no later
//! synchronisation writes them, and after a power failure the disk has their old content. A process
//! cannot ask which pages these are, and one that was killed cannot tell whether its last
//! synchronisation failed. So what cannot be trusted is written again before a byte of it is used.
//!
//! Must not know: what the bytes mean, but that the first block names the newest state.
//!
//! Invariants:
//! - When [`rewrite`] has returned, every block that will be read holds on disk what is read.
//! - The first block is written when all others are on disk: a crash in between leaves a state that a
//!   crash during a commit could have left, too.

use std::fs::File;
use std::io;
use std::ops::Range;

use redb::StorageBackend;

/// What the kernel keeps, and loses, at once.
const BLOCK: usize = 4096;

/// How much is read and written at once.
const CHUNK: usize = 256 * BLOCK;

/// Storage of a database, as far as rewriting it needs more than the database does.
pub(crate) trait Medium: StorageBackend {
    /// Where the hole ends that a position lies in: nothing is stored there and zeros are read. The
    /// position itself where there is no hole.
    fn hole_end(&self, position: u64) -> u64;
}

/// Writes everything again and synchronises it.
pub(super) fn rewrite(medium: &(impl Medium + ?Sized)) -> io::Result<()> {
    let len = medium.len()?;
    let first = len.min(BLOCK as u64);
    copy(medium, first..len)?;
    medium.sync_data()?;
    copy(medium, 0..first)?;
    medium.sync_data()
}

/// Reads a part and writes it again where it was, without filling its holes: that takes space which a
/// full disk does not have.
fn copy(medium: &(impl Medium + ?Sized), part: Range<u64>) -> io::Result<()> {
    let mut buffer = vec![0; CHUNK];
    let mut hole_end = 0;
    let mut start = part.start;
    while start < part.end {
        let len = usize::try_from(part.end - start).map_or(CHUNK, |left| left.min(CHUNK));
        let chunk = &mut buffer[..len];
        medium.read(start, chunk)?;
        let mut is_hole = |block: &Range<usize>| {
            if chunk[block.clone()].iter().any(|byte| *byte != 0) {
                return false;
            }
            let position = start + block.start as u64;
            if position >= hole_end {
                hole_end = medium.hole_end(position);
            }
            start + block.end as u64 <= hole_end
        };
        let mut at = 0;
        while at < len {
            let blocks = (at..len).step_by(BLOCK).map(|at| at..len.min(at + BLOCK));
            let end = blocks.take_while(|block| !is_hole(block)).last().map_or(at, |last| last.end);
            if end > at {
                medium.write(start + at as u64, &chunk[at..end])?;
            }
            at = end + BLOCK; // what ended the run is a hole
        }
        start += len as u64;
    }
    Ok(())
}

/// Where the hole of a file ends that a position lies in. Where the system does not tell, there is none.
#[cfg(any(target_os = "linux", target_os = "android"))]
pub(super) fn hole_end(file: &File, position: u64) -> u64 {
    use rustix::fs::{SeekFrom, seek};
    match seek(file, SeekFrom::Data(position)) {
        Ok(data) => data,
        Err(rustix::io::Errno::NXIO) => u64::MAX, // nothing but a hole up to the end
        Err(_) => position,
    }
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
pub(super) fn hole_end(_: &File, position: u64) -> u64 {
    position
}
