//! The writes of this process that are under way, so that their events are recognised.
//!
//! Purpose: an own write is told to followers from the writer's template, with its note, and nothing is
//! decoded. It is known by its key and the bytes that are kept.
//!
//! Must not know: how writes are made, followers.
//!
//! Invariant: what is recognised is told exactly as it was written. Where an event might be that of
//! several own writes, or of another process, it makes no difference, or it is not recognised.

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
    /// The bytes that are kept; `None` of a deletion.
    pub(crate) kept: Option<Bytes>,
    pub(crate) template: Template,
    pub(crate) note: Option<Arc<dyn Any + Send + Sync>>,
    /// What followers were told, once they were.
    told: Mutex<Option<Record>>,
}

impl OwnWrite {
    pub(crate) fn new(
        path: Bytes,
        key: Key,
        kind: Kind,
        kept: Option<Bytes>,
        template: Template,
        note: Option<Arc<dyn Any + Send + Sync>>,
    ) -> Arc<Self> {
        Arc::new(Self { path, key, kind, kept, template, note, told: Mutex::default() })
    }

    /// The record of the write, committed at a revision.
    pub(crate) fn record(&self, revision: Revision) -> Record {
        if let Some(told) = self.told.lock().as_ref().filter(|told| told.revision == revision) {
            return told.clone();
        }
        let (bytes, body) = self.template.fill(revision);
        let (key, kind, note) = (self.key.clone(), self.kind, self.note.clone());
        Record { revision, key, kind, bytes, body, note }
    }

    /// The revision at which followers were told of it.
    pub(crate) fn told_at(&self) -> Option<Revision> {
        self.told.lock().as_ref().map(|record| record.revision)
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

    /// The record of an event, if it is that of an own write.
    pub(crate) fn record(&self, event: &Event) -> Option<Record> {
        let known = self.0.lock();
        let is_put = event.r#type == EventType::Put as i32;
        let is_new = event.kv.create_revision == event.kv.mod_revision;
        let mut same = known.get(&event.kv.key)?.iter().filter(|write| match &write.kept {
            Some(kept) => {
                is_put && is_new == (write.kind == Kind::Created) && *kept == event.kv.value
            }
            None => !is_put,
        });
        let write = same.next()?;
        // Which one of several went through, only their answers tell.
        if same.next().is_some() {
            return None;
        }
        let record = write.record(revision(event.kv.mod_revision));
        *write.told.lock() = Some(record.clone());
        Some(record)
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

    fn write(kind: Kind, kept: &'static str) -> Arc<OwnWrite> {
        let key = Key { collection: "things".into(), item: "a".into() };
        let kept_bytes = (kind != Kind::Deleted).then(|| Bytes::from_static(kept.as_bytes()));
        let template = Template::whole(format!("own {kept}").into_bytes());
        OwnWrite::new(Bytes::from_static(b"/p/a"), key, kind, kept_bytes, template, None)
    }

    fn event(r#type: EventType, path: &'static str, created: i64, value: &'static str) -> Event {
        let kv = KeyValue {
            key: Bytes::from_static(path.as_bytes()),
            create_revision: created,
            mod_revision: 7,
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
        let rows = [
            (vec![write(created, "x")], event(Put, "/p/a", 7, "x"), Some("own x")),
            (vec![write(created, "x")], event(Put, "/p/a", 7, "y"), None),
            (vec![write(created, "x")], event(Put, "/p/a", 6, "x"), None),
            (vec![write(created, "x")], event(Put, "/p/b", 7, "x"), None),
            (vec![write(created, "x")], event(Delete, "/p/a", 0, ""), None),
            (vec![write(updated, "x")], event(Put, "/p/a", 6, "x"), Some("own x")),
            (vec![write(deleted, "")], event(Delete, "/p/a", 0, ""), Some("own ")),
            (vec![write(deleted, "")], event(Put, "/p/a", 6, "x"), None),
            (vec![write(deleted, ""), write(deleted, "")], event(Delete, "/p/a", 0, ""), None),
            (
                vec![write(updated, "x"), write(updated, "y")],
                event(Put, "/p/a", 6, "y"),
                Some("own y"),
            ),
        ];
        for (writes, event, expected) in rows {
            let known = own.know(&writes);
            let record = own.record(&event);
            let value = record.map(|record| record.value());
            assert_eq!(value.as_deref(), expected.map(str::as_bytes), "{event:?}");
            drop(known);
            assert!(own.0.lock().is_empty());
        }
    }
}
