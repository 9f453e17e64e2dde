//! The store's tests.
//!
//! - `conformance`: the contract, on every store; other crates run it, too.
//! - `embedded`: properties of the embedded stores beyond the contract.
//! - `model`: random sequences of operations, against a naive store.
//! - `faults`: media that fail at any point.
//! - `power`: storage that loses or tears unsynchronised writes, even after failed
//!   synchronisations.
//! - `encrypted`: the same failures while a store is encrypted in place and changes its key.
//! - `crash`: a process that is killed while 64 threads write.
//! - `alone`: on which thread a lone writer commits.
//! - `backup`: states as they are stored, and stores that are made of them.
//! - `directory`: who may open a directory.
//! - `inspection`: checks of a store that is only read.
//! - `storage`: the failing storage in memory of `faults`, `power` and `encrypted`.

mod alone;
mod backup;
mod crash;
mod directory;
mod embedded;
mod encrypted;
mod faults;
mod inspection;
mod model;
mod power;
mod storage;

use std::path::Path;
use std::sync::Arc;

use tempfile::TempDir;

use crate::conformance::fixtures::*;
use crate::{
    Change, Durability, Error, Expect, Follower, Key, LocalOpening, Opening as _, Options, Record,
    Revision, Store, Template, Write,
};

/// Opens a store on disk in a directory that the guard removes.
fn on_disk() -> (Arc<dyn Store>, TempDir) {
    let dir = tempfile::tempdir().unwrap();
    (reopen(&dir), dir)
}

fn reopen(dir: &TempDir) -> Arc<dyn Store> {
    opening(dir).read().unwrap()
}

/// Opens the store in a directory with a follower of the opening.
async fn reopened(dir: &TempDir) -> (Arc<dyn Store>, Arc<Seen>) {
    let seen = Arc::new(Seen::default());
    let store = Box::new(opening(dir)).read_to(seen.clone()).await.unwrap();
    (store, seen)
}

fn opening(dir: &TempDir) -> LocalOpening {
    crate::open(&options(&dir.path().join("data"), Durability::System)).unwrap()
}

/// Returns the options of a store that retains all of its history.
fn options(dir: &Path, durability: Durability) -> Options {
    Options { dir: dir.to_owned(), durability, history_bytes_max: u64::MAX, transformer: None }
}

/// Opens a store in memory that retains all of its history.
fn in_memory() -> Arc<dyn Store> {
    crate::memory(u64::MAX).unwrap().read().unwrap()
}
