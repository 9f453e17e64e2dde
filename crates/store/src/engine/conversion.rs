//! Rewriting of a database in the form of the current configuration.
//!
//! redb leaves the old content of unused pages in its file until it reuses them. So a store whose
//! values must be encrypted, or encrypted by another configuration, is written to a new file that
//! replaces the old one: no old content is left in the directory.

use std::sync::Arc;

use redb::{Builder, Database, ReadTransaction, ReadableDatabase, ReadableTable};

use super::cipher::Cipher;
use super::database::{CACHE_BYTES, ENCRYPTION, NUMBERS, SyncState, TrackedStorage, failure};
use super::entry::Row;
use super::tables::{self, Packing, Tables};
use super::{Failure, Location};
use crate::Revision;

/// A transaction takes no more records after this many bytes.
const PORTION_BYTES: usize = 8 << 20;

/// Copies the records of a database to the replacement at its location, encoded by `cipher`.
pub(super) fn convert(
    from: &Database,
    location: &dyn Location,
    cipher: &Cipher,
) -> Result<(), Failure> {
    let synced = Arc::new(SyncState::default());
    let storage = TrackedStorage { storage: location.replacement()?, synced: synced.clone() };
    let to = Builder::new().set_cache_size(CACHE_BYTES).create_with_backend(storage);
    let to = to.map_err(failure)?;
    let read = from.begin_read().map_err(failure)?;
    let mut after = Revision(0);
    loop {
        let rows = portion(&read, after, cipher)?;
        let Some((last, _)) = rows.last() else { break };
        after = *last;
        let write = to.begin_write().map_err(failure)?;
        Tables::open(&write)?.insert(&rows.iter().collect::<Vec<_>>(), Packing::Blocks)?;
        write.commit().map_err(failure)?;
    }
    let write = to.begin_write().map_err(failure)?;
    {
        Tables::open(&write)?; // even without records
        let mut numbers = write.open_table(NUMBERS).map_err(failure)?;
        for row in read.open_table(NUMBERS).map_err(failure)?.iter().map_err(failure)? {
            let (name, number) = row.map_err(failure)?;
            numbers.insert(name.value(), number.value()).map_err(failure)?;
        }
        numbers.insert(ENCRYPTION, cipher.fingerprint()).map_err(failure)?;
    }
    write.commit().map_err(failure)?;
    drop(to); // redb writes once more, and does not say whether that failed
    if synced.is_synced() {
        Ok(())
    } else {
        Err(Failure("its new file is not all on disk".to_owned()))
    }
}

/// Returns the next records after a revision, encoded by `cipher`; none at the end.
fn portion(read: &ReadTransaction, after: Revision, cipher: &Cipher) -> Result<Vec<Row>, Failure> {
    let (mut rows, mut bytes) = (Vec::new(), 0);
    tables::scan(read, after, &mut |revision, stored| {
        let (record, _) = cipher.decode(revision, stored)?;
        let stored = cipher.encode(&record)?;
        bytes += stored.len();
        rows.push((revision, stored.into()));
        Ok(bytes < PORTION_BYTES)
    })?;
    Ok(rows)
}
