//! A committed object: its one encoding, and what selection needs of it.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use pintle_store::Revision;
use pintle_value::Str;

/// An object as it is kept and sent. Shared by the cache, every list and every watch.
///
/// The bytes are the watch frame of the write that made this version (`{"type":"MODIFIED","object":`
/// … `}` and a newline), and the object's JSON is a slice of it: encoded once, held once.
#[derive(Debug)]
pub struct Object {
    bytes: Bytes,
    body: Range<usize>,
    /// `namespace/name`, or `name`: the key in its collection.
    pub item: Arc<str>,
    /// The write that made this version.
    pub revision: Revision,
    /// What selectors look at.
    pub index: Arc<Index>,
}

/// What selectors look at, apart from name and namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Index {
    /// Labels, sorted by key.
    pub labels: Vec<(Str, Str)>,
    /// The values of the resource's selectable fields, in the order of `Strategy::fields`.
    pub fields: Vec<Str>,
}

impl Object {
    /// The object's JSON in its stored form, compact, with `kind` and `apiVersion` first.
    pub fn json(&self) -> Bytes {
        self.bytes.slice(self.body.clone())
    }

    /// The namespace, `""` for a cluster-scoped object.
    pub fn namespace(&self) -> &str {
        self.item.split_once('/').map_or("", |(namespace, _)| namespace)
    }

    /// The name.
    pub fn name(&self) -> &str {
        self.item.split_once('/').map_or(&*self.item, |(_, name)| name)
    }
}
