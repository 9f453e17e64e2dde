//! Garbage collection: what has lost its owners goes, in the background, in the foreground, or not
//! (KCM-01).
//!
//! Purpose: follows every collection, keeps who owns whom, and looks at an object when something about
//! it or its owners changed. What is to be done is decided by [`judge`] and done here.
//!
//! Must not know: any particular kind.
//!
//! Invariants:
//! - Between the moment when an object's turn comes and the look at it, every change up to that moment is
//!   heard, of all collections. So an owner that was deleted after its dependent was made is never seen
//!   without it.
//! - What a change costs follows from the object that changed, not from how many others its owner has.

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
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use memchr::memmem;
use pintle_meta::{Reason, Status, object};
use pintle_registry::request::{PatchType, Target, WriteOptions, granted};
use pintle_registry::trail::{Lost, Trail};
use pintle_registry::{Head, Object, Resource};
use pintle_store::{Kind, Revision};
use pintle_value::{Str, json};
use tokio::sync::watch;
use tokio::task::{JoinError, JoinSet};

use crate::retry::Queue;
use crate::{Environment, target, until};
use graph::{Ending, Gone, Graph, Place, Reference, Waiting};
use judge::{Deed, Judge};
use kinds::Kinds;
use owners::LIFE;

const USER: &str = "system:serviceaccount:kube-system:generic-garbage-collector";
/// How many writes are under way at once: they share the store's batches.
const UNDER_WAY_MAX: usize = 64;
/// How many changes are heard before other controllers have their turn: about a millisecond's work.
const HEARD_AT_ONCE: usize = 256;

/// How far the collector is behind, for metrics.
#[derive(Debug, Default)]
pub struct Progress {
    heard: AtomicU64,
    to_look_at: AtomicUsize,
    looks: AtomicU64,
}

impl Progress {
    fn report(&self, heard: Revision, to_look_at: usize) {
        self.heard.store(heard.0, Ordering::Relaxed);
        self.to_look_at.store(to_look_at, Ordering::Relaxed);
    }

    /// How many of the writes up to a revision the collector has not heard of; `None` where none is at work.
    pub fn unheard(&self, head: Revision) -> Option<u64> {
        let heard = self.heard.load(Ordering::Relaxed);
        (heard > 0).then(|| head.0.saturating_sub(heard))
    }

    /// How often the collector has looked at an object.
    pub fn looks(&self) -> u64 {
        self.looks.load(Ordering::Relaxed)
    }

    /// How many objects the collector is still to look at, or is changing.
    pub fn to_look_at(&self) -> usize {
        self.to_look_at.load(Ordering::Relaxed)
    }
}

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
    heads: watch::Receiver<Head>,
    /// The number of the set of served resources that is known, and the set.
    number: Option<u64>,
    resources: Arc<[Arc<Resource>]>,
    /// Made of the set when something is looked at: definitions come in thousands, and few own.
    kinds: OnceCell<Kinds>,
    trails: HashMap<Arc<str>, Trail>,
    /// Every change up to here has been heard.
    heard: Head,
    graph: Graph,
    gone: Gone,
    /// Owners that are being deleted and wait for their dependents.
    waiting: Waiting,
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
            waiting: Waiting::default(),
            unresolved: BTreeSet::new(),
            queue: Queue::default(),
        }
    }

    /// Works until it has lost a trail. Taking in changes and settling take turns, so that neither starves
    /// under steady writes.
    async fn work(mut self) -> Lost {
        let mut under_way = JoinSet::new();
        loop {
            let ready = self.ready(UNDER_WAY_MAX.saturating_sub(under_way.len()));
            if let Err(lost) = self.listen().await {
                return lost;
            }
            for (place, waited) in ready {
                if let Some(deed) = self.look_at(&place, waited) {
                    under_way.spawn(perform(self.environment.clone(), self.target(&deed), deed));
                }
            }
            while let Some(done) = under_way.try_join_next() {
                self.heed(done);
            }
            self.environment
                .collector
                .report(self.heard.revision, self.queue.len() + under_way.len());
            let has_room = under_way.len() < UNDER_WAY_MAX;
            if has_room && self.queue.due().is_some() {
                tokio::task::yield_now().await; // other controllers have their turn
                continue;
            }
            tokio::select! {
                changed = self.heads.changed() => {
                    if changed.is_err() {
                        return std::future::pending().await; // the registry is gone, and we with it
                    }
                }
                Some(done) = under_way.join_next() => self.heed(done),
                _ = self.queue.next(), if has_room => {}
            }
        }
    }

    /// Takes out of the queue what is due: so many objects at most, each with whether it is known to wait
    /// for its dependents.
    fn ready(&mut self, count_max: usize) -> Vec<(Place, bool)> {
        let mut ready = Vec::new();
        while ready.len() < count_max
            && let Some(place) = self.queue.due().cloned()
        {
            self.queue.forget(&place);
            let waits = self.waiting.has(&place);
            ready.push((place, waits));
        }
        ready
    }

    /// Hears everything that has happened up to now.
    async fn listen(&mut self) -> Result<(), Lost> {
        self.heads.mark_unchanged();
        let (number, resources) = self.environment.registry.resources();
        if self.number.replace(number) != Some(number) {
            let before = std::mem::replace(&mut self.resources, resources);
            self.kinds = OnceCell::new();
            self.begin_trails(&before).await;
            for place in std::mem::take(&mut self.unresolved) {
                self.queue.add(&place);
            }
        }
        // Of thousands of collections few change: only they are looked at.
        let registry = self.environment.registry.clone();
        let head = registry.head();
        for collection in registry.changed_since(self.heard) {
            let Some(mut trail) = self.trails.remove(&collection) else { continue };
            loop {
                let changed = trail.take()?;
                self.hear_all(&collection, &changed).await;
                // What came meanwhile is heard the next time.
                if changed.last().is_none_or(|last| last.revision >= head.revision) {
                    break;
                }
            }
            self.trails.insert(collection, trail);
        }
        self.heard = head;
        Ok(())
    }

    /// Follows the collections that are new. Most resources stay where they were among all.
    async fn begin_trails(&mut self, before: &[Arc<Resource>]) {
        let resources = self.resources.clone();
        let same = |at: usize| before.get(at).is_some_and(|old| Arc::ptr_eq(old, &resources[at]));
        for resource in (0..resources.len()).filter(|at| !same(*at)).map(|at| &resources[at]) {
            let Some(storage) = &resource.storage else { continue };
            if self.trails.contains_key(&storage.collection) {
                continue;
            }
            if let Ok((objects, trail)) = self.environment.registry.trail(resource) {
                self.hear_all(&storage.collection, &objects).await;
                self.trails.insert(storage.collection.clone(), trail);
            }
        }
    }

    async fn hear_all(&mut self, collection: &Arc<str>, objects: &[Arc<Object>]) {
        for some in objects.chunks(HEARD_AT_ONCE) {
            some.iter().for_each(|object| self.hear(collection, object));
            if some.len() == HEARD_AT_ONCE {
                tokio::task::yield_now().await; // other controllers have their turn
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
        // One that cannot be read stays as it is known: nothing is collected for what it might say.
        let tree = match object.excerpt(LIFE) {
            Ok(tree) => tree,
            Err(why) => return tracing::error!(%collection, "the collector leaves out: {why}"),
        };
        let reference = |owner: owners::Owner| Reference { uid: owner.uid, blocks: owner.blocks };
        let owners: Vec<Reference> = owners::owners(&tree).into_iter().map(reference).collect();
        let before = self.graph.set(&place, &owners);
        if *before != *owners {
            self.queue.add(&place);
        }
        self.wake(before.iter().chain(&owners));
        let ending = if owners::ends_with(&tree, owners::ORPHAN) {
            Ending::Orphan
        } else if owners::ends_with(&tree, owners::FOREGROUND) {
            Ending::Foreground
        } else {
            return;
        };
        let uid = Str::from(object::uid(&tree));
        self.queue.add(&place);
        if self.waiting.add(uid.clone(), &place, ending) {
            // Once: from then on each comes up when something changes about it.
            self.graph.dependents(&uid).for_each(|dependent| self.queue.add(dependent));
        }
    }

    fn hear_of_end(&mut self, place: &Place, object: &Object) {
        let owners = self.graph.remove(place);
        self.wake(&owners);
        self.unresolved.remove(place);
        if self.graph.is_empty() && self.waiting.is_empty() {
            return;
        }
        let uid = match object.excerpt(LIFE) {
            Ok(tree) => Str::from(object::uid(&tree)),
            Err(why) => return tracing::error!("the collector leaves out: {why}"),
        };
        self.waiting.remove(&uid);
        let mut dependents = self.graph.dependents(&uid).peekable();
        if dependents.peek().is_some() {
            dependents.for_each(|dependent| self.queue.add(dependent));
            self.gone.add(uid, place);
        }
    }

    /// Owners that wait for their dependents are to be looked at again.
    fn wake<'u>(&mut self, owners: impl IntoIterator<Item = &'u Reference>) {
        for owner in owners {
            if let Some(place) = self.waiting.get(&owner.uid) {
                self.queue.add(place);
            }
        }
    }

    /// Decides about an object.
    fn look_at(&mut self, place: &Place, waited: bool) -> Option<Deed> {
        self.environment.collector.looks.fetch_add(1, Ordering::Relaxed);
        let registry = &*self.environment.registry;
        let (kinds, graph, gone) = (self.kinds(), &self.graph, &self.gone);
        let judge = Judge { registry, kinds, graph, gone, waiting: &self.waiting };
        let judgement = match judge.look_at(place, waited) {
            Ok(judgement) => judgement,
            Err(why) => {
                tracing::error!(object = %place.item, collection = %place.collection, "cannot collect: {why}");
                self.queue.retry(place);
                return None;
            }
        };
        if judgement.unresolved {
            self.unresolved.insert(place.clone());
        }
        judgement.deed
    }

    fn target(&self, deed: &Deed) -> Option<Target> {
        let place = deed.place();
        let (namespace, name) = place.split();
        Some(target(self.kinds().kept_in(&place.collection)?, namespace, name, ""))
    }

    /// Takes in what a write came to. What it changed is heard of like any other change.
    fn heed(&mut self, done: Result<(Place, Result<(), Status>), JoinError>) {
        let Ok((place, Err(status))) = done else { return };
        if !matches!(status.reason, Some(Reason::Conflict)) {
            tracing::warn!(object = %place.item, collection = %place.collection, %status, "cannot collect");
        }
        self.queue.retry(&place);
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
