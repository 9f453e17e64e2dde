//! Reads of etcd: keys, ranges in pages, whole states, and the newest and oldest revisions.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use pintle_store::{Error as StoreError, Key, Record, Revision};
use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::time::{Instant, timeout};

use crate::client::{Etcd, Watch};
use crate::error::Error;
use crate::horizon::Horizon;
use crate::measures::Measures;
use crate::messages::{KeyValue, RangeRequest, RangeResponse, ResponseHeader, WatchCreateRequest};
use crate::translation::{Translation, number, revision};

/// The number of keys in the first page of a range, and the most in further pages. etcd counts all
/// keys of a range for each page, so pages should be few.
const PAGE_KEYS: i64 = 1000;
const PAGE_KEYS_MAX: i64 = 10_000;

/// The size of the values that a page should have, estimated from the previous page.
const PAGE_BYTES: usize = 16 << 20;

/// Pages with more bytes of values than this are decoded on a blocking thread.
const DECODED_INLINE_BYTES_MAX: usize = 64 << 10;

/// How long etcd may take to end a watch from a compacted revision.
const REFUSAL_TIMEOUT: Duration = Duration::from_secs(5);

/// Reads of etcd in terms of the store's keys and records.
#[derive(Clone)]
pub(crate) struct Reading {
    pub(crate) etcd: Arc<dyn Etcd>,
    pub(crate) translation: Translation,
    pub(crate) measures: Arc<Measures>,
}

impl Reading {
    /// Returns a header: a linearizable read of the newest revision, without keys.
    pub(crate) async fn header(&self) -> Result<ResponseHeader, Error> {
        let key = self.translation.health();
        let request = RangeRequest { key, keys_only: true, ..RangeRequest::default() };
        Ok(self.etcd.range(request).await?.header)
    }

    /// Reads a key's value at a revision, or the newest.
    pub(crate) async fn key(
        &self,
        key: &Key,
        at: Option<i64>,
    ) -> Result<(Option<KeyValue>, ResponseHeader), Error> {
        let (path, revision) = (self.translation.path(key), at.unwrap_or(0));
        let request = RangeRequest { key: path, revision, ..RangeRequest::default() };
        let begun = Instant::now();
        let response = self.etcd.range(request).await;
        self.measures.request(("get", &key.collection), begun, &response);
        let response = response?;
        Ok((response.kvs.into_iter().next(), response.header))
    }

    /// Reads the records of a collection whose items begin with `prefix`, at a revision or the
    /// newest.
    pub(crate) async fn collection(
        &self,
        collection: &str,
        prefix: &str,
        at: Option<i64>,
    ) -> Result<Vec<Record>, Error> {
        let range = self.translation.range(collection, prefix);
        let (mut records, _) = self.records(collection, range, at).await?;
        records.retain(|record| *record.key.collection == *collection);
        let lists = self.measures.lists.with([collection]);
        lists.count.add(1);
        lists.fetched.add(records.len() as u64);
        Ok(records)
    }

    /// Reads the records of a range at a revision or the newest, ordered by path; returns the
    /// revision, too. `collection` is for the measures.
    async fn records(
        &self,
        collection: &str,
        range: (Bytes, Bytes),
        at: Option<i64>,
    ) -> Result<(Vec<Record>, Revision), Error> {
        let (key, range_end) = range;
        let mut at = at.unwrap_or(0);
        let mut records = Vec::new();
        let page = |key: Bytes, limit: i64, revision: i64| {
            let range_end = range_end.clone();
            let request = RangeRequest { key, range_end, limit, revision, keys_only: false };
            async move {
                let begun = Instant::now();
                let page = self.etcd.range(request).await;
                self.measures.request(("list", collection), begun, &page);
                page
            }
        };
        let mut next = Some(page(key, PAGE_KEYS, at).await?);
        while let Some(RangeResponse { header, kvs, more }) = next {
            if at == 0 {
                at = header.revision;
            }
            let last = kvs.last().filter(|_| more);
            let last = last.map(|last| [&last.key[..], b"\0"].concat().into());
            let limit = page_keys(&kvs);
            let following = async {
                match last {
                    Some(key) => page(key, limit, at).await.map(Some),
                    None => Ok(None),
                }
            };
            let (decoded, following) = tokio::join!(self.decoded(kvs), following);
            records.extend(decoded);
            next = following?;
        }
        Ok((records, revision(at)))
    }

    /// Reads all records at a revision or the newest, ordered by revision.
    pub(crate) async fn state(&self, at: Option<i64>) -> Result<(Vec<Record>, Revision), Error> {
        let (mut records, at) = self.records("", self.translation.everything(), at).await?;
        records.sort_by_key(|record| record.revision);
        Ok((records, at))
    }

    async fn decoded(&self, stored: Vec<KeyValue>) -> Vec<Record> {
        let bytes: usize = stored.iter().map(|stored| stored.value.len()).sum();
        let translation = self.translation.clone();
        let decode = move || -> Vec<Record> {
            stored.iter().filter_map(|stored| translation.record(stored)).collect()
        };
        if bytes <= DECODED_INLINE_BYTES_MAX { decode() } else { on_blocking_thread(decode).await }
    }

    /// Returns the oldest readable revision: that of the last compaction.
    pub(crate) async fn floor(&self) -> Result<Revision, Error> {
        let key = self.translation.health();
        let first = RangeRequest { key: key.clone(), revision: 1, ..RangeRequest::default() };
        match self.etcd.range(first).await {
            Ok(_) => return Ok(Revision(1)), // etcd's first revision
            Err(Error::Compacted) => {}
            Err(error) => return Err(error),
        }
        // etcd cancels a watch from a compacted revision and names the oldest readable revision.
        let create = WatchCreateRequest { key, start_revision: 1, ..WatchCreateRequest::default() };
        let mut watch = self.etcd.watch(create).await?;
        timeout(REFUSAL_TIMEOUT, oldest_of_refusal(&mut *watch)).await.unwrap_or_else(|_| {
            self.etcd.leave_watched();
            let why = "a watch from a compacted revision was not ended";
            Err(Error::Lost(format!("{why} in {REFUSAL_TIMEOUT:?}")))
        })
    }
}

/// Returns the oldest readable revision, which the end of a watch from a compacted one names.
async fn oldest_of_refusal(watch: &mut dyn Watch) -> Result<Revision, Error> {
    loop {
        let message = watch.next().await?;
        if message.canceled && message.compact_revision > 0 {
            return Ok(revision(message.compact_revision));
        }
        if message.canceled {
            return Err(Error::Lost(format!("a watch was ended: {}", message.cancel_reason)));
        }
    }
}

/// Returns how many keys the page after this one should have.
pub(crate) fn page_keys(page: &[KeyValue]) -> i64 {
    let bytes: usize = page.iter().map(|stored| stored.value.len()).sum();
    let keys = PAGE_BYTES.saturating_mul(page.len()) / bytes.max(1);
    i64::try_from(keys).unwrap_or(i64::MAX).clamp(1, PAGE_KEYS_MAX)
}

/// Runs work on a blocking thread, so that it does not block other tasks. A runtime with one thread
/// belongs to a test whose order must be repeatable, so there the work runs on the caller's thread.
pub(crate) async fn on_blocking_thread<T: Default + Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> T {
    if Handle::current().runtime_flavor() == RuntimeFlavor::CurrentThread {
        return work();
    }
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        Err(failed) => match failed.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            Err(_) => T::default(), // the runtime shuts down
        },
    }
}

/// Returns the store's error for a failed read at a revision.
pub(crate) fn read_error(error: Error, at: Option<Revision>, horizon: &Horizon) -> StoreError {
    match (error, at) {
        (Error::Compacted, Some(requested)) => {
            horizon.raise_floor(Revision(requested.0.saturating_add(1)));
            StoreError::Compacted { requested, floor: horizon.floor() }
        }
        (Error::Future, Some(requested)) => StoreError::Future { requested, head: horizon.head() },
        (error, _) => StoreError::Failed { reason: error.to_string() },
    }
}

/// Returns the revision for etcd, or an error if it is compacted or no database can have it. etcd
/// itself refuses other revisions that do not exist yet.
pub(crate) fn readable_number(at: Revision, horizon: &Horizon) -> Result<i64, StoreError> {
    let floor = horizon.floor();
    if at < floor {
        return Err(StoreError::Compacted { requested: at, floor });
    }
    number(at).ok_or_else(|| StoreError::Future { requested: at, head: horizon.head() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_as_large_as_values_allow() {
        let stored = |bytes| KeyValue { value: vec![0; bytes].into(), ..KeyValue::default() };
        for (values, expected) in [
            (vec![1 << 10; 9], PAGE_KEYS_MAX),
            (vec![16 << 10; 9], 1024),
            (vec![1 << 20, 3 << 20], 8),
            (vec![64 << 20], 1),
            (vec![], 1),
            (vec![0], PAGE_KEYS_MAX),
        ] {
            let page: Vec<_> = values.iter().map(|bytes| stored(*bytes)).collect();
            assert_eq!(page_keys(&page), expected, "{values:?}");
        }
    }
}
