//! Records of committed writes: keys, values, revisions.

use std::any::Any;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;

/// The number of a committed write; 0 is before the first write.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Revision(pub u64);

impl fmt::Display for Revision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The key of a record: an item of a collection. Cheap to clone.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    /// The collection: `pods`, `apps/deployments`. There is one for each stored resource.
    pub collection: Arc<str>,
    /// The item in the collection: `namespace/name`, or `name`. Items are ordered by their bytes.
    pub item: Arc<str>,
}

/// What a write did to a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The key was absent before.
    Created,
    /// The key had another value before.
    Updated,
    /// The key is absent now; the value is its last one.
    Deleted,
}

/// A committed write.
#[derive(Clone)]
pub struct Record {
    /// The write's number in the order of all writes.
    pub revision: Revision,
    /// The written key.
    pub key: Key,
    /// What the write did to the key.
    pub kind: Kind,
    /// The value, with the bytes that the writer put around it (see [`crate::Template`]).
    pub bytes: Bytes,
    /// The range of the value in `bytes`; all of it in records that come from the medium.
    pub body: Range<usize>,
    /// The writer's note, only in writes of this process.
    pub note: Option<Arc<dyn Any + Send + Sync>>,
}

impl Record {
    /// Returns the value without copying it.
    pub fn value(&self) -> Bytes {
        self.bytes.slice(self.body.clone())
    }

    /// Returns the data that an encrypted value is bound to.
    pub(crate) fn path(&self) -> Vec<u8> {
        format!("{}/{}@{}", self.key.collection, self.key.item, self.revision).into_bytes()
    }
}

/// Whether a stored value has the prefix of upstream's encrypted values. Plain values are JSON and
/// never begin with it.
pub(crate) fn is_encrypted(stored: &[u8]) -> bool {
    stored.starts_with(b"k8s:enc:")
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

/// Equal if the same is stored: notes and bytes around the value do not count.
impl PartialEq for Record {
    fn eq(&self, other: &Self) -> bool {
        self.revision == other.revision
            && self.key == other.key
            && self.kind == other.kind
            && self.bytes[self.body.clone()] == other.bytes[other.body.clone()]
    }
}

impl Eq for Record {}
