//! The store's tests, and the words they are written in.
//!
//! - `conformance`: what every store must do, on each of them.
//! - `model`: any sequence of operations, against a naive store.
//! - `faults`: media that fail, at every point where they can.
//! - `power`: storage that loses or tears whatever was not synchronised, also after synchronisations
//!   that failed.
//! - `crash`: a process that is killed while 64 threads write.
//! - `directory`: who may open a directory.

mod conformance;
mod crash;
mod directory;
mod faults;
mod model;
mod power;
mod storage;

use std::path::Path;
use std::sync::Arc;

use parking_lot::Mutex;
use tempfile::TempDir;

use crate::{
    Change, Durability, Error, Expect, Follower, Key, LocalOpening, Opening as _, Options, Record,
    Revision, Store, Template, Write,
};

fn key(item: &str) -> Key {
    Key { collection: "things".into(), item: item.into() }
}

fn create(item: &str, value: &str) -> Write {
    write(key(item), Expect::Absent, Change::Put(whole(value)))
}

fn update(item: &str, at: u64, value: &str) -> Write {
    write(key(item), Expect::At(Revision(at)), Change::Put(whole(value)))
}

fn delete(item: &str, at: u64, value: &str) -> Write {
    write(key(item), Expect::At(Revision(at)), Change::Delete(whole(value)))
}

fn write(key: Key, expect: Expect, change: Change) -> Write {
    Write { key, expect, change, note: None }
}

fn whole(value: &str) -> Template {
    Template::whole(value.as_bytes().to_vec())
}

/// A record as text: `3 Updated a=x`.
fn text(record: &Record) -> String {
    let value = String::from_utf8_lossy(&record.value()).into_owned();
    format!("{} {:?} {}={value}", record.revision, record.kind, record.key.item)
}

fn texts(records: &[Record]) -> Vec<String> {
    records.iter().map(text).collect()
}

/// What became of a write, as text.
fn outcome(result: Result<Record, Error>) -> String {
    match result {
        Ok(record) => text(&record),
        Err(Error::Conflict { current: None }) => "conflict: absent".to_owned(),
        Err(Error::Conflict { current: Some(current) }) => format!("conflict: {}", text(&current)),
        Err(error) => error.to_string(),
    }
}

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
    Options { dir: dir.to_owned(), durability, history_bytes_max: u64::MAX }
}

/// A store in memory that keeps all of its history.
fn in_memory() -> Arc<dyn Store> {
    crate::memory(u64::MAX).unwrap().read().unwrap()
}

/// A follower that remembers what it was given.
#[derive(Default)]
struct Seen(Mutex<Vec<Record>>);

impl Follower for Seen {
    fn apply(&self, records: &[Record], head: Revision) {
        let last = records.last().expect("an embedded store tells of a head by its record");
        assert_eq!(last.revision, head);
        self.0.lock().extend_from_slice(records);
    }

    fn reset(&self, _: &[Record], _: Revision) {
        unreachable!("an embedded store loses no history");
    }
}

impl Seen {
    fn texts(&self) -> Vec<String> {
        texts(&self.0.lock())
    }

    /// Checks that every revision above `floor` came once and in order, up to `head`.
    fn check_complete(&self, floor: Revision, head: Revision) {
        let records = self.0.lock();
        assert!(records.is_sorted_by(|a, b| a.revision < b.revision), "each once, in order");
        let history = records.iter().map(|record| record.revision.0).filter(|&r| r > floor.0);
        assert!(history.eq(floor.0 + 1..=head.0), "everything above the floor");
    }
}

/// What a new follower sees.
async fn followed(store: &Arc<dyn Store>) -> Arc<Seen> {
    let seen = Arc::new(Seen::default());
    store.follow(seen.clone()).await.unwrap();
    seen
}
