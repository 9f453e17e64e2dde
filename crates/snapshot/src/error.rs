//! Why a snapshot cannot be made, read or restored.

use std::io;

/// The errors of snapshots. None names the file: the caller knows it.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file does not begin like a snapshot.
    #[error("this is no snapshot of Pintle")]
    Foreign,
    /// The file is a snapshot in a newer format.
    #[error("the snapshot has format {found}, this version reads {supported}; use a newer version")]
    Format {
        /// The format in the file.
        found: u32,
        /// The newest format that this version reads.
        supported: u32,
    },
    /// The file ends before its last block.
    #[error("the snapshot is not complete: it ends after {bytes} bytes, and its rest is missing")]
    Truncated {
        /// The length of the file.
        bytes: u64,
    },
    /// The file is not as it was written.
    #[error("the snapshot is damaged in the block at byte {at}: {why}")]
    Damaged {
        /// Where the block begins.
        at: u64,
        /// What is wrong.
        why: &'static str,
    },
    /// A record does not fit into a block.
    #[error("{item} in {collection} has {bytes} bytes, more than a snapshot can hold")]
    TooLarge {
        /// The record's collection.
        collection: String,
        /// The record's item.
        item: String,
        /// The size of the record.
        bytes: usize,
    },
    /// The store that is to be filled has objects.
    #[error(
        "there are objects already; delete them first, or choose another data directory or prefix"
    )]
    Filled,
    /// An object of the snapshot cannot be put into the store.
    #[error("{item} in {collection}: {why}")]
    Object {
        /// The object's collection.
        collection: String,
        /// The object's item.
        item: String,
        /// Why.
        why: String,
    },
    /// The revision after the restore would be out of range.
    #[error("revision {0} is too large: the store could not continue after it")]
    Revision(u64),
    /// The file cannot be read or written.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// Another process writes the same file.
    #[error("another process is writing this snapshot")]
    Busy,
    /// The store cannot be read or made.
    #[error(transparent)]
    Store(#[from] pintle_store::Error),
}
