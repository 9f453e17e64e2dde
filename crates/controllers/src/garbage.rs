//! Garbage collection: what has lost its owners goes, in the background, in the foreground, or not
//! (KCM-01).
//!
//! Purpose: follows every collection, keeps who owns whom, and looks at an object when something about
//! it or its owners changed. What is to be done is decided by [`judge`] and done here.
//!
//! Must not know: any particular kind.
//!
//! Invariant: before an object is looked at, every change up to that moment has been heard, of all
//! collections. So an owner that was deleted after its dependent was made is never seen without it.

mod graph;
mod judge;
mod kinds;
mod owners;
#[cfg(test)]
mod tests;

use std::cell::OnceCell;
use std::collections::{BTreeSet, HashMap};
use std::future::Future;
use std::sync::Arc;

use memchr::memmem;
use pintle_meta::{Reason, Status, object};
use pintle_registry::request::{PatchType, Target, WriteOptions, granted};
use pintle_registry::trail::{Lost, Trail};
use pintle_registry::{Object, Resource};
use pintle_store::{Kind, Revision};
use pintle_value::{Str, json};
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::retry::Queue;
use crate::{Environment, target, until};
use graph::{Gone, Graph, Place};
use judge::{Deed, Judge};
use kinds::Kinds;

const USER: &str = "system:serviceaccount:kube-system:generic-garbage-collector";
/// How many writes are under way at once: they share the store's batches.
const UNDER_WAY_MAX: usize = 64;

/// Collects until told to stop.
pub async fn run(environment: Environment, shutdown: impl Future<Output = ()>) {
    until(shutdown, async {
        loop {
            let Lost = Collector::new(&environment).work().await;
            tracing::debug!("garbage collection begins anew: changes came too fast");
        }
    })
    .await;
}

struct Collector<'e> {
    environment: &'e Environment,
    heads: watch::Receiver<Revision>,
    /// The number of the set of served resources that is known, and the set.
    number: Option<u64>,
    resources: Arc<[Arc<Resource>]>,
    /// Made of the set when something is looked at: definitions come in thousands, and few own.
    kinds: OnceCell<Kinds>,
    trails: HashMap<Arc<str>, Trail>,
    /// Every change up to here has been heard.
    heard: Revision,
    graph: Graph,
    gone: Gone,
    /// Owners that are being deleted and wait for their dependents, by uid.
    waiting: HashMap<Str, Place>,
    unresolved: BTreeSet<Place>,
    queue: Queue<Place>,
}

impl<'e> Collector<'e> {
    fn new(environment: &'e Environment) -> Self {
        Self {
            environment,
            heads: environment.registry.heads(),
            number: None,
            resources: Arc::default(),
            kinds: OnceCell::new(),
            trails: HashMap::new(),
            heard: environment.registry.head(),
            graph: Graph::default(),
            gone: Gone::default(),
            waiting: HashMap::new(),
            unresolved: BTreeSet::new(),
            queue: Queue::default(),
        }
    }

    /// Works until it has lost a trail.
    async fn work(mut self) -> Lost {
        let mut under_way = JoinSet::new();
        loop {
            if let Err(lost) = self.listen() {
                return lost;
            }
            tokio::select! {
                biased;
                changed = self.heads.changed() => {
                    if changed.is_err() {
                        return std::future::pending().await; // the registry is gone, and we with it
                    }
                }
                Some(done) = under_way.join_next() => {
                    if let Ok((place, outcome)) = done {
                        self.heed(&place, outcome);
                    }
                }
                place = self.queue.next(), if under_way.len() < UNDER_WAY_MAX => {
                    if let Err(lost) = self.listen() {
                        return lost;
                    }
                    self.queue.forget(&place);
                    for deed in self.look_at(&place) {
                        under_way.spawn(perform(self.environment.clone(), self.target(&deed), deed));
                    }
                }
            }
        }
    }

    /// Hears everything that has happened up to now.
    fn listen(&mut self) -> Result<(), Lost> {
        self.heads.mark_unchanged();
        let (number, resources) = self.environment.registry.resources();
        if self.number.replace(number) != Some(number) {
            let before = std::mem::replace(&mut self.resources, resources);
            self.kinds = OnceCell::new();
            self.begin_trails(&before);
            for place in std::mem::take(&mut self.unresolved) {
                self.queue.add(&place);
            }
        }
        // Of thousands of collections few change: only they are looked at.
        let (registry, head) = (&self.environment.registry, self.environment.registry.head());
        for collection in registry.changed_since(self.heard) {
            let Some(mut trail) = self.trails.remove(&collection) else { continue };
            loop {
                let changed = trail.take()?;
                if changed.is_empty() {
                    break;
                }
                changed.iter().for_each(|object| self.hear(&collection, object));
            }
            self.trails.insert(collection, trail);
        }
        self.heard = head;
        Ok(())
    }

    /// Follows the collections that are new. Most resources stay where they were among all.
    fn begin_trails(&mut self, before: &[Arc<Resource>]) {
        let resources = self.resources.clone();
        let same = |at: usize| before.get(at).is_some_and(|old| Arc::ptr_eq(old, &resources[at]));
        for resource in (0..resources.len()).filter(|at| !same(*at)).map(|at| &resources[at]) {
            let Some(storage) = &resource.storage else { continue };
            if self.trails.contains_key(&storage.collection) {
                continue;
            }
            if let Ok((objects, trail)) = self.environment.registry.trail(resource) {
                objects.iter().for_each(|object| self.hear(&storage.collection, object));
                self.trails.insert(storage.collection.clone(), trail);
            }
        }
    }

    fn kinds(&self) -> &Kinds {
        self.kinds.get_or_init(|| Kinds::of(&self.resources))
    }

    /// Takes in an object's new state, or that it is gone.
    fn hear(&mut self, collection: &Arc<str>, object: &Object) {
        let place = Place { collection: collection.clone(), item: object.item.clone() };
        if object.kind() == Kind::Deleted {
            self.hear_of_end(&place, object);
            return;
        }
        // Most objects are neither owned nor leaving; a look at their bytes tells.
        let says = |member: &str| memmem::find(object.json_bytes(), member.as_bytes()).is_some();
        let leaving = says("\"deletionTimestamp\"");
        if !leaving && !says("\"ownerReferences\"") && !self.graph.has(&place) {
            return;
        }
        let tree = object.tree();
        let owners: Vec<Str> = owners::owners(&tree).into_iter().map(|owner| owner.uid).collect();
        let before = self.graph.set(&place, owners.clone());
        if before != owners {
            self.queue.add(&place);
        }
        self.wake(before.iter().chain(&owners));
        if owners::ends_with(&tree, owners::ORPHAN) || owners::ends_with(&tree, owners::FOREGROUND)
        {
            self.waiting.insert(object::uid(&tree).into(), place.clone());
            self.queue.add(&place);
        }
    }

    fn hear_of_end(&mut self, place: &Place, object: &Object) {
        let owners = self.graph.remove(place);
        self.wake(&owners);
        self.unresolved.remove(place);
        if self.graph.is_empty() && self.waiting.is_empty() {
            return;
        }
        let uid = Str::from(object::uid(&object.tree()));
        self.waiting.remove(&uid);
        let mut dependents = self.graph.dependents(&uid).peekable();
        if dependents.peek().is_some() {
            dependents.for_each(|dependent| self.queue.add(dependent));
            self.gone.add(uid, place);
        }
    }

    /// Owners that wait for their dependents are to be looked at again.
    fn wake<'u>(&mut self, owners: impl IntoIterator<Item = &'u Str>) {
        for uid in owners {
            if let Some(place) = self.waiting.get(uid) {
                self.queue.add(place);
            }
        }
    }

    /// Decides about an object.
    fn look_at(&mut self, place: &Place) -> Vec<Deed> {
        let registry = &*self.environment.registry;
        let (kinds, graph, gone) = (self.kinds(), &self.graph, &self.gone);
        let judgement = Judge { registry, kinds, graph, gone }.look_at(place);
        if judgement.unresolved {
            self.unresolved.insert(place.clone());
        }
        judgement.next.iter().for_each(|place| self.queue.add(place));
        judgement.deeds
    }

    fn target(&self, deed: &Deed) -> Option<Target> {
        let place = deed.place();
        let (namespace, name) = place.split();
        Some(target(self.kinds().kept_in(&place.collection)?, namespace, name, ""))
    }

    /// Takes in what a write came to. What it changed is heard of like any other change.
    fn heed(&mut self, place: &Place, outcome: Result<(), Status>) {
        let Err(status) = outcome else { return };
        if !matches!(status.reason, Some(Reason::Conflict)) {
            tracing::warn!(object = %place.item, collection = %place.collection, %status, "cannot collect");
        }
        self.queue.retry(place);
    }
}

/// Does it. An object that is gone is as good as done.
async fn perform(
    environment: Environment,
    target: Option<Target>,
    deed: Deed,
) -> (Place, Result<(), Status>) {
    let Some(target) = target else { return (deed.place().clone(), Ok(())) };
    let (registry, context) = (&environment.registry, environment.context(USER));
    let outcome = match &deed {
        Deed::Delete(_, options) => registry.delete(&target, options, &context).await,
        Deed::Patch(_, patch) => {
            let (patch, options) = (json::to_string(patch), WriteOptions::default());
            let patch = patch.as_bytes();
            registry.patch(&target, patch, PatchType::Merge, &options, &context, &granted).await
        }
    };
    let outcome = match outcome {
        Err(status) if status.code != 404 => Err(status),
        Ok(_) | Err(_) => Ok(()),
    };
    (deed.place().clone(), outcome)
}
