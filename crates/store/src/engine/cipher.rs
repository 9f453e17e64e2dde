//! Values as a medium stores them, and back: encrypted or plain.
//!
//! Invariants:
//! - A value is bound to its key and revision, as far as its method of encryption authenticates anything: it
//!   can neither stand for another nor be one of the past.
//! - A value that is encrypted is never taken for a plain one, also where nothing is configured.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::Failure;
use crate::{Record, Revision, Transformer, encoding};

/// What upstream's encrypted values begin with. No plain value does: it is JSON.
const ENCRYPTED: &[u8] = b"k8s:enc:";

/// Between records and the bytes of the medium.
#[derive(Debug)]
pub(super) struct Cipher {
    transformer: Option<Arc<dyn Transformer>>,
    /// Whether a record was read that would be stored otherwise now.
    found_stale: AtomicBool,
}

impl Cipher {
    pub(super) fn new(transformer: Option<Arc<dyn Transformer>>) -> Self {
        Self { transformer, found_stale: AtomicBool::new(false) }
    }

    /// Tells apart what is written by one configuration and by another; 0 for plain values.
    pub(super) fn fingerprint(&self) -> u64 {
        self.transformer.as_ref().map_or(0, |transformer| transformer.fingerprint().max(1))
    }

    /// Whether values are encrypted at all.
    pub(super) const fn is_on(&self) -> bool {
        self.transformer.is_some()
    }

    /// Whether a record was read that would be stored otherwise now.
    pub(super) fn found_stale(&self) -> bool {
        self.found_stale.load(Ordering::Relaxed)
    }

    /// The bytes of a record.
    pub(super) fn encode(&self, record: &Record) -> Result<Vec<u8>, Failure> {
        let Some(transformer) = &self.transformer else {
            return encoding::encode(record, &record.bytes[record.body.clone()]);
        };
        let stored = transformer.to_storage(&record.key, &path(record), record.value());
        let stored = stored.map_err(|why| {
            Failure(format!("the value of {} cannot be encrypted: {why}", named(record)))
        })?;
        encoding::encode(record, &stored)
    }

    /// The record of a revision, and whether it would be stored otherwise now.
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
            if record.bytes.starts_with(ENCRYPTED) {
                return Err(undecryptable("no encryption is configured"));
            }
            return Ok((record, false));
        };
        let plain = transformer.to_value(&record.key, &path(&record), record.bytes.clone());
        let plain = plain.map_err(|why| undecryptable(&why.0))?;
        if plain.is_stale {
            self.found_stale.store(true, Ordering::Relaxed);
        }
        (record.body, record.bytes) = (0..plain.value.len(), plain.value);
        Ok((record, plain.is_stale))
    }
}

/// What a value is bound to.
fn path(record: &Record) -> Vec<u8> {
    format!("{}/{}@{}", record.key.collection, record.key.item, record.revision).into_bytes()
}

fn named(record: &Record) -> String {
    let Record { key, revision, .. } = record;
    format!("{} {} at revision {revision}", key.collection, key.item)
}
