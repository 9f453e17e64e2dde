//! Postings: writes that also change a shared object, such as the status of their namespace's
//! quota.
//!
//! If each write changed the shared object by itself, one of a batch would succeed and the others
//! would conflict and retry. So writes with postings queue, in one queue per namespace. The first
//! writer starts a worker, a task that repeats: it takes all queued writes, applies their postings
//! one after the other, and commits them as one group with one new state of the shared object.
//! Meanwhile the queue fills again.
//!
//! Invariants:
//! - A posting is committed together with its write, exactly once, or not at all. The group
//!   replaces the state from which the posting was computed.
//! - A posting that refuses its write refuses it on a committed state.
//! - If a writer is cancelled, its write is committed or not, and the other writers do not wait for
//!   it.
//! - While a queue is [held](super::holding), nothing of it is committed.

mod queues;

use std::collections::{HashMap, HashSet};
use std::mem;
use std::sync::Arc;

use parking_lot::Mutex;
use pintle_meta::Status;
use pintle_store::{Error, Expect, Group, Grouping, Key, Kind, Record, Revision, Store, Write};
use pintle_value::Value;
use tokio::sync::oneshot;

use super::commit::{Committed, encode, store_failed};
use super::ownership::track_server_update;
use crate::allocation::{Companion, Part, Posted, Posting};
use crate::cache::Cache;
use crate::request::Now;
use crate::{Object, Registry, Resource};
use queues::PostingQueue;
pub(crate) use queues::PostingQueues;

/// The most writes in one group: about as many as run concurrently, and few enough that the first
/// does not wait noticeably for the last.
const GROUP_WRITES_MAX: usize = 256;
/// A group takes no more writes after this many bytes: some milliseconds of disk time.
const GROUP_BYTES_MAX: usize = 4 << 20;

/// A queued write with its postings.
struct QueuedWrite {
    group: Group,
    postings: Vec<Posting>,
    reply: oneshot::Sender<Result<Committed, Status>>,
}

impl QueuedWrite {
    /// Sends the outcome, unless the writer was cancelled.
    fn send(self, outcome: Result<Committed, Status>) {
        let _ = self.reply.send(outcome);
    }

    fn bytes(&self) -> usize {
        let writes = std::iter::once(&self.group.first).chain(&self.group.rest);
        writes.map(|write| write.change.template().len()).sum()
    }

    fn keys(&self) -> impl Iterator<Item = &Key> {
        std::iter::once(&self.group.first).chain(&self.group.rest).map(|write| &write.key)
    }
}

impl Registry {
    /// Queues a group with its postings and waits for the outcome.
    pub(super) async fn post(
        &self,
        group: Group,
        postings: Vec<Posting>,
    ) -> Result<Committed, Status> {
        let namespace = postings.first().map_or("", |posting| &posting.namespace);
        let queue = self.posting_queues.of(namespace);
        let (reply, outcome) = oneshot::channel();
        let queued = QueuedWrite { group, postings, reply };
        self.queue_posting(queue, |queue| queue.waiting.push(queued));
        let closed = || {
            Status::internal(
                "it is unknown whether the write was committed: the server is stopping, or the task that commits the usage of quotas failed",
            )
        };
        outcome.await.unwrap_or_else(|_| Err(closed()))
    }

    /// Adds to a queue, and starts its worker if none runs.
    pub(super) fn queue_posting(
        &self,
        queue: &Arc<Mutex<PostingQueue>>,
        add: impl FnOnce(&mut PostingQueue),
    ) {
        let has_worker = {
            let mut queue = queue.lock();
            add(&mut queue);
            mem::replace(&mut queue.has_worker, true)
        };
        if !has_worker {
            let worker = Worker {
                queue: queue.clone(),
                store: self.store.clone(),
                cache: self.cache.clone(),
                is_done: false,
            };
            self.runtime.spawn(worker.run());
        }
    }

    /// Applies postings without a commit, for a dry run.
    pub(super) fn dry_run_postings(&self, companions: &[Companion]) -> Result<(), Status> {
        for Companion(part) in companions {
            let Part::Posting(posting) = part else { continue };
            let found = self.peek(&posting.resource, &posting.namespace, &posting.name);
            if let Some(object) = found {
                (posting.post)(&mut object.tree()?)?;
            }
        }
        Ok(())
    }
}

/// Commits the writes of a queue until it is empty.
struct Worker {
    queue: Arc<Mutex<PostingQueue>>,
    store: Arc<dyn Store>,
    cache: Arc<Cache>,
    /// Whether the worker ended because the queue was empty.
    is_done: bool,
}

/// If the worker is dropped before it is done, its queued writes fail, and the next write starts a
/// new worker.
impl Drop for Worker {
    fn drop(&mut self) {
        if !self.is_done {
            *self.queue.lock() = PostingQueue::default();
        }
    }
}

impl Worker {
    async fn run(mut self) {
        let mut left = Vec::new();
        // After a hold, the writes that waited for its end come first.
        let mut may_hold = true;
        loop {
            let hold = {
                let mut queue = self.queue.lock();
                left.append(&mut queue.waiting);
                let hold = if may_hold || left.is_empty() { queue.holds.pop() } else { None };
                if left.is_empty() && hold.is_none() {
                    queue.has_worker = false;
                    self.is_done = true;
                    return;
                }
                hold
            };
            may_hold = hold.is_none();
            if let Some(hold) = hold {
                hold.hold().await;
                continue;
            }
            let mut batch =
                Batch { joins_writes: self.store.grouping() == Grouping::Each, ..Batch::default() };
            left.into_iter().for_each(|queued| batch.take(queued, &self.cache));
            left = batch.commit(&*self.store).await;
        }
    }
}

/// The writes of one group.
#[derive(Default)]
struct Batch {
    /// Whether the store can commit the writes of several writers as one group.
    joins_writes: bool,
    accepted: Vec<QueuedWrite>,
    /// Writes that are not committed, with the reason. The reason is sent only after the state from
    /// which it follows is committed.
    rejected: Vec<(QueuedWrite, Result<Committed, Status>)>,
    /// Writes for the next group.
    deferred: Vec<QueuedWrite>,
    /// The objects that postings change.
    shared: HashMap<Key, Shared>,
    /// The keys of the writes, without those of shared objects.
    keys: HashSet<Key>,
    unchanged: HashMap<Key, Revision>,
    bytes: usize,
}

/// An object that postings change.
struct Shared {
    resource: Arc<Resource>,
    object: Arc<Object>,
    /// The state after the postings of the accepted writes.
    tree: Value,
    /// The time of the last posting that changed it.
    changed: Option<Now>,
}

impl Shared {
    /// Returns the write of the changed object: an update of its status by the server.
    fn write(&self) -> Option<Result<Write, Status>> {
        let Self { resource, object, tree, changed: Some(now) } = self else { return None };
        let mut tree = tree.clone();
        let tracked = object.tree().map(|old| {
            // An object without a status subresource is internal, so its fields have no owner.
            if resource.subresource("status").is_some() {
                track_server_update(resource, "status", Some(&old), &mut tree, *now);
            }
        });
        let namespaced_name = (object.namespace(), object.name());
        let expect = Expect::At(object.revision);
        let write = || encode(resource, namespaced_name, &tree, expect, Kind::Updated);
        Some(tracked.map_err(Status::from).and_then(|()| write()))
    }
}

impl Batch {
    /// Adds a write to the group, rejects it, or defers it to the next group.
    fn take(&mut self, queued: QueuedWrite, cache: &Cache) {
        if !self.has_room_for(&queued) {
            return self.deferred.push(queued);
        }
        match self.post(&queued, cache) {
            Some(rejection) => self.rejected.push((queued, rejection)),
            None => {
                self.keys.extend(queued.keys().cloned());
                self.unchanged.extend(queued.group.unchanged.iter().cloned());
                self.bytes += queued.bytes();
                self.accepted.push(queued);
            }
        }
    }

    /// Whether the group can take the write: the group is below its bounds, each key occurs once,
    /// and preconditions agree. An empty group takes every write.
    fn has_room_for(&self, queued: &QueuedWrite) -> bool {
        let is_other = |(key, revision): &(Key, Revision)| {
            self.unchanged.get(key).is_some_and(|known| known != revision)
        };
        self.accepted.is_empty()
            || self.joins_writes
                && self.accepted.len() < GROUP_WRITES_MAX
                && self.bytes < GROUP_BYTES_MAX
                && !queued
                    .keys()
                    .any(|key| self.keys.contains(key) || self.shared.contains_key(key))
                && !queued.group.unchanged.iter().any(is_other)
    }

    /// Applies all postings of a write or none; returns the rejection, if one refuses.
    fn post(&mut self, queued: &QueuedWrite, cache: &Cache) -> Option<Result<Committed, Status>> {
        let mut keys = Vec::with_capacity(queued.postings.len());
        for posting in &queued.postings {
            match self.load(posting, cache) {
                Ok(Some(key)) if queued.keys().any(|own| *own == key) => {
                    let why = format_args!("a write of {} posts to itself", key.item);
                    return Some(Err(Status::internal(why)));
                }
                Ok(Some(key)) if self.keys.contains(&key) => {
                    return Some(Ok(Committed::CompanionConflict));
                }
                Ok(Some(key)) => keys.push(key),
                Ok(None) => return Some(Ok(Committed::CompanionConflict)),
                Err(status) => return Some(Err(status)),
            }
        }
        // A rejection rolls back the postings before it.
        let is_only = keys.len() == 1;
        let mut before = Vec::new();
        for (posting, key) in queued.postings.iter().zip(&keys) {
            let Some(shared) = self.shared.get_mut(key) else { continue };
            if !is_only {
                before.push((key, shared.tree.clone(), shared.changed));
            }
            let rejection = match (posting.post)(&mut shared.tree) {
                Ok(Posted::Changed) => {
                    shared.changed = Some(posting.now);
                    continue;
                }
                Ok(Posted::Unchanged) => continue,
                Ok(Posted::Outdated) => Ok(Committed::CompanionConflict),
                Err(status) => Err(status),
            };
            for (key, tree, changed) in before.into_iter().rev() {
                if let Some(shared) = self.shared.get_mut(key) {
                    (shared.tree, shared.changed) = (tree, changed);
                }
            }
            return Some(rejection);
        }
        None
    }

    /// Loads the object of a posting; `None` if it does not exist.
    fn load(&mut self, posting: &Posting, cache: &Cache) -> Result<Option<Key>, Status> {
        let key = posting.resource.key(&posting.namespace, &posting.name)?;
        if !self.shared.contains_key(&key) {
            let found = cache.collection(&key.collection).get(&key.item);
            let Some(object) = found else { return Ok(None) };
            let (resource, tree) = (posting.resource.clone(), object.tree()?);
            let shared = Shared { resource, object, tree, changed: None };
            self.shared.insert(key.clone(), shared);
        }
        Ok(Some(key))
    }

    /// Returns the store's group: all writes and all preconditions.
    fn group(&self) -> Result<Option<Group>, Status> {
        let accepted = self.accepted.iter().map(|queued| &queued.group);
        let mut writes: Vec<_> = accepted
            .flat_map(|group| std::iter::once(&group.first).chain(&group.rest))
            .cloned()
            .collect();
        for write in self.shared.values().filter_map(Shared::write) {
            writes.push(write?);
        }
        let mut writes = writes.into_iter();
        let unchanged: Vec<_> =
            self.unchanged.iter().map(|(key, revision)| (key.clone(), *revision)).collect();
        Ok(writes.next().map(|first| Group { first, rest: writes.collect(), unchanged }))
    }

    /// Commits the group and sends the outcomes; returns the writes for the next group.
    async fn commit(mut self, store: &dyn Store) -> Vec<QueuedWrite> {
        let group = match self.group() {
            Ok(Some(group)) => group,
            Ok(None) => return self.finish(None),
            Err(status) => return self.finish(Some(&status)),
        };
        match store.commit(group).await {
            Ok(records) => {
                let mut records = records.into_iter();
                for queued in mem::take(&mut self.accepted) {
                    let count = 1 + queued.group.rest.len();
                    let own: Vec<Record> = records.by_ref().take(count).collect();
                    queued.send(Committed::by(&own));
                }
                self.finish(None)
            }
            Err(Error::Conflict { .. }) => {
                let key = self.accepted.first().map(|queued| queued.group.first.key.clone());
                self.split_by_conflict(key.as_ref())
            }
            Err(Error::CompanionConflict { key }) => self.split_by_conflict(Some(&key)),
            Err(error) => {
                let status = store_failed(error);
                self.finish(Some(&status))
            }
        }
    }

    /// Sends the outcomes of rejected writes, and of accepted writes if the commit failed; returns
    /// the deferred writes.
    fn finish(self, failure: Option<&Status>) -> Vec<QueuedWrite> {
        for (queued, rejection) in self.rejected {
            queued.send(rejection);
        }
        for queued in self.accepted {
            let why = || Status::internal("a write was not committed");
            queued.send(Err(failure.cloned().unwrap_or_else(why)));
        }
        self.deferred
    }

    /// Sends conflicts to the writes that depend on `key`; returns the others, of which nothing was
    /// committed. If `key` is a shared object, all writes are retried.
    fn split_by_conflict(self, key: Option<&Key>) -> Vec<QueuedWrite> {
        let rejected = self.rejected.into_iter().map(|(queued, _)| queued);
        let mut left = Vec::new();
        for queued in self.accepted.into_iter().chain(rejected).chain(self.deferred) {
            let is_it = |other: &Key| Some(other) == key;
            if is_it(&queued.group.first.key) {
                queued.send(Ok(Committed::Conflict));
            } else if queued.keys().any(is_it)
                || queued.group.unchanged.iter().any(|(other, _)| is_it(other))
            {
                queued.send(Ok(Committed::CompanionConflict));
            } else {
                left.push(queued);
            }
        }
        left
    }
}
