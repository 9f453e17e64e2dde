//! What every store must do, whatever it lies on.

use std::sync::Arc;

use parking_lot::Mutex;
use pintle_store::{
    At, Change, Error, Expect, Follower, Key, Kind, Record, Revision, Store, Template, Write,
};

/// A key of the collection `things`.
pub fn key(item: &str) -> Key {
    Key { collection: "things".into(), item: item.into() }
}

pub fn create(item: &str, value: &str) -> Write {
    write(item, Expect::Absent, Change::Put(whole(value)))
}

pub fn update(item: &str, at: u64, value: &str) -> Write {
    write(item, Expect::At(Revision(at)), Change::Put(whole(value)))
}

pub fn delete(item: &str, at: u64, value: &str) -> Write {
    write(item, Expect::At(Revision(at)), Change::Delete(whole(value)))
}

fn write(item: &str, expect: Expect, change: Change) -> Write {
    Write { key: key(item), expect, change, note: None }
}

pub fn whole(value: &str) -> Template {
    Template::whole(value.as_bytes().to_vec())
}

/// A record as text: `3 Updated a=x`.
pub fn text(record: &Record) -> String {
    let value = String::from_utf8_lossy(&record.value()).into_owned();
    format!("{} {:?} {}={value}", record.revision, record.kind, record.key.item)
}

pub fn texts(records: &[Record]) -> Vec<String> {
    records.iter().map(text).collect()
}

/// Remembers what it was given.
#[derive(Default)]
pub struct Seen {
    pub records: Mutex<Vec<Record>>,
}

impl Follower for Seen {
    fn apply(&self, records: &[Record]) {
        assert!(!records.is_empty(), "a follower is given something");
        self.records.lock().extend_from_slice(records);
    }
}

impl Seen {
    pub fn texts(&self) -> Vec<String> {
        texts(&self.records.lock())
    }
}
