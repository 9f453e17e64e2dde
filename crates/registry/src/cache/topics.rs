//! Topics: the changes of each scope that a watch is registered for.
//!
//! A watch registers for a [`Scope`]: its whole collection, a namespace, one object, or one value
//! of a selectable field (the pods of a node). A topic has the numbers of its scope's changes in
//! the collection's log; all watches of the scope share it (upstream: the index triggers of the
//! cacher).
//!
//! Invariants:
//! - A change is in every topic that it concerns before a watch of the topic reads past it.
//! - A topic exists while a watch is registered for it. It holds numbers, not objects, so a slow
//!   watch does not keep the log from being trimmed.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::{Mutex, RwLock};
use pintle_value::Str;
use tokio::sync::Notify;

use super::state::{Change, State};
use crate::{Object, Resource};

/// The most changes that are appended under one lock. Reading the fields of an object may take
/// 10 us.
const BATCH_MAX: usize = 256;

/// Which changes of a collection may concern a watch.
#[derive(Clone)]
pub(crate) enum Scope {
    /// All changes.
    Collection,
    /// Changes of objects in a namespace.
    Namespace(Str),
    /// Changes of the objects with this name, in all namespaces.
    Name(Str),
    /// Changes of the object with this key, `namespace/name` or `name`.
    Item(Arc<str>),
    /// Changes of objects that have a value in a selectable field before or after the change.
    Field(FieldOf, Str),
}

/// A selectable field: the resource whose strategy names it, and its position in
/// `Strategy::fields`. Versions of a kind that have the same selectable fields share indexes.
#[derive(Clone)]
pub(crate) struct FieldOf {
    pub(crate) resource: Arc<Resource>,
    pub(crate) position: usize,
}

impl PartialEq for FieldOf {
    fn eq(&self, other: &Self) -> bool {
        self.resource.fields_id == other.resource.fields_id && self.position == other.position
    }
}

/// The log was trimmed past a cursor, whose owner must list again.
#[derive(Debug)]
pub(crate) struct Lagged;

/// The changes of one scope.
#[derive(Default)]
pub(super) struct Topic {
    numbers: Mutex<Numbers>,
    pub(super) changed: Notify,
    /// The number of subscriptions. It changes only while the lock of [`Topics`] is held.
    subscriptions: AtomicUsize,
}

#[derive(Default)]
struct Numbers {
    /// The numbers of the changes in the collection's log, ascending.
    of_changes: VecDeque<u64>,
    /// Changes below this number may be missing here.
    floor: u64,
    /// True while the dispatcher is about to wake the topic's watches.
    wakes: bool,
}

/// The topics of one collection.
#[derive(Default)]
pub(super) struct Topics {
    /// The number of the first change that is not in the topics yet.
    pub(super) next: u64,
    /// The number of watches that read the log itself.
    pub(super) of_collection: usize,
    namespaces: HashMap<Str, Arc<Topic>>,
    names: HashMap<Str, Arc<Topic>>,
    items: HashMap<Arc<str>, Arc<Topic>>,
    fields: Vec<FieldTopics>,
}

/// The topics of one selectable field.
struct FieldTopics {
    field: FieldOf,
    by_value: HashMap<Str, Arc<Topic>>,
}

/// The outcome of [`Topics::append_new`].
#[derive(Default)]
pub(super) struct Appended {
    /// The topics that received changes and whose watches must be woken, with the number of changes
    /// that each of them received.
    pub(super) concerned: Vec<(Arc<Topic>, usize)>,
    /// The number of changes.
    pub(super) changes: usize,
    /// Whether the log has more.
    pub(super) is_behind: bool,
}

impl Topics {
    /// Appends the next changes of the log to the topics.
    pub(super) fn append_new(&mut self, state: &RwLock<State>) -> Appended {
        let (first, from, changes, is_behind) = {
            let state = state.read();
            if self.next < state.first {
                // The log was trimmed past the dispatcher, or restarted.
                self.each(|topic| topic.reset(state.first));
                self.next = state.first;
            }
            let from = self.next;
            if self.is_empty() {
                let changes =
                    (state.end() - std::mem::replace(&mut self.next, state.end())) as usize;
                return Appended { changes, ..Appended::default() };
            }
            let new = state.log.range((from - state.first) as usize..);
            let changes: Vec<_> = new.take(BATCH_MAX).cloned().collect();
            self.next += changes.len() as u64;
            (state.first, from, changes, self.next < state.end())
        };
        let mut concerned = Vec::new();
        for (number, change) in (from..).zip(&changes) {
            self.concerned(change, &mut |topic| {
                if topic.append(number, first) {
                    concerned.push(topic.clone());
                }
            });
        }
        let with_count = |topic: Arc<Topic>| {
            let appended = topic.count_from(from);
            (topic, appended)
        };
        let concerned = concerned.into_iter().map(with_count).collect();
        Appended { concerned, changes: changes.len(), is_behind }
    }

    /// Calls `visit` with each topic that a change concerns; with some topics twice.
    fn concerned(&self, change: &Change, visit: &mut impl FnMut(&Arc<Topic>)) {
        let object = &change.object;
        self.namespaces.get(object.namespace()).into_iter().for_each(&mut *visit);
        self.names.get(object.name()).into_iter().for_each(&mut *visit);
        self.items.get(&object.item).into_iter().for_each(&mut *visit);
        for field in &self.fields {
            let states = [Some(object), change.previous.as_ref()];
            states.into_iter().flatten().for_each(|state| field.concerned(state, visit));
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.namespaces.is_empty()
            && self.names.is_empty()
            && self.items.is_empty()
            && self.fields.is_empty()
    }

    /// Calls `visit` with every topic.
    fn each(&self, visit: impl FnMut(&Arc<Topic>)) {
        let of_fields = self.fields.iter().flat_map(|field| field.by_value.values());
        let by_key = self.namespaces.values().chain(self.names.values()).chain(self.items.values());
        by_key.chain(of_fields).for_each(visit);
    }

    /// Returns the topic of a scope, after creating it if there is none; `None` for the collection
    /// itself.
    pub(super) fn get_or_insert(&mut self, scope: &Scope) -> Option<Arc<Topic>> {
        let topic = match scope {
            Scope::Collection => {
                self.of_collection += 1;
                return None;
            }
            Scope::Namespace(namespace) => self.namespaces.entry(namespace.clone()).or_default(),
            Scope::Name(name) => self.names.entry(name.clone()).or_default(),
            Scope::Item(item) => self.items.entry(item.clone()).or_default(),
            Scope::Field(field, value) => {
                let of_field = self.fields.iter().position(|topics| topics.field == *field);
                let of_field = of_field.unwrap_or_else(|| {
                    let (field, by_value) = (field.clone(), HashMap::new());
                    self.fields.push(FieldTopics { field, by_value });
                    self.fields.len() - 1
                });
                self.fields[of_field].by_value.entry(value.clone()).or_default()
            }
        };
        topic.subscriptions.fetch_add(1, Ordering::Relaxed);
        Some(topic.clone())
    }

    /// Ends a subscription. The last subscription of a topic removes the topic.
    pub(super) fn unsubscribe(&mut self, scope: &Scope, topic: Option<Arc<Topic>>) {
        let Some(topic) = topic else {
            self.of_collection -= 1;
            return;
        };
        if topic.subscriptions.fetch_sub(1, Ordering::Relaxed) > 1 {
            return;
        }
        match scope {
            Scope::Collection => {}
            Scope::Namespace(namespace) => _ = self.namespaces.remove(namespace),
            Scope::Name(name) => _ = self.names.remove(name),
            Scope::Item(item) => _ = self.items.remove(item),
            Scope::Field(field, value) => {
                if let Some(at) = self.fields.iter().position(|topics| topics.field == *field) {
                    self.fields[at].by_value.remove(value);
                    if self.fields[at].by_value.is_empty() {
                        self.fields.swap_remove(at);
                    }
                }
            }
        }
    }
}

impl FieldTopics {
    /// Calls `visit` with the topics that a state of an object concerns. An object that cannot be
    /// read concerns all topics, because every selector matches it.
    fn concerned(&self, object: &Object, visit: &mut impl FnMut(&Arc<Topic>)) {
        match object.field(&self.field.resource, self.field.position) {
            Ok(value) => self.by_value.get(&*value).into_iter().for_each(visit),
            Err(_) => self.by_value.values().for_each(visit),
        }
    }
}

impl Topic {
    /// Appends a change, once. Returns true if the caller must wake the topic's watches, and false
    /// if they are about to be woken already. Drops the numbers of changes before the log's first.
    fn append(&self, number: u64, log_first: u64) -> bool {
        let mut numbers = self.numbers.lock();
        if numbers.of_changes.back() == Some(&number) {
            return false;
        }
        numbers.drop_before(log_first);
        numbers.of_changes.push_back(number);
        !std::mem::replace(&mut numbers.wakes, true)
    }

    /// Returns the number of watches that read the topic.
    pub(super) fn watches(&self) -> usize {
        self.subscriptions.load(Ordering::Relaxed)
    }

    pub(super) fn wake(&self) {
        self.numbers.lock().wakes = false;
        self.changed.notify_waiters();
    }

    /// Drops all numbers because the topic has missed changes before the log's first change.
    /// Watches that have not read all changes before it must list again.
    fn reset(&self, log_first: u64) {
        let mut numbers = self.numbers.lock();
        numbers.of_changes.clear();
        numbers.floor = log_first;
        drop(numbers);
        self.changed.notify_waiters();
    }

    /// Returns how many changes from a number on the topic has.
    fn count_from(&self, number: u64) -> usize {
        let numbers = self.numbers.lock();
        numbers.of_changes.iter().rev().take_while(|at| **at >= number).count()
    }

    /// Returns the numbers of the first `count_max` changes from `next` on.
    ///
    /// # Errors
    /// If some of these numbers may have been dropped.
    pub(super) fn after(&self, next: u64, count_max: usize) -> Result<Vec<u64>, Lagged> {
        let numbers = self.numbers.lock();
        if next < numbers.floor {
            return Err(Lagged);
        }
        let from = numbers.of_changes.partition_point(|number| *number < next);
        Ok(numbers.of_changes.range(from..).take(count_max).copied().collect())
    }
}

impl Numbers {
    fn drop_before(&mut self, log_first: u64) {
        while let Some(number) = self.of_changes.pop_front_if(|number| *number < log_first) {
            self.floor = number + 1;
        }
    }
}
