//! Writes that change an object together with others: each with its own object, and all of them with one
//! that they share, like the pods of a namespace with the status of its quota.
//!
//! If each wrote the shared object by itself, one of a batch would win and all others would lose and try
//! again. So they queue at a till, which is one for a namespace. Whoever finds it closed opens it: a task
//! takes all who wait, posts what they have to post one after the other, and commits them as one group
//! with one new state of what they share. The next group forms meanwhile.
//!
//! Invariants:
//! - A posting is committed with its write, once, or not at all; what it was worked out from is what the
//!   group replaces.
//! - Who is refused is refused by a state that is committed.
//! - A writer who goes away leaves a write that is done or not, and nobody waiting.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};
use std::mem;
use std::sync::Arc;

use parking_lot::Mutex;
use pintle_meta::Status;
use pintle_store::{Error, Expect, Group, Grouping, Key, Kind, Record, Revision, Store, Write};
use pintle_value::Value;
use tokio::sync::oneshot;

use super::commit::{Committed, encode, not_committed};
use super::ownership::track_own;
use crate::allocation::{Companion, Part, Posted, Posting};
use crate::cache::Cache;
use crate::request::Now;
use crate::{Object, Registry, Resource};

/// Namespaces share this many tills; those that share one are only committed together.
const TILLS: usize = 64;
/// Writes in one group at most: as many as are admitted at once, nearly, and few enough that the first does
/// not wait noticeably for the last.
const GROUP_WRITES_MAX: usize = 256;
/// Bytes in one group, after which no more writes are taken into it: some milliseconds of a disk's time.
const GROUP_BYTES_MAX: usize = 4 << 20;

/// The tills of a registry.
pub(crate) struct Tills([Arc<Mutex<Till>>; TILLS]);

#[derive(Default)]
struct Till {
    waiting: Vec<Customer>,
    /// A task serves it.
    is_open: bool,
}

/// A write with what it has to post.
struct Customer {
    group: Group,
    postings: Vec<Posting>,
    reply: oneshot::Sender<Result<Committed, Status>>,
}

impl Customer {
    /// Answers; who has gone away need not know.
    fn answer(self, answer: Result<Committed, Status>) {
        let _ = self.reply.send(answer);
    }

    fn bytes(&self) -> usize {
        let writes = std::iter::once(&self.group.first).chain(&self.group.rest);
        writes.map(|write| write.change.template().len()).sum()
    }

    fn keys(&self) -> impl Iterator<Item = &Key> {
        std::iter::once(&self.group.first).chain(&self.group.rest).map(|write| &write.key)
    }
}

impl Tills {
    pub(crate) fn new() -> Self {
        Self(std::array::from_fn(|_| Arc::default()))
    }

    fn of(&self, namespace: &str) -> &Arc<Mutex<Till>> {
        let hash = BuildHasherDefault::<DefaultHasher>::default().hash_one(namespace);
        let number = usize::try_from(hash % TILLS as u64).unwrap_or_default();
        &self.0[number]
    }
}

impl Registry {
    /// Commits a group with what it has to post, when its turn has come.
    pub(super) async fn post(
        &self,
        group: Group,
        postings: Vec<Posting>,
    ) -> Result<Committed, Status> {
        let namespace = postings.first().map_or("", |posting| &posting.namespace);
        let till = self.tills.of(namespace);
        let (reply, answer) = oneshot::channel();
        let is_open = {
            let mut till = till.lock();
            till.waiting.push(Customer { group, postings, reply });
            mem::replace(&mut till.is_open, true)
        };
        if !is_open {
            let cashier = Cashier {
                till: till.clone(),
                store: self.store.clone(),
                cache: self.cache.clone(),
                is_done: false,
            };
            tokio::spawn(cashier.serve());
        }
        let closed = || Status::internal("the server stops, or a write failed badly");
        answer.await.unwrap_or_else(|_| Err(closed()))
    }

    /// Posts for nobody: whether it could be done now.
    pub(super) fn rehearse(&self, companions: &[Companion]) -> Result<(), Status> {
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

/// Serves a till until nobody waits.
struct Cashier {
    till: Arc<Mutex<Till>>,
    store: Arc<dyn Store>,
    cache: Arc<Cache>,
    /// The till is closed as it should be.
    is_done: bool,
}

/// A till that is left in the middle is closed: who waits is told, and the next one opens it again.
impl Drop for Cashier {
    fn drop(&mut self) {
        if !self.is_done {
            *self.till.lock() = Till::default();
        }
    }
}

impl Cashier {
    async fn serve(mut self) {
        let mut left = Vec::new();
        loop {
            {
                let mut till = self.till.lock();
                left.append(&mut till.waiting);
                if left.is_empty() {
                    till.is_open = false;
                    self.is_done = true;
                    return;
                }
            }
            let mut round =
                Round { joins_writes: self.store.grouping() == Grouping::Each, ..Round::default() };
            left.into_iter().for_each(|customer| round.take(customer, &self.cache));
            left = round.commit(&*self.store).await;
        }
    }
}

/// Those who are committed together.
#[derive(Default)]
struct Round {
    /// Whether the store commits the writes of several customers as one.
    joins_writes: bool,
    taken: Vec<Customer>,
    /// Who is not to be committed, and why; that counts once what it follows from is committed.
    refused: Vec<(Customer, Result<Committed, Status>)>,
    /// Whose turn is the next.
    later: Vec<Customer>,
    /// What the postings change.
    shared: HashMap<Key, Shared>,
    /// The keys that are written, those of what is shared apart.
    keys: HashSet<Key>,
    unchanged: HashMap<Key, Revision>,
    bytes: usize,
}

/// An object that is posted to.
struct Shared {
    resource: Arc<Resource>,
    object: Arc<Object>,
    /// What it is after the postings of those who are taken.
    tree: Value,
    /// When it was posted to last, where that changed it.
    changed: Option<Now>,
}

impl Shared {
    /// Its write, where it is changed: a change of its status by the server itself.
    fn write(&self) -> Option<Result<Write, Status>> {
        let Self { resource, object, tree, changed: Some(now) } = self else { return None };
        let mut tree = tree.clone();
        let tracked = object.tree().map(|old| {
            // Of what no client sees nobody owns anything.
            if resource.subresource("status").is_some() {
                track_own(resource, "status", Some(&old), &mut tree, *now);
            }
        });
        let namespaced_name = (object.namespace(), object.name());
        let expect = Expect::At(object.revision);
        let write = || encode(resource, namespaced_name, &tree, expect, Kind::Updated);
        Some(tracked.map_err(Status::from).and_then(|()| write()))
    }
}

impl Round {
    /// Takes a customer in, if that can be.
    fn take(&mut self, customer: Customer, cache: &Cache) {
        if !self.has_room_for(&customer) {
            return self.later.push(customer);
        }
        match self.post(&customer, cache) {
            Some(refusal) => self.refused.push((customer, refusal)),
            None => {
                self.keys.extend(customer.keys().cloned());
                self.unchanged.extend(customer.group.unchanged.iter().cloned());
                self.bytes += customer.bytes();
                self.taken.push(customer);
            }
        }
    }

    /// A group has each key once, and hangs on one state of what it hangs on.
    fn has_room_for(&self, customer: &Customer) -> bool {
        let is_other = |(key, revision): &(Key, Revision)| {
            self.unchanged.get(key).is_some_and(|known| known != revision)
        };
        self.taken.is_empty()
            || self.joins_writes
                && self.taken.len() < GROUP_WRITES_MAX
                && self.bytes < GROUP_BYTES_MAX
                && !customer
                    .keys()
                    .any(|key| self.keys.contains(key) || self.shared.contains_key(key))
                && !customer.group.unchanged.iter().any(is_other)
    }

    /// Posts what a customer has to post: all of it, or nothing; then why.
    fn post(&mut self, customer: &Customer, cache: &Cache) -> Option<Result<Committed, Status>> {
        let mut keys = Vec::with_capacity(customer.postings.len());
        for posting in &customer.postings {
            match self.open(posting, cache) {
                Ok(Some(key)) if customer.keys().any(|own| *own == key) => {
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
        // What is posted first is taken back if what comes behind it is refused.
        let is_only = keys.len() == 1;
        let mut before = Vec::new();
        for (posting, key) in customer.postings.iter().zip(&keys) {
            let Some(shared) = self.shared.get_mut(key) else { continue };
            if !is_only {
                before.push((key, shared.tree.clone(), shared.changed));
            }
            let refusal = match (posting.post)(&mut shared.tree) {
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
            return Some(refusal);
        }
        None
    }

    /// Has the object at hand that is posted to; `None` where it is gone.
    fn open(&mut self, posting: &Posting, cache: &Cache) -> Result<Option<Key>, Status> {
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

    /// All that is to be written, and what it hangs on.
    fn group(&self) -> Result<Option<Group>, Status> {
        let taken = self.taken.iter().map(|customer| &customer.group);
        let mut writes: Vec<_> = taken
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

    /// Commits the group and answers; gives those who are to come again.
    async fn commit(mut self, store: &dyn Store) -> Vec<Customer> {
        let group = match self.group() {
            Ok(Some(group)) => group,
            Ok(None) => return self.close(None),
            Err(status) => return self.close(Some(&status)),
        };
        match store.commit_together(group).await {
            Ok(records) => {
                let mut records = records.into_iter();
                for customer in mem::take(&mut self.taken) {
                    let count = 1 + customer.group.rest.len();
                    let own: Vec<Record> = records.by_ref().take(count).collect();
                    customer.answer(Committed::by(&own));
                }
                self.close(None)
            }
            Err(Error::Conflict { .. }) => {
                let key = self.taken.first().map(|customer| customer.group.first.key.clone());
                self.without(key.as_ref())
            }
            Err(Error::CompanionConflict { key }) => self.without(Some(&key)),
            Err(error) => {
                let status = not_committed(error);
                self.close(Some(&status))
            }
        }
    }

    /// Answers those who are refused, and those who are taken where nothing came of it; gives the others.
    fn close(self, failure: Option<&Status>) -> Vec<Customer> {
        for (customer, refusal) in self.refused {
            customer.answer(refusal);
        }
        for customer in self.taken {
            let why = || Status::internal("a write was not committed");
            customer.answer(Err(failure.cloned().unwrap_or_else(why)));
        }
        self.later
    }

    /// Answers those for whom a key is not as expected; gives the others, of whom nothing is committed.
    /// Where it is what they share, all come again.
    fn without(self, key: Option<&Key>) -> Vec<Customer> {
        let refused = self.refused.into_iter().map(|(customer, _)| customer);
        let mut left = Vec::new();
        for customer in self.taken.into_iter().chain(refused).chain(self.later) {
            let is_it = |other: &Key| Some(other) == key;
            if is_it(&customer.group.first.key) {
                customer.answer(Ok(Committed::Conflict));
            } else if customer.keys().any(is_it)
                || customer.group.unchanged.iter().any(|(other, _)| is_it(other))
            {
                customer.answer(Ok(Committed::CompanionConflict));
            } else {
                left.push(customer);
            }
        }
        left
    }
}
