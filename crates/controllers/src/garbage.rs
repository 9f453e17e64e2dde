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
//! - What extension API servers keep is followed, too, as of their last word: before an object is deleted
//!   for an owner that one of them keeps, that server has said that the owner is gone.
//! - What a change costs follows from the object that changed, not from how many others its owner has.

mod extensions;
mod graph;
mod judge;
mod kinds;
mod owners;
mod perform;
#[cfg(test)]
mod tests;

use std::cell::OnceCell;
use std::collections::{BTreeSet, HashMap};
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use memchr::memmem;
use pintle_meta::{Reason, Status, object};
use pintle_registry::trail::{Lost, Trail};
use pintle_registry::{Head, Object, Resource};
use pintle_store::{Kind, Revision};
use pintle_value::{Str, Value};
use tokio::sync::watch;
use tokio::task::{JoinError, JoinSet};

use crate::extensions::News;
use crate::retry::Queue;
use crate::{Environment, target, until};
use extensions::{Answers, Change, Event, Extensions, OwnerResource};
use graph::{Ending, Gone, Graph, Place, Reference, Waiting};
use judge::{Deed, Judge};
use kinds::Kinds;
use owners::LIFE;
use perform::{Holder, perform};

const USER: &str = "system:serviceaccount:kube-system:generic-garbage-collector";
/// How many writes are under way at once: they share the store's batches.
const UNDER_WAY_MAX: usize = 64;
/// How many of them extension API servers do: those that do not answer shall not hold up the others.
const REQUESTS_MAX: usize = 16;
/// How long an owner waits for its dependents at extension API servers before it is looked at again.
const BEHIND_DELAY: Duration = Duration::from_secs(1);
/// How long an owner is taken to be there whose extension API server does not tell of its end.
const UNOBSERVED_DELAY: Duration = Duration::from_secs(60);
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
    /// Objects that have an owner whose extension API server has not told of it.
    unobserved: BTreeSet<Place>,
    queue: Queue<Place>,
    extensions: Extensions,
    /// What was answered about the owners of objects that are about to be looked at.
    answers: HashMap<Place, Answers>,
    /// How many requests to extension API servers are under way, and which objects wait for one.
    requests: usize,
    deferred: BTreeSet<Place>,
}

/// What became of what was begun for an object.
struct Done {
    place: Place,
    is_asked: bool,
    outcome: Result<Option<Answers>, Status>,
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
            unobserved: BTreeSet::new(),
            queue: Queue::default(),
            extensions: Extensions::new(environment),
            answers: HashMap::new(),
            requests: 0,
            deferred: BTreeSet::new(),
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
                match self.look_at(&place, waited) {
                    Some(deed) => self.begin(&mut under_way, deed),
                    None => self.queue.done(&place),
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
                event = self.extensions.next() => self.hear_of_extensions(event).await,
                _ = self.queue.next(), if has_room => {}
            }
        }
    }

    /// Takes up what is due: so many objects at most, each with whether it is known to wait for its
    /// dependents, and all of these are known.
    fn ready(&mut self, count_max: usize) -> Vec<(Place, bool)> {
        let mut ready = Vec::new();
        while ready.len() < count_max
            && let Some(place) = self.queue.due().cloned()
        {
            self.queue.begin(&place);
            let mut waits = self.waiting.has(&place);
            if waits && self.extensions.is_behind() {
                self.queue.hasten(&place, BEHIND_DELAY);
                waits = false;
            }
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
                self.bring_up(&place);
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
        self.take_in(&place, &tree);
    }

    /// Takes in what decides about an object's life.
    fn take_in(&mut self, place: &Place, tree: &Value) {
        let reference = |owner: owners::Owner| Reference { uid: owner.uid, blocks: owner.blocks };
        let owners: Vec<Reference> = owners::owners(tree).into_iter().map(reference).collect();
        let before = self.graph.set(place, &owners);
        if *before != *owners {
            self.bring_up(place);
        }
        self.wake(before.iter().chain(&owners));
        let ending = if owners::ends_with(tree, owners::ORPHAN) {
            Ending::Orphan
        } else if owners::ends_with(tree, owners::FOREGROUND) {
            Ending::Foreground
        } else {
            return;
        };
        let uid = Str::from(object::uid(tree));
        self.bring_up(place);
        if self.waiting.add(uid.clone(), place, ending) {
            // Once: from then on each comes up when something changes about it.
            self.bring_up_dependents(&uid);
        }
    }

    fn hear_of_end(&mut self, place: &Place, object: &Object) {
        self.forget(place);
        if self.graph.is_empty() && self.waiting.is_empty() {
            return;
        }
        let uid = match object.excerpt(LIFE) {
            Ok(tree) => Str::from(object::uid(&tree)),
            Err(why) => return tracing::error!("the collector leaves out: {why}"),
        };
        self.waiting.remove(&uid);
        if self.bring_up_dependents(&uid) {
            self.gone.add(uid, place);
        }
    }

    /// Takes in what extension API servers tell.
    async fn hear_of_extensions(&mut self, event: Event) {
        let (resource, news) = match event {
            Event::News(resource, news) => (resource, news),
            Event::Served => {
                for (place, tree) in self.extensions.refresh() {
                    self.forget(&place);
                    self.waiting.remove(object::uid(&tree));
                }
                for place in std::mem::take(&mut self.unresolved) {
                    self.bring_up(&place);
                }
                return;
            }
        };
        if matches!(news, News::All(_)) {
            for place in std::mem::take(&mut self.unobserved) {
                self.bring_up(&place);
            }
        }
        let changes = self.extensions.take(&resource, news);
        for (at, change) in changes.into_iter().enumerate() {
            match change {
                Change::Seen(place, tree) => self.take_in(&place, &tree),
                Change::Ended(place, tree) => {
                    // What has named it as an owner asks about it before anything is done.
                    self.forget(&place);
                    self.waiting.remove(object::uid(&tree));
                    self.bring_up_dependents(&Str::from(object::uid(&tree)));
                }
            }
            if at % HEARD_AT_ONCE == HEARD_AT_ONCE - 1 {
                tokio::task::yield_now().await; // other controllers have their turn
            }
        }
    }

    /// Forgets an object that is gone.
    fn forget(&mut self, place: &Place) {
        let owners = self.graph.remove(place);
        self.wake(&owners);
        self.unresolved.remove(place);
        self.unobserved.remove(place);
        self.answers.remove(place);
        self.deferred.remove(place);
    }

    /// An object is to be looked at, also if that is under way.
    fn bring_up(&mut self, place: &Place) {
        self.queue.hasten(place, Duration::ZERO);
    }

    /// The objects that name an owner are to be looked at; whether there are any.
    fn bring_up_dependents(&mut self, uid: &Str) -> bool {
        let dependents = self.graph.dependents(uid);
        let any = dependents.len() > 0;
        dependents.for_each(|dependent| self.queue.hasten(dependent, Duration::ZERO));
        any
    }

    /// Owners that wait for their dependents are to be looked at again.
    fn wake<'u>(&mut self, owners: impl IntoIterator<Item = &'u Reference>) {
        for owner in owners {
            if let Some(place) = self.waiting.get(&owner.uid) {
                self.queue.hasten(place, Duration::ZERO);
            }
        }
    }

    /// Decides about an object.
    fn look_at(&mut self, place: &Place, waited: bool) -> Option<Deed> {
        self.unobserved.remove(place);
        self.environment.collector.looks.fetch_add(1, Ordering::Relaxed);
        // They are true now, and not the next time.
        let answers = self.answers.remove(place).unwrap_or_default();
        let registry = &*self.environment.registry;
        let (kinds, graph, gone) = (self.kinds(), &self.graph, &self.gone);
        let (waiting, extensions) = (&self.waiting, &self.extensions);
        let answers = &answers;
        let judge = Judge { registry, kinds, graph, gone, waiting, extensions, answers };
        let judgement = match judge.look_at(place, waited) {
            Ok(judgement) => judgement,
            Err(why) => {
                tracing::error!(object = %place.item, collection = %place.collection, "cannot collect: {why}");
                self.queue.done(place);
                self.queue.retry(place);
                return None;
            }
        };
        if judgement.unresolved {
            self.unresolved.insert(place.clone());
        }
        if judgement.unobserved {
            self.unobserved.insert(place.clone());
            self.queue.hasten(place, UNOBSERVED_DELAY);
        }
        judgement.deed
    }

    /// Begins what is to be done; or puts it off where extension API servers have enough to do.
    fn begin(&mut self, under_way: &mut JoinSet<Done>, deed: Deed) {
        let place = deed.place().clone();
        let is_extension =
            |q: &extensions::Question| matches!(q.resource, OwnerResource::Extension(_));
        let is_asked = match &deed {
            Deed::Ask(_, questions) => questions.iter().any(is_extension),
            Deed::Delete(..) | Deed::Patch(..) => self.extensions.resource_of(&place).is_some(),
        };
        if is_asked && self.requests >= REQUESTS_MAX {
            self.queue.done(&place);
            self.deferred.insert(place);
            return;
        }
        self.requests += usize::from(is_asked);
        let holder = self.holder(&place);
        let environment = self.environment.clone();
        under_way.spawn(async move {
            let outcome = perform(&environment, holder, &deed).await;
            Done { place, is_asked, outcome }
        });
    }

    fn holder(&self, place: &Place) -> Option<Holder> {
        if let Some(resource) = self.extensions.resource_of(place) {
            return Some(Holder::Extension(resource.clone()));
        }
        let (namespace, name) = place.split();
        let resource = self.kinds().kept_in(&place.collection)?;
        Some(Holder::Registry(target(resource, namespace, name, "")))
    }

    /// Takes in what became of what was begun. What it changed is heard of like any other change.
    fn heed(&mut self, done: Result<Done, JoinError>) {
        let Ok(Done { place, is_asked, outcome }) = done else { return };
        if is_asked {
            self.requests = self.requests.saturating_sub(1);
            if let Some(next) = self.deferred.pop_first() {
                self.bring_up(&next);
            }
        }
        match outcome {
            Ok(answers) => {
                self.queue.done(&place);
                if let Some(answers) = answers {
                    self.bring_up(&place);
                    self.answers.insert(place, answers);
                }
            }
            Err(status) => {
                if !matches!(status.reason, Some(Reason::Conflict)) {
                    tracing::warn!(object = %place.item, collection = %place.collection, %status, "cannot collect");
                }
                self.queue.retry(&place);
            }
        }
    }
}
