//! Reads of etcd: keys, ranges in pages, whole states, and what is needed to begin.

use std::sync::Arc;

use bytes::Bytes;
use pintle_store::{Error as StoreError, Record, Revision};
use tokio::runtime::{Handle, RuntimeFlavor};

use crate::client::Etcd;
use crate::error::Error;
use crate::horizon::Horizon;
use crate::messages::{KeyValue, RangeRequest, ResponseHeader, WatchCreateRequest};
use crate::translation::{Translation, number, revision};

/// Keys in one page of a range: some megabytes of usual values.
const PAGE_KEYS: i64 = 1000;

/// Values of a page from which on they are decoded where it keeps nobody waiting.
const DECODED_INLINE_BYTES_MAX: usize = 64 << 10;

/// Reads, for those that know no keys of etcd.
#[derive(Clone)]
pub(crate) struct Reading {
    pub(crate) etcd: Arc<dyn Etcd>,
    pub(crate) translation: Translation,
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
        path: Bytes,
        at: Option<i64>,
    ) -> Result<(Option<KeyValue>, ResponseHeader), Error> {
        let revision = at.unwrap_or(0);
        let request = RangeRequest { key: path, revision, ..RangeRequest::default() };
        let response = self.etcd.range(request).await?;
        Ok((response.kvs.into_iter().next(), response.header))
    }

    /// The records of a range at a revision or of the newest one, in the order of their paths, and which
    /// revision it is.
    pub(crate) async fn records(
        &self,
        range: (Bytes, Bytes),
        at: Option<i64>,
    ) -> Result<(Vec<Record>, Revision), Error> {
        let (mut key, range_end) = range;
        let mut at = at.unwrap_or(0);
        let mut records = Vec::new();
        loop {
            let (range_end, limit) = (range_end.clone(), PAGE_KEYS);
            let request = RangeRequest { key, range_end, limit, revision: at, keys_only: false };
            let page = self.etcd.range(request).await?;
            if at == 0 {
                at = page.header.revision;
            }
            let last = page.kvs.last().map(|kept| kept.key.clone());
            records.extend(self.decoded(page.kvs).await);
            match last.filter(|_| page.more) {
                Some(last) => key = [&last[..], b"\0"].concat().into(),
                None => return Ok((records, revision(at))),
            }
        }
    }

    /// All records at a revision or of the newest one, in the order in which they were written.
    pub(crate) async fn state(&self, at: Option<i64>) -> Result<(Vec<Record>, Revision), Error> {
        let (mut records, at) = self.records(self.translation.everything(), at).await?;
        records.sort_by_key(|record| record.revision);
        Ok((records, at))
    }

    async fn decoded(&self, kept: Vec<KeyValue>) -> Vec<Record> {
        let bytes: usize = kept.iter().map(|kept| kept.value.len()).sum();
        let translation = self.translation.clone();
        let decode = move || -> Vec<Record> {
            kept.iter().filter_map(|kept| translation.record(kept)).collect()
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
            horizon.raise(Revision(asked.0.saturating_add(1)).min(horizon.head()));
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
