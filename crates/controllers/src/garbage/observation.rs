//! Observation: the collector takes the changes of every collection into its graph, and enqueues
//! the objects that they concern, except a new object about which the evaluator decides that nothing
//! has to be done. It acts on none of them.

use std::cell::OnceCell;
use std::sync::Arc;
use std::time::Duration;

use pintle_meta::object;
use pintle_registry::request::Propagation;
use pintle_registry::{FeedUpdate, Object, Resource};
use pintle_store::Kind;
use pintle_value::{Str, Value};

use super::extensions::{Change, Event};
use super::graph::{ObjectKey, Reference};
use super::owners::OwnerStates;
use super::{Collector, FellBehind, owners};
use crate::extensions::ObjectUpdate;
use crate::pace::Pace;

impl Collector<'_> {
    /// Observes every change up to now.
    pub(super) async fn observe_changes(&mut self) -> Result<(), FellBehind> {
        self.heads.mark_unchanged();
        let (number, resources) = self.environment.registry.resources();
        if self.number.replace(number) != Some(number) {
            let before = std::mem::replace(&mut self.resources, resources);
            self.kinds = OnceCell::new();
            self.begin_feeds(&before).await;
            for key in std::mem::take(&mut self.unresolved) {
                self.enqueue(&key);
            }
        }
        // Only the collections that changed are read: there may be thousands, and few change.
        let registry = self.environment.registry.clone();
        let head = registry.head();
        for collection in registry.changed_since(self.observed) {
            let Some(feed) = self.feeds.get_mut(&collection) else { continue };
            let Ok(FeedUpdate::Changes(changes)) = feed.take() else { return Err(FellBehind) };
            self.observe_all(&collection, &changes).await;
        }
        self.observed = head;
        Ok(())
    }

    /// Begins feeds of new collections, all before it observes the objects of the first: an owner
    /// that is found to exist then is in a feed, which will have its deletion. Most resources keep
    /// their index in the list.
    async fn begin_feeds(&mut self, before: &[Arc<Resource>]) {
        let resources = self.resources.clone();
        let same = |at: usize| before.get(at).is_some_and(|old| Arc::ptr_eq(old, &resources[at]));
        let mut states = Vec::new();
        for resource in (0..resources.len()).filter(|at| !same(*at)).map(|at| &resources[at]) {
            let Some(storage) = &resource.storage else { continue };
            if self.feeds.contains_key(&storage.collection) {
                continue;
            }
            let mut feed = self.environment.registry.feed(resource);
            if let Ok(FeedUpdate::State(objects)) = feed.take() {
                states.push((&storage.collection, objects));
                self.feeds.insert(storage.collection.clone(), feed);
            }
        }
        for (collection, objects) in states {
            self.observe_all(collection, &objects).await;
        }
    }

    async fn observe_all(&mut self, collection: &Arc<str>, objects: &[Arc<Object>]) {
        let mut pace = Pace::default();
        for object in objects {
            self.observe(collection, object).await;
            pace.step(object.size()).await;
        }
    }

    /// Updates the graph for an object's new state or its deletion.
    async fn observe(&mut self, collection: &Arc<str>, object: &Object) {
        let key = ObjectKey { collection: collection.clone(), item: object.item.clone() };
        if object.kind() == Kind::Deleted {
            self.observe_deletion(&key, object);
            return;
        }
        // Most objects have no owner and are not being deleted; a search in their bytes shows it
        // cheaply. It finds owners near the beginning, so it looks for them first.
        let json = object.abridged();
        let is_plain = !owners::may_have_owners(json) && !owners::may_be_terminating(json);
        if is_plain && !self.graph.has(&key) {
            return;
        }
        // An unreadable object keeps its last state in the graph, so that nothing is deleted
        // because of it.
        let tree = match owners::lifecycle(object) {
            Ok(tree) => tree,
            Err(why) => {
                return tracing::error!(%collection, item = %key.item, "the garbage collector cannot read an object and ignores the change: {why}");
            }
        };
        self.take_in(&key, &tree).await;
    }

    /// Updates the graph for an object's finalizers and owner references.
    async fn take_in(&mut self, key: &ObjectKey, tree: &Value) {
        let reference = |owner: owners::Owner| Reference { uid: owner.uid, blocks: owner.blocks };
        let owners: Vec<Reference> = owners::owners(tree).into_iter().map(reference).collect();
        let before = self.graph.set(key, &owners);
        if *before != *owners && self.has_to_act(key, tree).await {
            self.enqueue(key);
        }
        self.enqueue_waiting(before.iter().chain(&owners));
        let propagation = if owners::is_finalizing(tree, owners::ORPHAN) {
            Propagation::Orphan
        } else if owners::is_finalizing(tree, owners::FOREGROUND) {
            Propagation::Foreground
        } else {
            return;
        };
        let uid = Str::from(object::uid(tree));
        self.enqueue(key);
        if self.waiting.add(uid.clone(), key, propagation) {
            // Only the first time: later each dependent is enqueued when it changes.
            self.enqueue_dependents(&uid);
        }
    }

    /// Whether something has to be done about an object with new owners. Most objects are created
    /// after their owners, which exist. The graph has the object already, so a later change of an
    /// owner enqueues it.
    async fn has_to_act(&mut self, key: &ObjectKey, tree: &Value) -> bool {
        let owner_states = OwnerStates::default();
        let decision = self.begin_evaluation(&owner_states).decide(key, tree, false).await;
        decision.map_or(true, |decision| !decision.is_nothing())
    }

    fn observe_deletion(&mut self, key: &ObjectKey, object: &Object) {
        self.forget(key);
        if self.graph.is_empty() && self.waiting.is_empty() {
            return;
        }
        let uid = match owners::lifecycle(object) {
            Ok(tree) => Str::from(object::uid(&tree)),
            Err(why) => {
                return tracing::error!(collection = %key.collection, item = %key.item, "the garbage collector cannot read a deleted object; its dependents may stay: {why}");
            }
        };
        self.waiting.remove(&uid);
        if self.enqueue_dependents(&uid) {
            self.absent_owners.add(uid, key);
        }
    }

    /// Updates the graph for an event of an extension API server.
    pub(super) async fn observe_extensions(&mut self, event: Event) {
        let (resource, update) = match event {
            Event::Update(resource, update) => (resource, update),
            Event::Served => {
                for (key, tree) in self.extensions.refresh() {
                    self.forget(&key);
                    self.waiting.remove(object::uid(&tree));
                }
                for key in std::mem::take(&mut self.unresolved) {
                    self.enqueue(&key);
                }
                return;
            }
        };
        if matches!(update, ObjectUpdate::All(_)) {
            for key in std::mem::take(&mut self.unobserved) {
                self.enqueue(&key);
            }
        }
        let changes = self.extensions.take(&resource, update);
        let mut pace = Pace::default();
        for change in changes {
            match change {
                Change::Seen(key, tree) => self.take_in(&key, &tree).await,
                Change::Ended(key, tree) => {
                    // The evaluation of a dependent asks the server for this owner before it
                    // deletes the dependent.
                    self.forget(&key);
                    self.waiting.remove(object::uid(&tree));
                    self.enqueue_dependents(&Str::from(object::uid(&tree)));
                }
            }
            pace.step(0).await;
        }
    }

    /// Removes a deleted object from the graph.
    fn forget(&mut self, key: &ObjectKey) {
        let owners = self.graph.remove(key);
        self.enqueue_waiting(&owners);
        self.unresolved.remove(key);
        self.unobserved.remove(key);
        self.owner_states.remove(key);
        self.deferred.remove(key);
    }

    /// Enqueues the dependents of an owner; returns whether there are any.
    fn enqueue_dependents(&mut self, uid: &Str) -> bool {
        let dependents = self.graph.dependents(uid);
        let any = dependents.len() > 0;
        dependents.for_each(|dependent| self.queue.enqueue(dependent, Duration::ZERO));
        any
    }

    /// Enqueues those of some owners that wait for their dependents.
    fn enqueue_waiting<'u>(&mut self, owners: impl IntoIterator<Item = &'u Reference>) {
        for owner in owners {
            if let Some(key) = self.waiting.get(&owner.uid) {
                self.queue.enqueue(key, Duration::ZERO);
            }
        }
    }
}
