//! Transactions of etcd: made from writes, and their results.
//!
//! It must not know connections or records.

use std::sync::Arc;

use bytes::Bytes;

use crate::messages::{
    Compare, CompareTarget, Compared, DeleteRangeRequest, KeyValue, Operation, PutRequest,
    RangeRequest, RequestOp, TxnRequest, TxnResponse,
};
use crate::own::OwnWrite;

/// A write, ready to be sent.
pub(crate) struct Ready {
    pub(crate) own: Arc<OwnWrite>,
    /// The lease; 0 for none.
    pub(crate) lease: i64,
}

/// Why a transaction was refused.
#[derive(Debug, PartialEq)]
pub(crate) struct Refusal {
    /// The index of the write, or of the unchanged key after the writes, whose condition failed.
    pub(crate) index: usize,
    /// The current value of the key; `None` if the key is absent.
    pub(crate) current: Option<KeyValue>,
}

/// Makes a transaction that executes all writes if all keys are at their expected revisions, and
/// otherwise reads the keys. With one write it has the shape of upstream's transactions
/// (etcd/client/v3/kubernetes), which kine accepts, too.
pub(crate) fn transaction(writes: &[Ready], unchanged: &[(Bytes, i64)]) -> TxnRequest {
    let success = writes.iter().map(|Ready { own, lease, .. }| match &own.stored {
        Some(stored) => put(own.path.clone(), stored.clone(), *lease),
        None => delete(own.path.clone()),
    });
    let conditions = || {
        let writes = writes.iter().map(|write| (&write.own.path, write.own.expected, false));
        writes.chain(unchanged.iter().map(|(path, at)| (path, *at, true)))
    };
    TxnRequest {
        compare: conditions().map(|(path, at, _)| written_at(path.clone(), at)).collect(),
        success: success.collect(),
        failure: conditions().map(|(path, _, keys_only)| get(path.clone(), keys_only)).collect(),
    }
}

/// Returns which condition of a failed transaction did not hold.
pub(crate) fn refusal(
    writes: &[Ready],
    unchanged: &[(Bytes, i64)],
    response: TxnResponse,
) -> Refusal {
    let expected: Vec<i64> = writes
        .iter()
        .map(|write| write.own.expected)
        .chain(unchanged.iter().map(|(_, at)| *at))
        .collect();
    let mut found: Vec<Option<KeyValue>> = response
        .responses
        .into_iter()
        .map(|response| response.range.and_then(|range| range.kvs.into_iter().next()))
        .collect();
    found.resize(expected.len(), None);
    let index = found.iter().zip(&expected).position(|(found, expected)| {
        found.as_ref().map_or(0, |found| found.mod_revision) != *expected
    });
    let index = index.unwrap_or(0);
    Refusal { index, current: found.swap_remove(index) }
}

/// Makes a transaction that restores a key, if it is still at the revision `written`; 0 after a
/// deletion.
pub(crate) fn restoration(path: Bytes, written: i64, before: Option<KeyValue>) -> TxnRequest {
    let operation = match before {
        Some(before) => put(path.clone(), before.value, before.lease),
        None => delete(path.clone()),
    };
    TxnRequest {
        compare: vec![written_at(path.clone(), written)],
        success: vec![operation],
        failure: vec![get(path, true)], // kine accepts only this shape
    }
}

/// Makes the transaction `If Version(key) = version Then Put(key, value) Else Get(key)`.
pub(crate) fn put_if_version(path: Bytes, version: i64, value: Bytes) -> TxnRequest {
    let compare = Compare {
        result: 0,
        target: CompareTarget::Version as i32,
        key: path.clone(),
        compared: Some(Compared::Version(version)),
    };
    TxnRequest {
        compare: vec![compare],
        success: vec![put(path.clone(), value, 0)],
        failure: vec![get(path, false)],
    }
}

fn written_at(key: Bytes, revision: i64) -> Compare {
    let (target, compared) = (CompareTarget::ModRevision, Compared::ModRevision(revision));
    Compare { result: 0, target: target as i32, key, compared: Some(compared) }
}

fn put(key: Bytes, value: Bytes, lease: i64) -> RequestOp {
    RequestOp { request: Some(Operation::Put(PutRequest { key, value, lease })) }
}

fn delete(key: Bytes) -> RequestOp {
    RequestOp { request: Some(Operation::Delete(DeleteRangeRequest { key })) }
}

fn get(key: Bytes, keys_only: bool) -> RequestOp {
    let request = RangeRequest { key, keys_only, ..RangeRequest::default() };
    RequestOp { request: Some(Operation::Range(request)) }
}
