//! The writes of this process that are under way, so that their events are recognised.
//!
//! Purpose: an own write is told to followers from the writer's template, with its note, and nothing is
//! decoded. It is recognized by its key and the stored bytes. And where its answer is lost, the next
//! event of its key shows what became of it.
//!
//! Must not know: how writes are made, followers.
//!
//! Invariant: what is recognised is told exactly as it was written. Where an event might be that of
//! several own writes it is not recognised; where it is another process's, of the same bytes or a
//! deletion, too, it makes no difference.

use std::any::Any;
use std::collections::HashMap;
use std::sync::Arc;

use bytes::Bytes;
use parking_lot::Mutex;
use pintle_store::{Key, Kind, Record, Revision, Template};

use crate::messages::{Event, EventType};
use crate::translation::revision;

/// The writes under way, by their paths.
#[derive(Default)]
pub(crate) struct Own(Mutex<HashMap<Bytes, Vec<Arc<OwnWrite>>>>);

/// A write under way.
pub(crate) struct OwnWrite {
    pub(crate) path: Bytes,
    pub(crate) key: Key,
    pub(crate) kind: Kind,
    /// The revision at which the key must have been written last; 0 if it must be absent.
    pub(crate) expected: i64,
    /// The stored bytes; `None` for a deletion.
    pub(crate) stored: Option<Bytes>,
    pub(crate) template: Template,
    pub(crate) note: Option<Arc<dyn Any + Send + Sync>>,
    pub(crate) fate: Mutex<Fate>,
}

/// What the events say of a write.
#[derive(Clone, Debug, Default)]
pub(crate) enum Fate {
    /// Nothing yet.
    #[default]
    Open,
    /// It was done, and this was told to followers.
    Told(Record),
    /// The key was written in another way since the revision that the write expects, so it can never be
    /// done.
    Outrun,
    /// It cannot be seen: the event may be that of another own write, or was never told.
    Hidden,
}

impl OwnWrite {
    /// The record of the write, committed at a revision.
    pub(crate) fn record(&self, revision: Revision) -> Record {
        if let Fate::Told(told) = &*self.fate.lock()
            && told.revision == revision
        {
            return told.clone();
        }
        let (bytes, body) = self.template.fill(revision);
        let (key, kind, note) = (self.key.clone(), self.kind, self.note.clone());
        Record { revision, key, kind, bytes, body, note }
    }

    /// Whether an event may be that of the write.
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

/// Writes that are known while this lives.
pub(crate) struct Known<'a> {
    own: &'a Own,
    writes: &'a [Arc<OwnWrite>],
}

impl Own {
    /// Makes writes known, before they are sent.
    pub(crate) fn know<'a>(&'a self, writes: &'a [Arc<OwnWrite>]) -> Known<'a> {
        let mut known = self.0.lock();
        for write in writes {
            known.entry(write.path.clone()).or_default().push(write.clone());
        }
        Known { own: self, writes }
    }

    /// The record of an event, if it is that of an own write. Events come in order.
    pub(crate) fn record(&self, event: &Event) -> Option<Record> {
        let known = self.0.lock();
        let at = event.kv.mod_revision;
        // Older events may come late. Of what must be absent nothing says which are older.
        let open = known.get(&event.kv.key)?.iter().filter(|write| at > write.expected);
        let open = open.filter(|write| matches!(*write.fate.lock(), Fate::Open));
        let (fitting, others): (Vec<_>, Vec<_>) = open.partition(|write| write.fits(event));
        for outrun in others.iter().filter(|write| write.expected > 0) {
            *outrun.fate.lock() = Fate::Outrun;
        }
        if let [write] = fitting[..] {
            let record = write.record(revision(at));
            *write.fate.lock() = Fate::Told(record.clone());
            return Some(record);
        }
        for hidden in fitting {
            *hidden.fate.lock() = Fate::Hidden;
        }
        None
    }

    /// Events were lost, perhaps those of own writes.
    pub(crate) fn lose_track(&self) {
        for write in self.0.lock().values().flatten() {
            let mut fate = write.fate.lock();
            if matches!(*fate, Fate::Open) {
                *fate = Fate::Hidden;
            }
        }
    }
}

impl Drop for Known<'_> {
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
            fate: Mutex::default(),
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
            (vec![write(created, "x")], event(Put, "/p/a", (7, 7), "x"), Some("own x"), "Told"),
            (vec![write(created, "x")], event(Put, "/p/a", (7, 7), "y"), None, "Open"),
            (vec![write(created, "x")], event(Put, "/p/a", (6, 7), "x"), None, "Open"),
            (vec![write(created, "x")], event(Put, "/p/b", (7, 7), "x"), None, "Open"),
            (vec![write(created, "x")], event(Delete, "/p/a", (0, 7), ""), None, "Open"),
            (vec![write(updated, "x")], event(Put, "/p/a", (4, 7), "x"), Some("own x"), "Told"),
            (vec![write(updated, "x")], event(Put, "/p/a", (4, 7), "y"), None, "Outrun"),
            (vec![write(updated, "x")], event(Put, "/p/a", (4, 5), "y"), None, "Open"),
            (vec![write(updated, "x")], event(Put, "/p/a", (7, 7), "x"), None, "Outrun"),
            (vec![write(deleted, "")], event(Delete, "/p/a", (0, 7), ""), Some("own "), "Told"),
            (vec![write(deleted, "")], event(Delete, "/p/a", (0, 4), ""), None, "Open"),
            (vec![write(deleted, "")], event(Put, "/p/a", (6, 7), "x"), None, "Outrun"),
            (both(), event(Delete, "/p/a", (0, 7), ""), None, "Hidden"),
            (
                vec![write(updated, "y"), write(updated, "x")],
                event(Put, "/p/a", (4, 7), "y"),
                Some("own y"),
                "Told",
            ),
        ];
        for (writes, event, expected, fate) in rows {
            let known = own.know(&writes);
            let record = own.record(&event);
            let value = record.map(|record| record.value());
            assert_eq!(value.as_deref(), expected.map(str::as_bytes), "{event:?}");
            let is = format!("{:?}", writes[0].fate.lock());
            assert!(is.starts_with(fate), "{is}, expected {fate}: {event:?}");
            own.lose_track();
            let is = format!("{:?}", writes[0].fate.lock());
            assert!(is.starts_with(if fate == "Open" { "Hidden" } else { fate }), "{is}");
            drop(known);
            assert!(own.0.lock().is_empty());
        }
    }
}
