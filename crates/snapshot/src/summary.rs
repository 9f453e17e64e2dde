//! The contents of a snapshot in numbers.

use std::collections::BTreeMap;
use std::io::Read;
use std::sync::Arc;

use crate::{End, Error, Header, Reader};

/// The number of collections above which further records are counted together: far more than a
/// cluster has.
const COLLECTIONS_MAX: usize = 100_000;
const OTHERS: &str = "(others)";

/// The contents of a snapshot that was read and checked as a whole.
#[derive(Clone, Debug)]
pub struct Summary {
    /// When and by which program the snapshot was made.
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
                let collection = count_in(&mut collections, record.key.collection);
                collection.objects += 1;
                collection.bytes += record.body.len() as u64;
            }
        }
        let header = reader.header().clone();
        let end = reader.end().cloned().ok_or(Error::Truncated { bytes: 0 })?;
        Ok(Self { header, end, collections })
    }
}

/// Returns the counters of a collection; those of [`OTHERS`] if there are too many collections.
fn count_in(counts: &mut BTreeMap<Arc<str>, Collection>, name: Arc<str>) -> &mut Collection {
    let has_own = counts.len() < COLLECTIONS_MAX || counts.contains_key(&name);
    counts.entry(if has_own { name } else { OTHERS.into() }).or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn further_collections_are_counted_together() {
        let mut counts = BTreeMap::new();
        for number in 0..COLLECTIONS_MAX + 10 {
            count_in(&mut counts, number.to_string().into()).objects += 1;
        }
        count_in(&mut counts, "7".into()).objects += 1;
        assert_eq!(counts.len(), COLLECTIONS_MAX + 1);
        assert_eq!((counts["7"].objects, counts[OTHERS].objects), (2, 10));
    }
}
