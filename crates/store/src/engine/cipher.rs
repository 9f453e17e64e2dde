//! Encryption and decryption of values for a medium.
//!
//! Invariants:
//! - If its encryption authenticates data at all, a value is bound to its key and revision: it
//!   cannot stand in for the value of another key or another revision.
//! - An encrypted value is never taken for a plain one, even without configured encryption.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::Failure;
use crate::record::is_encrypted;
use crate::{Record, Revision, Transformer, encoding};

/// Encodes records to the medium's bytes and decodes them.
#[derive(Debug)]
pub(super) struct Cipher {
    transformer: Option<Arc<dyn Transformer>>,
    /// Whether a record was read that is not in the current form.
    found_stale: AtomicBool,
}

impl Cipher {
    pub(super) fn new(transformer: Option<Arc<dyn Transformer>>) -> Self {
        Self { transformer, found_stale: AtomicBool::new(false) }
    }

    /// Identifies the configuration by which values are written; 0 for plain values.
    pub(super) fn fingerprint(&self) -> u64 {
        self.transformer.as_ref().map_or(0, |transformer| transformer.fingerprint().max(1))
    }

    /// Whether values are encrypted.
    pub(super) const fn is_on(&self) -> bool {
        self.transformer.is_some()
    }

    /// Whether a record was read that is not in the current form.
    pub(super) fn found_stale(&self) -> bool {
        self.found_stale.load(Ordering::Relaxed)
    }

    /// Encodes a record.
    pub(super) fn encode(&self, record: &Record) -> Result<Vec<u8>, Failure> {
        let Some(transformer) = &self.transformer else {
            return encoding::encode(record, &record.bytes[record.body.clone()]);
        };
        let stored = transformer.to_storage(&record.key, &record.path(), record.value());
        let stored = stored.map_err(|why| {
            Failure(format!("the value of {} cannot be encrypted: {why}", named(record)))
        })?;
        encoding::encode(record, &stored)
    }

    /// Decodes the record of a revision; true if it is not in the current form.
    pub(super) fn decode(
        &self,
        revision: Revision,
        bytes: &[u8],
    ) -> Result<(Record, bool), Failure> {
        let mut record = encoding::decode(revision, bytes)?;
        let undecryptable = |why: &str| {
            Failure(format!(
                "the value of {} cannot be decrypted: {why}; --encryption-provider-config must name the \
                 keys that it was encrypted with",
                named(&record)
            ))
        };
        let Some(transformer) = &self.transformer else {
            if is_encrypted(&record.bytes) {
                return Err(undecryptable("no encryption is configured"));
            }
            return Ok((record, false));
        };
        let plain = transformer.to_value(&record.key, &record.path(), record.bytes.clone());
        let plain = plain.map_err(|why| undecryptable(&why.0))?;
        if plain.is_stale {
            self.found_stale.store(true, Ordering::Relaxed);
        }
        (record.body, record.bytes) = (0..plain.value.len(), plain.value);
        Ok((record, plain.is_stale))
    }
}

fn named(record: &Record) -> String {
    let Record { key, revision, .. } = record;
    format!("{} {} at revision {revision}", key.collection, key.item)
}
