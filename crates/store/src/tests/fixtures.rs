//! Fixtures of the store's tests: writes, records as text, and a recording follower.

use std::sync::Arc;

use parking_lot::Mutex;

use crate::{Change, Error, Expect, Follower, Key, Kind, Record, Revision, Store, Template, Write};

pub(crate) fn key(item: &str) -> Key {
    Key { collection: "things".into(), item: item.into() }
}

pub(crate) fn create(item: &str, value: &str) -> Write {
    write(key(item), Expect::Absent, Change::Put(whole(value)))
}

pub(crate) fn update(item: &str, at: u64, value: &str) -> Write {
    write(key(item), Expect::At(Revision(at)), Change::Put(whole(value)))
}

pub(crate) fn delete(item: &str, at: u64, value: &str) -> Write {
    write(key(item), Expect::At(Revision(at)), Change::Delete(whole(value)))
}

pub(crate) fn write(key: Key, expect: Expect, change: Change) -> Write {
    Write { key, expect, change, note: None }
}

pub(crate) fn whole(value: &str) -> Template {
    Template::whole(value.as_bytes().to_vec())
}

/// Returns a record as text: `3 Updated a=x`.
pub(crate) fn text(record: &Record) -> String {
    let value = String::from_utf8_lossy(&record.value()).into_owned();
    format!("{} {:?} {}={value}", record.revision, record.kind, record.key.item)
}

pub(crate) fn texts(records: &[Record]) -> Vec<String> {
    records.iter().map(text).collect()
}

/// Returns the result of a write as text.
pub(crate) fn outcome(result: Result<Record, Error>) -> String {
    match result {
        Ok(record) => text(&record),
        Err(Error::Conflict { current: None }) => "conflict: absent".to_owned(),
        Err(Error::Conflict { current: Some(current) }) => format!("conflict: {}", text(&current)),
        Err(error) => error.to_string(),
    }
}

/// A follower that records what it gets; a deletion without a value gets the last value.
#[derive(Default)]
pub(crate) struct Seen(pub(crate) Mutex<Vec<Record>>);

impl Follower for Seen {
    fn apply(&self, records: &[Record], head: Revision) {
        assert!(
            records.last().is_none_or(|last| last.revision <= head),
            "the head includes the records"
        );
        let mut seen = self.0.lock();
        for record in records {
            let mut record = record.clone();
            if record.kind == Kind::Deleted && record.body.is_empty() {
                let last = seen.iter().rfind(|before| before.key == record.key);
                (record.bytes, record.body) =
                    last.map(|last| (last.bytes.clone(), last.body.clone())).unwrap_or_default();
            }
            seen.push(record);
        }
    }

    fn reset(&self, _: &[Record], _: Revision) {
        unreachable!("no history is lost here");
    }
}

impl Seen {
    pub(crate) fn texts(&self) -> Vec<String> {
        texts(&self.0.lock())
    }

    /// Checks that every revision above `floor` came once and in order, up to `head`.
    pub(crate) fn check_complete(&self, floor: Revision, head: Revision) {
        let records = self.0.lock();
        assert!(records.is_sorted_by(|a, b| a.revision < b.revision), "each once, in order");
        let history = records.iter().map(|record| record.revision.0).filter(|&r| r > floor.0);
        assert!(history.eq(floor.0 + 1..=head.0), "everything above the floor");
    }
}

/// Returns a new follower after it has seen everything.
pub(crate) async fn followed(store: &Arc<dyn Store>) -> Arc<Seen> {
    let seen = Arc::new(Seen::default());
    store.follow(seen.clone()).await.unwrap();
    seen
}
