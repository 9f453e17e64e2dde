//! The state of a store at one revision, as it is stored: the content of a backup.
//!
//! An embedded store's values stay in the form in which its medium has them: none is decrypted for
//! a backup, and no key is needed to make one. The state of an etcd (crate `etcd`) decrypts values
//! and encrypts them again, and needs the keys.
//!
//! It must not know the format of backups.
//!
//! Invariants:
//! - The records are exactly those that are visible at the revision.
//! - Memory is bounded by one portion; the medium is read in portions, so that no long read blocks
//!   the reuse of its pages.

use std::sync::Arc;

use bytes::Bytes;

use crate::horizon::LastingPin;
use crate::index::Version;
use crate::record::is_encrypted;
use crate::shared::Shared;
use crate::threads::on_thread;
use crate::{BoxFuture, Error, Record, Revision, TransformError, Transformer, damage};

/// The most records of a portion, and the bytes of values after which it takes no more.
const RECORDS_MAX: usize = 4096;
const BYTES_MAX: usize = 1 << 20;

/// The state of a store at one revision. It stays readable until this is dropped.
pub trait StoredState: Send {
    /// Returns the revision of the state. On a shared database it is final after the last record:
    /// records that share a revision get revisions of their own, which end with this one.
    fn revision(&self) -> Revision;

    /// Returns the next records, whose values are in the form of the embedded store; none at the
    /// end. Cancel safe: a cancelled call loses no records; the next call returns them.
    fn next(&mut self) -> BoxFuture<'_, Result<Vec<Record>, Error>>;
}

/// Returns the value of a record in the form in which an embedded store with this transformer
/// stores it.
pub fn sealed(
    transformer: Option<&dyn Transformer>,
    record: &Record,
) -> Result<Bytes, TransformError> {
    let Some(transformer) = transformer else { return Ok(record.value()) };
    transformer.to_storage(&record.key, &record.path(), record.value())
}

/// Returns the value of a record that [`sealed`] has encrypted.
pub fn unsealed(
    transformer: Option<&dyn Transformer>,
    record: &Record,
) -> Result<Bytes, TransformError> {
    match transformer {
        Some(transformer) => {
            let read = transformer.to_value(&record.key, &record.path(), record.value())?;
            Ok(read.value)
        }
        None if is_encrypted(&record.bytes[record.body.clone()]) => {
            Err(TransformError("it is encrypted, and no encryption is configured".to_owned()))
        }
        None => Ok(record.value()),
    }
}

/// The state of an embedded store.
pub(crate) struct LocalState {
    shared: Arc<Shared>,
    pin: LastingPin,
    /// The revision of the last record that was read.
    after: Revision,
}

impl LocalState {
    pub(crate) fn at_head(shared: &Arc<Shared>) -> Self {
        Self { shared: shared.clone(), pin: shared.horizon.pin_head(), after: Revision(0) }
    }
}

impl StoredState for LocalState {
    fn revision(&self) -> Revision {
        self.pin.revision
    }

    fn next(&mut self) -> BoxFuture<'_, Result<Vec<Record>, Error>> {
        Box::pin(async move {
            while self.after < self.pin.revision {
                let (shared, at, after) = (self.shared.clone(), self.pin.revision, self.after);
                let read = move || damage::guard(|| portion(&shared, at, after));
                let (records, last) = on_thread("store-backup", read).await?;
                self.after = last;
                if !records.is_empty() {
                    return Ok(records);
                }
            }
            Ok(Vec::new())
        })
    }
}

/// Reads the next records after a revision. Returns those that are visible at `at`, and the
/// revision up to which it has read.
fn portion(
    shared: &Shared,
    at: Revision,
    after: Revision,
) -> Result<(Vec<Record>, Revision), Error> {
    let (mut records, mut bytes) = (Vec::new(), 0);
    let scanned = shared.engine.scan_stored(after, &mut |record| {
        if record.revision > at {
            return Ok(false);
        }
        bytes += record.body.len();
        records.push(record);
        Ok(records.len() < RECORDS_MAX && bytes < BYTES_MAX)
    });
    scanned.map_err(|failure| shared.unreadable(failure))?;
    let last = records.last().map_or(at, |record| record.revision);
    let index = shared.index.read();
    records.retain(|record| index.at(&record.key, at) == Some(Version::new(record.revision, true)));
    Ok((records, last))
}
