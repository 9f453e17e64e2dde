//! Translation between records and etcd's keys and values.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use pintle_store::{
    Key, Kind, Layout, Mismatch, Record, Revision, TransformError, Transformer, undecryptable,
};

use crate::messages::KeyValue;

/// The layout of the database, below a prefix.
#[derive(Clone)]
pub(crate) struct Translation {
    layout: Arc<dyn Layout>,
    transformer: Option<Arc<dyn Transformer>>,
    /// The prefix, with a slash at its end.
    prefix: Arc<str>,
}

impl Translation {
    /// Makes a translation for keys below `prefix`, whose outer slashes are ignored.
    pub(crate) fn new(
        layout: Arc<dyn Layout>,
        transformer: Option<Arc<dyn Transformer>>,
        prefix: &str,
    ) -> Self {
        Self { layout, transformer, prefix: format!("/{}/", prefix.trim_matches('/')).into() }
    }

    /// Returns the transformer that encrypts values, if they are encrypted.
    pub(crate) fn transformer(&self) -> Option<Arc<dyn Transformer>> {
        self.transformer.clone()
    }

    /// Decodes the record of a stored key as one that was written at `revision`; `None` for a key
    /// that is not the store's.
    ///
    /// # Errors
    /// If the bytes cannot be decrypted or decoded.
    pub(crate) fn record_at(
        &self,
        stored: &KeyValue,
        revision: Revision,
    ) -> Result<Option<Record>, Mismatch> {
        let Some(key) = self.key(&stored.key) else { return Ok(None) };
        let plain = self.plain(&key, stored);
        let (plain, _) = plain.map_err(|TransformError(why)| Mismatch { key: key.clone(), why })?;
        let bytes = self.layout.decode(&key, &plain, revision)?;
        let is_new = stored.create_revision == stored.mod_revision;
        let kind = if is_new { Kind::Created } else { Kind::Updated };
        Ok(Some(Record { revision, key, kind, body: 0..bytes.len(), bytes, note: None }))
    }

    /// Returns the range of all keys of the store: its first key and its end.
    pub(crate) fn everything(&self) -> (Bytes, Bytes) {
        let first = Bytes::copy_from_slice(self.prefix.as_bytes());
        let end = after_prefix(&first);
        (first, end)
    }

    /// Returns a key that is never written, for health checks (upstream:
    /// apiserver/pkg/storage/storagebackend/factory/etcd3.go).
    pub(crate) fn health(&self) -> Bytes {
        format!("{}health", self.prefix).into()
    }

    pub(crate) fn path(&self, key: &Key) -> Bytes {
        format!("{}{}", self.prefix, self.layout.path(key)).into()
    }

    /// Returns the range of a collection's items that begin with `prefix`.
    pub(crate) fn range(&self, collection: &str, prefix: &str) -> (Bytes, Bytes) {
        let first = self.path(&Key { collection: collection.into(), item: prefix.into() });
        let end = after_prefix(&first);
        (first, end)
    }

    /// Returns the key of a path; `None` if the path is not the store's.
    pub(crate) fn key(&self, path: &[u8]) -> Option<Key> {
        let path = std::str::from_utf8(path).ok()?;
        self.layout.key(path.strip_prefix(&*self.prefix)?)
    }

    /// Encodes a value for storage at a path.
    pub(crate) fn encode(
        &self,
        key: &Key,
        path: &[u8],
        value: &[u8],
        kind: Kind,
    ) -> Result<Bytes, Mismatch> {
        let bytes = self.layout.encode(key, value, kind)?;
        let Some(transformer) = &self.transformer else { return Ok(bytes) };
        let stored = transformer.to_storage(key, path, bytes);
        stored.map_err(|TransformError(why)| Mismatch { key: key.clone(), why })
    }

    /// Returns the lifetime of a key's value.
    pub(crate) fn lifetime(&self, key: &Key) -> Option<Duration> {
        self.layout.lifetime(key)
    }

    /// Whether a key's stored bytes have the form in which they would be written now.
    pub(crate) fn is_current(&self, key: &Key, stored: &KeyValue) -> bool {
        match self.plain(key, stored) {
            Ok((_, is_stale)) if is_stale => false,
            Ok((plain, _)) => self.layout.is_current(key, &plain),
            Err(_) => true, // an unreadable value cannot be rewritten
        }
    }

    /// Decodes the record of a stored key; `None` for a key that is not the store's. If the bytes
    /// cannot be decoded, they are the record's value; if they cannot be decrypted, the value is a
    /// placeholder.
    pub(crate) fn record(&self, stored: &KeyValue) -> Option<Record> {
        let key = self.key(&stored.key)?;
        let revision = revision(stored.mod_revision);
        let decoded = match self.plain(&key, stored) {
            Ok((plain, _)) => self
                .layout
                .decode(&key, &plain, revision)
                .map_err(|why| (why, stored.value.clone())),
            Err(why) => {
                let bytes = undecryptable(&why);
                Err((Mismatch { key: key.clone(), why: why.0 }, bytes))
            }
        };
        let bytes = decoded.unwrap_or_else(|(why, bytes)| {
            tracing::warn!(%why, %revision, "cannot read a stored value; requests for its object fail");
            bytes
        });
        let is_new = stored.create_revision == stored.mod_revision;
        let kind = if is_new { Kind::Created } else { Kind::Updated };
        Some(Record { revision, key, kind, body: 0..bytes.len(), bytes, note: None })
    }

    /// Decrypts the bytes of a key; true if they would be encrypted with another key or method now.
    fn plain(&self, key: &Key, stored: &KeyValue) -> Result<(Bytes, bool), TransformError> {
        let Some(transformer) = &self.transformer else { return Ok((stored.value.clone(), false)) };
        let plain = transformer.to_value(key, &stored.key, stored.value.clone())?;
        Ok((plain.value, plain.is_stale))
    }

    /// Returns the record of a deletion by another process, without a value.
    pub(crate) fn deletion(&self, event: &KeyValue) -> Option<Record> {
        let (key, revision) = (self.key(&event.key)?, revision(event.mod_revision));
        let (kind, bytes) = (Kind::Deleted, Bytes::new());
        Some(Record { revision, key, kind, body: 0..0, bytes, note: None })
    }
}

/// Returns the end of the range of all keys with a prefix.
fn after_prefix(prefix: &[u8]) -> Bytes {
    let mut end = prefix.to_vec();
    while let Some(last) = end.pop() {
        if last < u8::MAX {
            end.push(last + 1);
            return end.into();
        }
    }
    Bytes::from_static(b"\0") // unbounded
}

/// Converts etcd's signed revision.
pub(crate) fn revision(number: i64) -> Revision {
    Revision(u64::try_from(number).unwrap_or(0))
}

/// Converts a revision to etcd's; `None` if no database can have it.
pub(crate) fn number(revision: Revision) -> Option<i64> {
    i64::try_from(revision.0).ok()
}

#[cfg(test)]
mod tests {
    use pintle_store::{Transformed, why_undecryptable};

    use super::*;
    use crate::tests::plain;

    /// Stores a value behind the path that it is written at.
    #[derive(Debug)]
    struct Bound;

    impl Transformer for Bound {
        fn to_storage(&self, _: &Key, path: &[u8], value: Bytes) -> Result<Bytes, TransformError> {
            Ok([path, b"|", &value].concat().into())
        }

        fn to_value(
            &self,
            _: &Key,
            path: &[u8],
            stored: Bytes,
        ) -> Result<Transformed, TransformError> {
            let value = stored.strip_prefix(path).and_then(|rest| rest.strip_prefix(b"|"));
            let value = value.ok_or_else(|| TransformError("not from here".to_owned()))?;
            let is_stale = value.starts_with(b"old");
            Ok(Transformed { value: Bytes::copy_from_slice(value), is_stale })
        }

        fn fingerprint(&self) -> u64 {
            1
        }
    }

    /// The placeholder of an undecryptable value never equals the stored bytes, even if these are
    /// plain JSON.
    #[test]
    fn values_are_bound_to_the_whole_path() {
        let translation = Translation::new(plain(), Some(Arc::new(Bound)), "registry");
        let key = Key { collection: "things".into(), item: "a".into() };
        let path = translation.path(&key);
        let stored = translation.encode(&key, &path, b"new", Kind::Created).unwrap();
        assert_eq!(stored, &b"/registry/things/a|new"[..]);
        let key_value = |value: &[u8]| KeyValue {
            key: path.clone(),
            value: Bytes::copy_from_slice(value),
            ..KeyValue::default()
        };
        for (stored, value, is_current) in [
            (&b"/registry/things/a|new"[..], Ok("new"), true),
            (b"/registry/things/a|old", Ok("old"), false),
            (b"/registry/things/b|new", Err("not from here"), true),
            (b"{}", Err("not from here"), true),
        ] {
            let record = translation.record(&key_value(stored)).unwrap();
            let read = match why_undecryptable(&record.bytes) {
                Some(why) => Err(why),
                None => Ok(std::str::from_utf8(&record.bytes).unwrap()),
            };
            assert_eq!(read, value);
            assert_eq!(translation.is_current(&key, &key_value(stored)), is_current);
        }
    }

    #[test]
    fn the_end_of_a_prefix_is_exclusive() {
        for (prefix, end) in
            [(&b"a/"[..], &b"a0"[..]), (b"a\xff", b"b"), (b"\xff\xff", b"\0"), (b"", b"\0")]
        {
            assert_eq!(after_prefix(prefix), end);
        }
    }
}
