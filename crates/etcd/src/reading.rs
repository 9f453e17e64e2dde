//! Reads of etcd: keys, ranges in pages, whole states, and what is needed to begin.

use std::sync::Arc;

use bytes::Bytes;
use pintle_store::{Error as StoreError, Key, Record, Revision};
use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::time::Instant;

use crate::client::Etcd;
use crate::error::Error;
use crate::horizon::Horizon;
use crate::measures::Measures;
use crate::messages::{KeyValue, RangeRequest, RangeResponse, ResponseHeader, WatchCreateRequest};
use crate::translation::{Translation, number, revision};

/// Keys in the first page of a range, and at most in a further one: etcd counts all keys of a range for each
/// page of it, so that there should be few pages.
const PAGE_KEYS: i64 = 1000;
const PAGE_KEYS_MAX: i64 = 10_000;

/// How long the values of a page should be together, as far as those of the page before tell.
const PAGE_BYTES: usize = 16 << 20;

/// Values of a page from which on they are decoded where it keeps nobody waiting.
const DECODED_INLINE_BYTES_MAX: usize = 64 << 10;

/// Reads, for those that know no keys of etcd.
#[derive(Clone)]
pub(crate) struct Reading {
    pub(crate) etcd: Arc<dyn Etcd>,
    pub(crate) translation: Translation,
    pub(crate) measures: Arc<Measures>,
}

impl Reading {
    /// Asks for nothing: the header says how far the database is, linearizably.
    pub(crate) async fn header(&self) -> Result<ResponseHeader, Error> {
        let key = self.translation.health();
        let request = RangeRequest { key, keys_only: true, ..RangeRequest::default() };
        Ok(self.etcd.range(request).await?.header)
    }

    /// A key's value at a revision, or its newest.
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

    /// The records of a collection whose items begin with `prefix`, at a revision or the newest.
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

    /// The records of a range at a revision or of the newest one, in the order of their paths, and which
    /// revision it is. `collection` is what they are counted as.
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

    /// All records at a revision or of the newest one, in the order in which they were written.
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
        if bytes <= DECODED_INLINE_BYTES_MAX { decode() } else { aside(decode).await }
    }

    /// The oldest revision that can be read: the one that the database is compacted at.
    pub(crate) async fn floor(&self) -> Result<Revision, Error> {
        let key = self.translation.health();
        let first = RangeRequest { key: key.clone(), revision: 1, ..RangeRequest::default() };
        match self.etcd.range(first).await {
            Ok(_) => return Ok(Revision(1)), // where etcd begins to count
            Err(Error::Compacted) => {}
            Err(error) => return Err(error),
        }
        // A watch of what is gone is told what the oldest is.
        let create = WatchCreateRequest { key, start_revision: 1, ..WatchCreateRequest::default() };
        let mut watch = self.etcd.watch(create).await?;
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
}

/// How many keys to ask for after these.
fn page_keys(page: &[KeyValue]) -> i64 {
    let bytes: usize = page.iter().map(|stored| stored.value.len()).sum();
    let keys = PAGE_BYTES.saturating_mul(page.len()) / bytes.max(1);
    i64::try_from(keys).unwrap_or(i64::MAX).clamp(1, PAGE_KEYS_MAX)
}

/// Does on a thread of its own what would keep a runtime's threads from other work. A runtime with one
/// thread is a test's, in which the order of things must repeat: there it is done at once.
pub(crate) async fn aside<T: Default + Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> T {
    if Handle::current().runtime_flavor() == RuntimeFlavor::CurrentThread {
        return work();
    }
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        Err(failed) => match failed.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            Err(_) => T::default(), // the runtime ends
        },
    }
}

/// Why a read of the store at a revision failed.
pub(crate) fn read_error(error: Error, at: Option<Revision>, horizon: &Horizon) -> StoreError {
    match (error, at) {
        (Error::Compacted, Some(asked)) => {
            horizon.raise(Revision(asked.0.saturating_add(1)));
            StoreError::Compacted { asked, floor: horizon.floor() }
        }
        (Error::Future, Some(asked)) => StoreError::Future { asked, head: horizon.head() },
        (error, _) => StoreError::Failed { reason: error.to_string() },
    }
}

/// What etcd is asked for a state at; `None` where no database is that new.
pub(crate) fn asked(at: Revision, horizon: &Horizon) -> Result<i64, StoreError> {
    let floor = horizon.floor();
    if at < floor {
        return Err(StoreError::Compacted { asked: at, floor });
    }
    number(at).ok_or_else(|| StoreError::Future { asked: at, head: horizon.head() })
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
