//! Recognition of this process's own writes in the watch's events.
//!
//! An own write reaches followers as a record of the writer's template, with its note and without
//! decoding. It is recognised by its key and its stored bytes. If its answer is lost, the next
//! event of its key shows whether it was committed.
//!
//! It must not know how writes are made, or followers.
//!
//! Invariant: a recognised write is reported exactly as it was written. An event that may be of
//! several own writes is not recognised. An event of another process may be recognised, but only if
//! its write has the same bytes, or is a deletion, too: then the record is the same.

use std::any::Any;
use std::collections::HashMap;
use std::sync::Arc;

use bytes::Bytes;
use parking_lot::Mutex;
use pintle_store::{Key, Kind, Record, Revision, Template};

use crate::messages::{Event, EventType};
use crate::translation::revision;

/// The writes in progress, by path.
#[derive(Default)]
pub(crate) struct Own(Mutex<HashMap<Bytes, Vec<Arc<OwnWrite>>>>);

/// A write in progress.
pub(crate) struct OwnWrite {
    pub(crate) path: Bytes,
    pub(crate) key: Key,
    pub(crate) kind: Kind,
    /// The expected revision of the key; 0 if it must be absent.
    pub(crate) expected: i64,
    /// The stored bytes; `None` for a deletion.
    pub(crate) stored: Option<Bytes>,
    pub(crate) template: Template,
    pub(crate) note: Option<Arc<dyn Any + Send + Sync>>,
    pub(crate) seen: Mutex<Seen>,
}

/// The state of an own write, as the events show it.
#[derive(Clone, Debug, Default)]
pub(crate) enum Seen {
    /// Nothing yet.
    #[default]
    Nothing,
    /// The write was committed, and followers got this record.
    Committed(Record),
    /// Another write changed the key after the expected revision, so this write can never be
    /// committed.
    Superseded,
    /// Unknown: the event may be of another own write, or was lost.
    Unknown,
}

impl OwnWrite {
    /// Returns the record of the write, committed at a revision.
    pub(crate) fn record(&self, revision: Revision) -> Record {
        if let Seen::Committed(record) = &*self.seen.lock()
            && record.revision == revision
        {
            return record.clone();
        }
        let (bytes, body) = self.template.fill(revision);
        let (key, kind, note) = (self.key.clone(), self.kind, self.note.clone());
        Record { revision, key, kind, bytes, body, note }
    }

    /// Whether an event may be of this write.
    fn fits(&self, event: &Event) -> bool {
        let is_put = event.r#type == EventType::Put as i32;
        let is_new = event.kv.create_revision == event.kv.mod_revision;
        match &self.stored {
            Some(stored) => {
                is_put && is_new == (self.kind == Kind::Created) && *stored == event.kv.value
            }
            None => !is_put,
        }
    }
}

/// Registered writes; dropping this removes them.
pub(crate) struct Registered<'a> {
    own: &'a Own,
    writes: &'a [Arc<OwnWrite>],
}

impl Own {
    /// Registers writes, before they are sent.
    pub(crate) fn register<'a>(&'a self, writes: &'a [Arc<OwnWrite>]) -> Registered<'a> {
        let mut known = self.0.lock();
        for write in writes {
            known.entry(write.path.clone()).or_default().push(write.clone());
        }
        Registered { own: self, writes }
    }

    /// Returns the record of an event, if it is of an own write. Events are passed in order.
    pub(crate) fn record(&self, event: &Event) -> Option<Record> {
        let known = self.0.lock();
        let at = event.kv.mod_revision;
        // Events that are older than the write may arrive late. For a write that expects an absent
        // key, nothing shows which events are older.
        let open = known.get(&event.kv.key)?.iter().filter(|write| at > write.expected);
        let open = open.filter(|write| matches!(*write.seen.lock(), Seen::Nothing));
        let (fitting, others): (Vec<_>, Vec<_>) = open.partition(|write| write.fits(event));
        for superseded in others.iter().filter(|write| write.expected > 0) {
            *superseded.seen.lock() = Seen::Superseded;
        }
        if let [write] = fitting[..] {
            let record = write.record(revision(at));
            *write.seen.lock() = Seen::Committed(record.clone());
            return Some(record);
        }
        for unknown in fitting {
            *unknown.seen.lock() = Seen::Unknown;
        }
        None
    }

    /// Records that events were lost, perhaps of own writes.
    pub(crate) fn events_lost(&self) {
        for write in self.0.lock().values().flatten() {
            let mut seen = write.seen.lock();
            if matches!(*seen, Seen::Nothing) {
                *seen = Seen::Unknown;
            }
        }
    }
}

impl Drop for Registered<'_> {
    fn drop(&mut self) {
        let mut known = self.own.0.lock();
        for write in self.writes {
            if let Some(same) = known.get_mut(&write.path) {
                same.retain(|other| !Arc::ptr_eq(other, write));
                if same.is_empty() {
                    known.remove(&write.path);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::messages::KeyValue;

    fn write(kind: Kind, stored: &'static str) -> Arc<OwnWrite> {
        let key = Key { collection: "things".into(), item: "a".into() };
        Arc::new(OwnWrite {
            path: Bytes::from_static(b"/p/a"),
            key,
            kind,
            expected: if kind == Kind::Created { 0 } else { 5 },
            stored: (kind != Kind::Deleted).then(|| Bytes::from_static(stored.as_bytes())),
            template: Template::whole(format!("own {stored}").into_bytes()),
            note: None,
            seen: Mutex::default(),
        })
    }

    fn event(r#type: EventType, path: &'static str, at: (i64, i64), value: &'static str) -> Event {
        let kv = KeyValue {
            key: Bytes::from_static(path.as_bytes()),
            create_revision: at.0,
            mod_revision: at.1,
            value: Bytes::from_static(value.as_bytes()),
            ..KeyValue::default()
        };
        Event { r#type: r#type as i32, kv }
    }

    #[test]
    fn events_of_own_writes_are_recognised() {
        use EventType::{Delete, Put};
        let own = Own::default();
        let (created, updated, deleted) = (Kind::Created, Kind::Updated, Kind::Deleted);
        let both = || vec![write(deleted, ""), write(deleted, "")];
        let rows = [
            (
                vec![write(created, "x")],
                event(Put, "/p/a", (7, 7), "x"),
                Some("own x"),
                "Committed",
            ),
            (vec![write(created, "x")], event(Put, "/p/a", (7, 7), "y"), None, "Nothing"),
            (vec![write(created, "x")], event(Put, "/p/a", (6, 7), "x"), None, "Nothing"),
            (vec![write(created, "x")], event(Put, "/p/b", (7, 7), "x"), None, "Nothing"),
            (vec![write(created, "x")], event(Delete, "/p/a", (0, 7), ""), None, "Nothing"),
            (
                vec![write(updated, "x")],
                event(Put, "/p/a", (4, 7), "x"),
                Some("own x"),
                "Committed",
            ),
            (vec![write(updated, "x")], event(Put, "/p/a", (4, 7), "y"), None, "Superseded"),
            (vec![write(updated, "x")], event(Put, "/p/a", (4, 5), "y"), None, "Nothing"),
            (vec![write(updated, "x")], event(Put, "/p/a", (7, 7), "x"), None, "Superseded"),
            (
                vec![write(deleted, "")],
                event(Delete, "/p/a", (0, 7), ""),
                Some("own "),
                "Committed",
            ),
            (vec![write(deleted, "")], event(Delete, "/p/a", (0, 4), ""), None, "Nothing"),
            (vec![write(deleted, "")], event(Put, "/p/a", (6, 7), "x"), None, "Superseded"),
            (both(), event(Delete, "/p/a", (0, 7), ""), None, "Unknown"),
            (
                vec![write(updated, "y"), write(updated, "x")],
                event(Put, "/p/a", (4, 7), "y"),
                Some("own y"),
                "Committed",
            ),
        ];
        for (writes, event, expected, seen) in rows {
            let known = own.register(&writes);
            let record = own.record(&event);
            let value = record.map(|record| record.value());
            assert_eq!(value.as_deref(), expected.map(str::as_bytes), "{event:?}");
            let is = format!("{:?}", writes[0].seen.lock());
            assert!(is.starts_with(seen), "{is}, expected {seen}: {event:?}");
            own.events_lost();
            let is = format!("{:?}", writes[0].seen.lock());
            assert!(is.starts_with(if seen == "Nothing" { "Unknown" } else { seen }), "{is}");
            drop(known);
            assert!(own.0.lock().is_empty());
        }
    }
}
