//! Snapshots: files with the state of a store at one revision. `docs/decisions/0012-snapshots.md`
//! has the format and the reasons.
//!
//! A [`Saving`] makes the bytes of a snapshot, a [`Reader`] reads and checks them, [`restore`]
//! makes a store of them, [`fill`] writes them to a store that numbers its writes by itself. A
//! [`Replacement`] is a file that appears when it is complete, and a [`Folder`] has the snapshots
//! that a server takes at intervals.
//!
//! It must not know what values mean, how they are encrypted, or HTTP.
//!
//! Invariants:
//! - Values are those that the store has at rest. Only [`fill`] decrypts them, with the transformer
//!   that the caller passes.
//! - Memory is bounded by a block and a portion of the state, whatever the size of the store.
//! - A reader of a file that is incomplete or changed returns an error before the end.

mod block;
mod error;
mod file;
mod filling;
mod folder;
mod header;
mod reader;
mod restoring;
mod saving;
mod summary;
#[cfg(test)]
mod tests;

pub use error::Error;
pub use file::Replacement;
pub use filling::fill;
pub use folder::Folder;
pub use header::Header;
pub use reader::{End, Reader};
pub use restoring::{Restored, floor_after, restore};
pub use saving::Saving;
pub use summary::{Collection, Summary};
