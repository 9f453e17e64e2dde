//! What the store keeps: records of keys, numbered by revision.

use std::any::Any;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;

/// The number of a committed write; 0 is "before the first".
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Revision(pub u64);

impl fmt::Display for Revision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// What is written: an item of a collection. Cheap to clone.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    /// The collection: `pods`, `apps/deployments`. One for each stored resource.
    pub collection: Arc<str>,
    /// The item in it: `namespace/name`, or `name`. Items are ordered by their bytes.
    pub item: Arc<str>,
}

/// What became of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// It was absent before.
    Created,
    /// It had another value before.
    Updated,
    /// It is gone; the value is its last state.
    Deleted,
}

/// One committed write.
#[derive(Clone)]
pub struct Record {
    /// Its number in the order of all writes.
    pub revision: Revision,
    /// What was written.
    pub key: Key,
    /// What became of it.
    pub kind: Kind,
    /// The value, with whatever the writer put around it (see [`crate::Template`]).
    pub bytes: Bytes,
    /// Where in `bytes` the value itself is; all of it in records that come from the medium.
    pub body: Range<usize>,
    /// The writer's note, in this process's own writes only.
    pub note: Option<Arc<dyn Any + Send + Sync>>,
}

impl Record {
    /// The value, without copying it.
    pub fn value(&self) -> Bytes {
        self.bytes.slice(self.body.clone())
    }
}

impl fmt::Debug for Record {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Record")
            .field("revision", &self.revision.0)
            .field("key", &self.key)
            .field("kind", &self.kind)
            .field("value", &String::from_utf8_lossy(&self.bytes[self.body.clone()]))
            .finish_non_exhaustive()
    }
}

/// Equal in what is stored: notes and what stands around the value do not count.
impl PartialEq for Record {
    fn eq(&self, other: &Self) -> bool {
        self.revision == other.revision
            && self.key == other.key
            && self.kind == other.kind
            && self.bytes[self.body.clone()] == other.bytes[other.body.clone()]
    }
}

impl Eq for Record {}
