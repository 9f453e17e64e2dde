//! The state of the database at one revision, for a backup: all objects in the form of an embedded
//! store.
//!
//! Invariants:
//! - All pages are of one revision.
//! - A value that cannot be read is an error, never left out.
//! - Values of resources that the configuration encrypts leave this module encrypted.
//! - Each record has a revision of its own, as an embedded store needs it. Where etcd has several
//!   keys of one revision, all but the first get revisions after the newest.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use pintle_store::{BoxFuture, Error, Record, Revision, StoredState, Transformer, sealed};

use crate::horizon::LastingPin;
use crate::messages::{KeyValue, RangeRequest};
use crate::reading::{Reading, on_blocking_thread, page_keys};
use crate::translation::{Translation, number, revision};

/// The number of keys in the first page.
const PAGE_KEYS: i64 = 500;

/// Keys with a shorter lifetime are left out: servers write them about themselves, and on a
/// restored server the keys would never expire.
const LIFETIME_MIN: Duration = Duration::from_secs(60);

/// The state of the database that was the newest when this value was made.
pub(crate) struct EtcdState {
    reading: Reading,
    transformer: Option<Arc<dyn Transformer>>,
    pin: LastingPin,
    /// The first key of the next page and the number of its keys; `None` at the end.
    next: Option<(Bytes, i64)>,
    /// The revisions of the records so far.
    taken: HashSet<u64>,
    newest: Revision,
}

impl EtcdState {
    pub(crate) fn new(
        reading: Reading,
        transformer: Option<Arc<dyn Transformer>>,
        pin: LastingPin,
    ) -> Self {
        let (first, _) = reading.translation.everything();
        let (next, newest) = (Some((first, PAGE_KEYS)), pin.revision);
        Self { reading, transformer, pin, next, taken: HashSet::new(), newest }
    }

    /// Reads the next page.
    async fn page(&mut self) -> Result<Vec<Record>, Error> {
        let Some((key, limit)) = self.next.clone() else { return Ok(Vec::new()) };
        let (_, range_end) = self.reading.translation.everything();
        let at = number(self.pin.revision).unwrap_or(i64::MAX);
        let request = RangeRequest { key, range_end, limit, revision: at, keys_only: false };
        let page = self.reading.etcd.range(request).await;
        let page = page.map_err(|why| Error::Failed { reason: why.to_string() })?;
        let last = page.kvs.last().filter(|_| page.more);
        let next: Option<Bytes> = last.map(|last| [&last.key[..], b"\0"].concat().into());
        let limit = page_keys(&page.kvs);
        let taken: Vec<_> = page.kvs.into_iter().filter_map(|stored| self.take(stored)).collect();
        let (translation, transformer) =
            (self.reading.translation.clone(), self.transformer.clone());
        let records = on_blocking_thread(move || {
            let record =
                |(stored, at): &_| record(&translation, transformer.as_deref(), stored, *at);
            Some(taken.iter().filter_map(|one| record(one).transpose()).collect())
        });
        let closed = || Error::Failed { reason: "the server stops".to_owned() };
        let records: Result<Vec<_>, Error> = records.await.ok_or_else(closed)?;
        let records = records?;
        self.next = next.map(|key| (key, limit));
        Ok(records)
    }

    /// Returns a key with the revision of its record; `None` for a key that is left out.
    fn take(&mut self, stored: KeyValue) -> Option<(KeyValue, Revision)> {
        let translation = &self.reading.translation;
        let Some(key) = translation.key(&stored.key) else {
            let path = String::from_utf8_lossy(&stored.key);
            tracing::warn!(%path, "left a key out of the backup: it is of no known resource");
            return None;
        };
        if translation.lifetime(&key).is_some_and(|lifetime| lifetime < LIFETIME_MIN) {
            return None;
        }
        let mut at = revision(stored.mod_revision);
        if !self.taken.insert(at.0) {
            self.newest.0 += 1;
            at = self.newest;
        }
        Some((stored, at))
    }
}

/// Returns the record of a key at a revision; `None` for a key without an object.
fn record(
    translation: &Translation,
    transformer: Option<&dyn Transformer>,
    stored: &KeyValue,
    at: Revision,
) -> Result<Option<Record>, Error> {
    let failed = |why: String| {
        let path = String::from_utf8_lossy(&stored.key);
        Error::Failed { reason: format!("{path}: {why}") }
    };
    let record = translation.record_at(stored, at).map_err(|why| failed(why.to_string()))?;
    let Some(mut record) = record else { return Ok(None) };
    let value = sealed(transformer, &record).map_err(|why| failed(why.0))?;
    (record.body, record.bytes) = (0..value.len(), value);
    Ok(Some(record))
}

impl StoredState for EtcdState {
    fn revision(&self) -> Revision {
        self.newest
    }

    fn next(&mut self) -> BoxFuture<'_, Result<Vec<Record>, Error>> {
        Box::pin(async move {
            while self.next.is_some() {
                let records = self.page().await?;
                if !records.is_empty() {
                    return Ok(records);
                }
            }
            Ok(Vec::new())
        })
    }
}
