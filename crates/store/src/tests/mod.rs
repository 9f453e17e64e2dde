//! The store's tests, and the words they are written in.
//!
//! - `conformance`: what every store must do, on each of them; other crates run it, too.
//! - `embedded`: what the embedded stores do beyond that.
//! - `model`: any sequence of operations, against a naive store.
//! - `faults`: media that fail, at every point where they can.
//! - `power`: storage that loses or tears whatever was not synchronised, also after synchronisations
//!   that failed.
//! - `crash`: a process that is killed while 64 threads write.
//! - `directory`: who may open a directory.

mod crash;
mod directory;
mod embedded;
mod faults;
mod model;
mod power;
mod storage;

use std::path::Path;
use std::sync::Arc;

use tempfile::TempDir;

use crate::conformance::words::*;
use crate::{
    Change, Durability, Error, Expect, Follower, Key, LocalOpening, Opening as _, Options, Record,
    Revision, Store, Template, Write,
};

/// A store on disk, in a directory that goes with the guard.
fn on_disk() -> (Arc<dyn Store>, TempDir) {
    let dir = tempfile::tempdir().unwrap();
    (reopen(&dir), dir)
}

fn reopen(dir: &TempDir) -> Arc<dyn Store> {
    opening(dir).read().unwrap()
}

/// The store in a directory, and what a follower saw that was there from its opening.
async fn reopened(dir: &TempDir) -> (Arc<dyn Store>, Arc<Seen>) {
    let seen = Arc::new(Seen::default());
    let store = Box::new(opening(dir)).read_to(seen.clone()).await.unwrap();
    (store, seen)
}

fn opening(dir: &TempDir) -> LocalOpening {
    crate::open(&options(&dir.path().join("data"), Durability::System)).unwrap()
}

/// A store in a directory that keeps all of its history.
fn options(dir: &Path, durability: Durability) -> Options {
    Options { dir: dir.to_owned(), durability, history_bytes_max: u64::MAX, transformer: None }
}

/// A store in memory that keeps all of its history.
fn in_memory() -> Arc<dyn Store> {
    crate::memory(u64::MAX).unwrap().read().unwrap()
}
