//! Making a store of a snapshot.

use std::io::Read;
use std::path::Path;

use pintle_store::{Restoration, Revision};

use crate::{Error, Reader};

/// How many revisions a restored store is ahead of its snapshot at least. etcd's documentation
/// recommends this number.
const AHEAD_MIN: u64 = 1_000_000_000;

/// How many further revisions a restored store is ahead for each millisecond since the snapshot was
/// taken: no server writes so fast.
const AHEAD_PER_MILLISECOND: u64 = 100;

/// The largest revision at which a store can continue. Clients read revisions as signed numbers,
/// and half of their range is left for later writes.
const REVISION_MAX: u64 = i64::MAX as u64 / 2;

/// A restored store.
#[derive(Debug)]
pub struct Restored {
    /// The revision of the snapshot.
    pub snapshot: Revision,
    /// The revision at which the store continues. Watches from older ones are refused.
    pub floor: Revision,
    /// The number of objects.
    pub records: u64,
}

/// Makes the store at `dir` of a snapshot. `ahead` is how many revisions the store is ahead of the
/// snapshot; with `None`, [`floor_after`] computes the revision from `now_unix_micros`.
pub fn restore(
    source: impl Read,
    dir: &Path,
    ahead: Option<u64>,
    now_unix_micros: i64,
) -> Result<Restored, Error> {
    let mut reader = Reader::new(source)?;
    let mut restoration = Restoration::begin(dir)?;
    while let Some(records) = reader.next_records()? {
        restoration.add(records)?;
    }
    let end = reader.end().ok_or(Error::Truncated { bytes: 0 })?;
    let floor = match ahead {
        Some(ahead) => Revision(end.revision.0.saturating_add(ahead)),
        None => floor_after(end.revision, now_unix_micros - reader.header().created_unix_micros),
    };
    if floor.0 > REVISION_MAX {
        return Err(Error::Revision(floor.0));
    }
    let restored = Restored { snapshot: end.revision, floor, records: end.records };
    restoration.finish(floor)?;
    Ok(restored)
}

/// Returns the revision at which a restored store continues. `elapsed_micros` is the time between
/// the beginning of the snapshot and the restore.
///
/// This revision is above every one that the snapshot's server can have assigned meanwhile, and
/// above every revision of an earlier store that was restored from the same snapshot. So no
/// client can resume from a revision that it has received from another store.
pub fn floor_after(snapshot: Revision, elapsed_micros: i64) -> Revision {
    let milliseconds = u64::try_from(elapsed_micros / 1000).unwrap_or(0);
    let ahead = milliseconds.saturating_mul(AHEAD_PER_MILLISECOND).saturating_add(AHEAD_MIN);
    Revision(snapshot.0.saturating_add(ahead))
}
