//! Commits groups: makes transactions of them, and records or errors of the answers.
//!
//! It must not know how followers are called.
//!
//! Invariants:
//! - A write is acknowledged when its transaction was answered and followers have it. The wait for
//!   the followers is bounded, because the write has happened.
//! - A transaction whose outcome is unknown is not sent again. It is reported as
//!   [`Error::Unknown`], unless the events or a read of the key show that it was committed, or that
//!   it can never be committed.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use parking_lot::Mutex;
use pintle_store::{Error, Group, Grouping, Key, Kind, Record, Revision};
use tokio::time::Instant;

use crate::error::Error as EtcdError;
use crate::horizon::Horizon;
use crate::leases::Leases;
use crate::measures::operation;
use crate::messages::{KeyValue, TxnResponse};
use crate::own::{Own, OwnWrite, Seen};
use crate::plan::{Plan, Planned};
use crate::reading::Reading;
use crate::transaction::{Ready, Refusal, refusal, restoration, transaction};
use crate::translation::revision;

/// How long a write waits until followers have it, or have the write that it conflicts with.
const FOLLOWERS_TIMEOUT: Duration = Duration::from_secs(5);

/// The timeout of each of the two steps that find the outcome of a transaction without an answer.
const OUTCOME_TIMEOUT: Duration = Duration::from_secs(5);

/// The parts that writing uses.
pub(crate) struct Writing {
    pub(crate) reading: Reading,
    pub(crate) horizon: Arc<Horizon>,
    pub(crate) own: Arc<Own>,
    pub(crate) leases: Leases,
    pub(crate) grouping: Grouping,
}

/// A write that was committed before its group, and the data to undo it.
struct Undo {
    path: Bytes,
    /// The revision at which the key was written; 0 if it was deleted.
    written: i64,
    before: Option<KeyValue>,
}

impl Writing {
    /// Commits a group and returns the records in the order of its writes.
    pub(crate) async fn commit(&self, group: Group) -> Result<Vec<Record>, Error> {
        let Plan { before, mut together, after, unchanged } = Plan::new(group, self.grouping)?;
        let (mut records, mut undos) = (Vec::new(), Vec::new());
        let mut revisions = HashMap::new();
        for mut planned in before {
            planned.follow(&revisions);
            let key = planned.write.key.clone();
            match self.commit_before(planned).await {
                Ok((written, undo)) => {
                    revisions
                        .extend(written.iter().map(|(_, record)| (key.clone(), record.revision)));
                    records.extend(written);
                    undos.extend(undo);
                }
                Err(error) => {
                    self.undo(undos).await;
                    return Err(error);
                }
            }
        }
        together.iter_mut().for_each(|planned| planned.follow(&revisions));
        match self.commit_last(together, &unchanged).await {
            Ok(written) => records.extend(written),
            Err(error) => {
                // If this group may have been committed, the writes that it relies on must stay.
                if !matches!(error, Error::Unknown { .. }) {
                    self.undo(undos).await;
                }
                return Err(error);
            }
        }
        for planned in after {
            records.push(self.commit_after(planned).await);
        }
        records.sort_by_key(|(index, _)| *index);
        Ok(records.into_iter().map(|(_, record)| record).collect())
    }

    /// Commits a write before its group. A write that another one of the group follows is not
    /// undone: it is correct without the group, like the mark of an object that is being deleted.
    async fn commit_before(
        &self,
        planned: Planned,
    ) -> Result<(Vec<(usize, Record)>, Option<Undo>), Error> {
        if planned.is_followed {
            return Ok((self.transact(vec![planned], &[]).await?, None));
        }
        let (key, kind) = (planned.write.key.clone(), planned.kind);
        let path = self.reading.translation.path(&key);
        let before = match kind {
            Kind::Created => None,
            Kind::Updated | Kind::Deleted => {
                self.reading.key(&key, None).await.map_err(not_committed)?.0
            }
        };
        let written = self.transact(vec![planned], &[]).await.map_err(|error| match error {
            Error::Conflict { .. } => Error::CompanionConflict { key },
            error => error,
        })?;
        let at = written.iter().map(|(_, record)| record.revision.0).max().unwrap_or(0);
        let written_at = if kind == Kind::Deleted { 0 } else { at.cast_signed() };
        Ok((written, Some(Undo { path, written: written_at, before })))
    }

    /// Deletes a key after its group was committed. If another client wrote the key meanwhile, it
    /// stays: it no longer belongs to the group.
    async fn commit_after(&self, planned: Planned) -> (usize, Record) {
        let index = planned.index;
        let head = self.horizon.head();
        let record = planned.record(head);
        match self.transact(vec![planned], &[]).await.map(|written| written.into_iter().next()) {
            Ok(Some(written)) => written,
            Ok(None) => (index, record),
            Err(error) => {
                let Key { collection, item } = &record.key;
                tracing::warn!(%collection, %item, %error, "a key that belonged to an object was not deleted");
                (index, record)
            }
        }
    }

    /// Commits the rest of a group, after the writes that go before it.
    async fn commit_last(
        &self,
        together: Vec<Planned>,
        unchanged: &[(Key, i64)],
    ) -> Result<Vec<(usize, Record)>, Error> {
        if self.grouping != Grouping::Single {
            return self.transact(together, unchanged).await;
        }
        for (key, at) in unchanged {
            let (current, _) = self.reading.key(key, None).await.map_err(not_committed)?;
            if current.is_none_or(|current| current.mod_revision != *at) {
                return Err(Error::CompanionConflict { key: key.clone() });
            }
        }
        self.transact(together, &[]).await
    }

    /// Undoes the writes that went before a failed group, except where a key was written since.
    async fn undo(&self, undos: Vec<Undo>) {
        for Undo { path, written, before } in undos.into_iter().rev() {
            let request = restoration(path.clone(), written, before);
            if let Err(error) = self.reading.etcd.txn(request).await {
                let path = String::from_utf8_lossy(&path).into_owned();
                tracing::warn!(path, %error, "a write of a failed group was not undone");
            }
        }
    }

    /// Commits writes in one transaction; returns their records with their indices.
    async fn transact(
        &self,
        planned: Vec<Planned>,
        unchanged: &[(Key, i64)],
    ) -> Result<Vec<(usize, Record)>, Error> {
        let mut writes = Vec::with_capacity(planned.len());
        for planned in &planned {
            writes.push(self.ready(planned).await?);
        }
        let unchanged: Vec<_> = unchanged
            .iter()
            .map(|(key, at)| (self.reading.translation.path(key), *at, key))
            .collect();
        let conditions: Vec<_> =
            unchanged.iter().map(|(path, at, _)| (path.clone(), *at)).collect();
        let own: Vec<_> = writes.iter().map(|write| write.own.clone()).collect();
        let registered = self.own.register(&own);
        let at = match self.send(&mut writes, &planned, &conditions).await {
            Ok(response) if response.succeeded => revision(response.header.revision),
            Ok(response) => {
                let head = revision(response.header.revision);
                let refusal = refusal(&writes, &conditions, response);
                let key = match planned.get(refusal.index) {
                    Some(planned) => &planned.write.key,
                    None => unchanged[refusal.index - planned.len()].2,
                };
                return Err(self.conflict(refusal, key, head).await);
            }
            Err(error) if error.may_have_happened() => self.resolve_unknown(&writes, error).await?,
            Err(error) => return Err(not_committed(error)),
        };
        if !self.horizon.reached(at, FOLLOWERS_TIMEOUT).await {
            tracing::warn!(revision = %at, "a write is acknowledged before the followers have it");
        }
        drop(registered);
        Ok(planned
            .into_iter()
            .zip(own)
            .map(|(planned, own)| (planned.index, own.record(at)))
            .collect())
    }

    /// Prepares a write for a transaction.
    async fn ready(&self, planned: &Planned) -> Result<Ready, Error> {
        let Planned { write, kind, expected, .. } = planned;
        let translation = &self.reading.translation;
        let path = translation.path(&write.key);
        let template = write.change.template().clone();
        let (stored, lease) = match kind {
            Kind::Deleted => (None, 0),
            Kind::Created | Kind::Updated => {
                let stored = translation.encode(&write.key, &path, template.value(), *kind);
                let stored = stored.map_err(|why| Error::Failed { reason: why.to_string() })?;
                (Some(stored), self.lease(&write.key).await?)
            }
        };
        let (key, note, seen) = (write.key.clone(), write.note.clone(), Mutex::default());
        let (kind, expected) = (*kind, *expected);
        let own = OwnWrite { path, key, kind, expected, stored, template, note, seen };
        Ok(Ready { own: Arc::new(own), lease })
    }

    /// The lease of a key with a lifetime; 0 for other keys.
    async fn lease(&self, key: &Key) -> Result<i64, Error> {
        match self.reading.translation.lifetime(key) {
            None => Ok(0),
            Some(lifetime) => {
                self.leases.lease(&*self.reading.etcd, lifetime).await.map_err(not_committed)
            }
        }
    }

    /// Sends a transaction. If a lease no longer exists, sends it again with new leases.
    async fn send(
        &self,
        writes: &mut [Ready],
        planned: &[Planned],
        unchanged: &[(Bytes, i64)],
    ) -> Result<TxnResponse, EtcdError> {
        match self.send_once(writes, unchanged).await {
            Err(EtcdError::LeaseNotFound) => {}
            outcome => return outcome,
        }
        self.leases.clear();
        for (write, planned) in writes.iter_mut().zip(planned) {
            let key = &planned.write.key;
            let lifetime = self.reading.translation.lifetime(key);
            if let Some(lifetime) = lifetime.filter(|_| write.lease != 0) {
                write.lease = self.leases.lease(&*self.reading.etcd, lifetime).await?;
            }
        }
        self.send_once(writes, unchanged).await
    }

    /// Sends a transaction; the metrics count it under its first write.
    async fn send_once(
        &self,
        writes: &[Ready],
        unchanged: &[(Bytes, i64)],
    ) -> Result<TxnResponse, EtcdError> {
        let begun = Instant::now();
        let outcome = self.reading.etcd.txn(transaction(writes, unchanged)).await;
        if let [Ready { own, .. }, ..] = writes {
            let what = (operation(own.kind), &*own.key.collection);
            self.reading.measures.request(what, begun, &outcome);
        }
        outcome
    }

    /// Returns the error of a rejected transaction, once followers have the write that it conflicts
    /// with: a caller that tries again then finds it.
    async fn conflict(&self, refusal: Refusal, key: &Key, head: Revision) -> Error {
        let Refusal { index, current } = refusal;
        let at = current.as_ref().map_or(head, |current| revision(current.mod_revision));
        if !self.horizon.reached(at, FOLLOWERS_TIMEOUT).await {
            tracing::warn!(revision = %at, "a conflict is reported before followers have its reason");
        }
        if index > 0 {
            return Error::CompanionConflict { key: key.clone() };
        }
        let current = current.and_then(|current| self.reading.translation.record(&current));
        Error::Conflict { current: current.map(Box::new) }
    }

    /// Finds the outcome of a transaction whose answer does not tell it: the revision at which it
    /// was committed, or an error.
    async fn resolve_unknown(&self, writes: &[Ready], error: EtcdError) -> Result<Revision, Error> {
        let unknown = Err(Error::Unknown { reason: error.to_string() });
        let read = tokio::time::timeout(OUTCOME_TIMEOUT, self.reading.header()).await;
        let Ok(Ok(header)) = read else { return unknown };
        // Even if not all events arrive in time, those that arrived may suffice.
        let _ = self.horizon.reached(revision(header.revision), OUTCOME_TIMEOUT).await;
        let seen: Vec<_> = writes.iter().map(|write| write.own.seen.lock().clone()).collect();
        if let Some(index) = seen.iter().position(|seen| matches!(seen, Seen::Superseded)) {
            let key = &writes[index].own.key;
            let Ok((current, header)) = self.reading.key(key, None).await else { return unknown };
            let (refusal, head) = (Refusal { index, current }, revision(header.revision));
            return Err(self.conflict(refusal, key, head).await);
        }
        // etcd will not execute the transaction later, so an unchanged key shows that etcd refused
        // the transaction.
        if matches!(error, EtcdError::NoSpace(_)) && seen.iter().all(|s| matches!(s, Seen::Nothing))
        {
            let own = &writes[0].own;
            let Ok((current, _)) = self.reading.key(&own.key, None).await else { return unknown };
            if current.map_or(0, |current| current.mod_revision) == own.expected {
                return Err(not_committed(error));
            }
        }
        let revisions = seen.iter().map(|seen| match seen {
            Seen::Committed(record) => Some(record.revision),
            Seen::Nothing | Seen::Superseded | Seen::Unknown => None,
        });
        // The revisions must be equal: a single deletion may be another process's.
        let revisions: Option<Vec<_>> = revisions.collect();
        match revisions.as_deref() {
            Some([at, rest @ ..]) if rest.iter().all(|other| other == at) => Ok(*at),
            _ => unknown,
        }
    }
}

/// The error of a write that did not happen.
fn not_committed(error: EtcdError) -> Error {
    Error::Failed { reason: error.to_string() }
}
