//! Between records and what etcd keeps of them.

use std::sync::Arc;

use bytes::Bytes;
use pintle_store::{Key, Kind, Layout, Record, Revision};

use crate::messages::KeyValue;

/// The layout of the database, below a prefix.
#[derive(Clone)]
pub(crate) struct Translation {
    layout: Arc<dyn Layout>,
    /// Ends with a slash.
    prefix: Arc<str>,
}

impl Translation {
    /// Keys lie below `prefix`, whose slashes at the ends do not matter.
    pub(crate) fn new(layout: Arc<dyn Layout>, prefix: &str) -> Self {
        Self { layout, prefix: format!("/{}/", prefix.trim_matches('/')).into() }
    }

    /// All keys of the store: the first one, and the one that ends them.
    pub(crate) fn everything(&self) -> (Bytes, Bytes) {
        let first = Bytes::copy_from_slice(self.prefix.as_bytes());
        let end = after_prefix(&first);
        (first, end)
    }

    /// A key that nobody writes, by which servers ask whether etcd is well. upstream:
    /// apiserver/pkg/storage/storagebackend/factory/etcd3.go.
    pub(crate) fn health(&self) -> Bytes {
        format!("{}health", self.prefix).into()
    }

    pub(crate) fn path(&self, key: &Key) -> Bytes {
        format!("{}{}", self.prefix, self.layout.path(key)).into()
    }

    /// The range of a collection's items that begin with `prefix`.
    pub(crate) fn range(&self, collection: &str, prefix: &str) -> (Bytes, Bytes) {
        let first = self.path(&Key { collection: collection.into(), item: prefix.into() });
        let end = after_prefix(&first);
        (first, end)
    }

    /// The key of a path; `None` for what is not the store's.
    pub(crate) fn key(&self, path: &[u8]) -> Option<Key> {
        let path = std::str::from_utf8(path).ok()?;
        self.layout.key(path.strip_prefix(&*self.prefix)?)
    }

    pub(crate) fn layout(&self) -> &dyn Layout {
        &*self.layout
    }

    /// The record of what is kept; `None` for what is not the store's. What cannot be decoded comes as
    /// it is kept.
    pub(crate) fn record(&self, kept: &KeyValue) -> Option<Record> {
        let key = self.key(&kept.key)?;
        let revision = revision(kept.mod_revision);
        let bytes = self.layout.decode(&key, &kept.value, revision).unwrap_or_else(|why| {
            tracing::warn!(%why, %revision, "a stored value cannot be decoded");
            Bytes::copy_from_slice(&kept.value)
        });
        let is_new = kept.create_revision == kept.mod_revision;
        let kind = if is_new { Kind::Created } else { Kind::Updated };
        Some(Record { revision, key, kind, body: 0..bytes.len(), bytes, note: None })
    }

    /// The record of a deletion by another process, whose last state is not known here.
    pub(crate) fn deletion(&self, event: &KeyValue) -> Option<Record> {
        let (key, revision) = (self.key(&event.key)?, revision(event.mod_revision));
        let (kind, bytes) = (Kind::Deleted, Bytes::new());
        Some(Record { revision, key, kind, body: 0..0, bytes, note: None })
    }
}

/// The key that ends the range of all that begin with a prefix.
fn after_prefix(prefix: &[u8]) -> Bytes {
    let mut end = prefix.to_vec();
    while let Some(last) = end.pop() {
        if last < u8::MAX {
            end.push(last + 1);
            return end.into();
        }
    }
    Bytes::from_static(b"\0") // no end
}

/// etcd counts with a sign.
pub(crate) fn revision(number: i64) -> Revision {
    Revision(u64::try_from(number).unwrap_or(0))
}

/// A revision as etcd counts; `None` where no database is that new.
pub(crate) fn number(revision: Revision) -> Option<i64> {
    i64::try_from(revision.0).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_end() {
        for (prefix, end) in
            [(&b"a/"[..], &b"a0"[..]), (b"a\xff", b"b"), (b"\xff\xff", b"\0"), (b"", b"\0")]
        {
            assert_eq!(after_prefix(prefix), end);
        }
    }
}
