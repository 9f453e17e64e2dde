//! What is in a snapshot.

use std::collections::BTreeMap;
use std::io::Read;
use std::sync::Arc;

use crate::{End, Error, Header, Reader};

/// The most collections that are counted one by one: far more than a cluster has.
const COLLECTIONS_MAX: usize = 100_000;

/// What is in a snapshot, all of which was checked.
#[derive(Clone, Debug)]
pub struct Summary {
    /// When and by what it was made.
    pub header: Header,
    /// Its revision, size and checksum.
    pub end: End,
    /// Its collections by name.
    pub collections: BTreeMap<Arc<str>, Collection>,
}

/// The objects of a collection in a snapshot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Collection {
    /// The number of objects.
    pub objects: u64,
    /// The bytes of their values.
    pub bytes: u64,
}

impl Summary {
    /// Reads a snapshot from its first byte to its last and checks it.
    pub fn read(source: impl Read) -> Result<Self, Error> {
        let mut reader = Reader::new(source)?;
        let mut collections: BTreeMap<Arc<str>, Collection> = BTreeMap::new();
        while let Some(records) = reader.next_records()? {
            for record in records {
                let name = match collections.len() {
                    COLLECTIONS_MAX => "(others)".into(),
                    _ => record.key.collection,
                };
                let collection = collections.entry(name).or_default();
                collection.objects += 1;
                collection.bytes += record.body.len() as u64;
            }
        }
        let header = reader.header().clone();
        let end = reader.end().cloned().ok_or(Error::Truncated { bytes: 0 })?;
        Ok(Self { header, end, collections })
    }
}
