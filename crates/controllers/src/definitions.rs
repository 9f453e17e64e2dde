//! The controller of CustomResourceDefinitions: accepts their names, serves their resources, and
//! deletes their objects with them.
//!
//! A definition is served before its status says so: a client that sees `Established` can use it.
//!
//! The state here can be rebuilt from the definitions. It contains no schemas, and schemas are read
//! only on demand: they are long, and of thousands of definitions few are used.
//!
//! It uses the queue of `reconcile`, but a loop of its own, for three reasons. The evaluation of a
//! definition changes the known definitions and enqueues others at once. Definitions and API
//! services are evaluated one at a time, and only their writes are concurrent. A definition that
//! was deleted while no watch ran must still be removed.

mod api_services;
mod cleanup;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::future::ready;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{BoxFuture, FutureExt};
use pintle_crd::{BuiltIn, Crd, lifecycle, stored_schema};
use pintle_meta::{GroupVersionResource, Reason, Status, object};
use pintle_registry::request::{ListOptions, WriteOptions, granted};
use pintle_registry::results::Event;
use pintle_registry::watch::Watch;
use pintle_registry::webhook::Caller;
use pintle_registry::{Object, Registry, Resource};
use pintle_value::{Str, Value, json};
use tokio::task::JoinSet;

use crate::retry::{DELAY_MAX, Queue};
use crate::{Environment, SERVER, body, target};

const GROUP: &str = "apiextensions.k8s.io";
const PLURAL: &str = "customresourcedefinitions";

/// The definitions and their served resources.
pub struct Definitions {
    environment: Environment,
    caller: Arc<dyn Caller>,
    built_in: Arc<BuiltIn>,
    known: BTreeMap<Str, Known>,
    queue: Queue<Due>,
    /// The writes in progress. They run concurrently, so that they share the store's batches.
    in_progress: JoinSet<(Due, Outcome)>,
}

/// The result of an evaluation.
type Outcome = Result<Progress, Status>;

/// The most writes that are under way at once.
const IN_PROGRESS_MAX: usize = 64;

/// A name in the queue.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Due {
    Definition(Str),
    ApiService(Str),
}

/// A definition, as far as other definitions and its served resources depend on it.
struct Known {
    group: Str,
    /// A definition with nothing but its accepted names.
    names: Value,
    /// It waits for names that another definition has.
    lacks_names: bool,
    /// Whether its status was up to date when the server started.
    is_current: bool,
    /// The versions that it wants to be served.
    versions: Vec<Str>,
    /// The served resources, and the state of the definition from which they were made.
    served: Vec<GroupVersionResource>,
    made_of: State,
}

/// The parts of a definition on which its resources depend.
struct State {
    stored: Arc<Object>,
    uid: Str,
    accepted_names: Option<Value>,
    is_terminating: bool,
}

impl State {
    fn of(stored: &Arc<Object>, outline: &Value) -> Self {
        Self {
            stored: stored.clone(),
            uid: object::uid(outline).into(),
            accepted_names: outline.at(&["status", "acceptedNames"]).cloned(),
            is_terminating: Crd(outline).is_terminating(),
        }
    }

    /// Whether resources made from both differ at most in whether the definition is being deleted.
    fn looks_like(&self, other: &Self) -> bool {
        self.uid == other.uid
            && self.accepted_names == other.accepted_names
            && self.spec() == other.spec()
    }

    fn spec(&self) -> Option<&[u8]> {
        let json = self.stored.abridged();
        json::member(json, "spec").map(|range| &json[range])
    }
}

/// A definition without its schemas.
fn outline(stored: &Object) -> Result<Value, Status> {
    let unreadable = |why| Status::internal(format_args!("{PLURAL}: {why}"));
    stored.check().map_err(unreadable)?; // also checks the parts that are not read below
    json::parse(&json::with_nulls(&stored.json(), "openAPIV3Schema")).map_err(Status::internal)
}

impl Definitions {
    /// Serves the definitions in the store, before the server accepts requests.
    pub fn restore(environment: Environment, built_in: BuiltIn, caller: Arc<dyn Caller>) -> Self {
        let measures = environment.queues.with(["crd_naming_condition_controller"]);
        let queue = Queue::measured(measures, DELAY_MAX);
        let (known, in_progress) = (BTreeMap::new(), JoinSet::new());
        let built_in = Arc::new(built_in);
        let mut definitions = Self { environment, caller, built_in, known, queue, in_progress };
        let Some(crds) = definitions.crds() else { return definitions };
        let now = (definitions.environment.clock)().unix_micros;
        let mut resources = Vec::new();
        for stored in definitions.environment.registry.objects(&crds) {
            let outline = match outline(&stored) {
                Ok(outline) => outline,
                Err(status) => {
                    tracing::error!(name = stored.name(), %status, "cannot read a CustomResourceDefinition; its resources are not served");
                    continue;
                }
            };
            resources.extend(definitions.make(&stored, &outline));
            let no_others = std::iter::empty();
            let schema = |version: &str| stored_schema(stored.abridged(), version);
            let crd = (&outline, &schema as &dyn Fn(&str) -> Option<Value>);
            let status = lifecycle::status(crd, &definitions.built_in, no_others, now);
            let is_current = !object::is_terminating(&outline) && status.is_none();
            if let Some(known) = definitions.known.get_mut(object::name(&outline)) {
                known.is_current = is_current;
            }
        }
        definitions.environment.registry.define(resources);
        definitions
    }

    /// Follows the definitions until shutdown.
    pub async fn run(mut self, shutdown: impl Future<Output = ()>) {
        crate::until(shutdown, self.work()).await;
    }

    fn crds(&self) -> Option<Arc<Resource>> {
        self.environment.resource(GROUP, "v1", PLURAL)
    }

    async fn work(&mut self) {
        let Some(crds) = self.crds() else { return };
        self.enqueue_api_services();
        loop {
            if let Ok((definitions, api_services)) = self.watches(&crds).await {
                self.forget_gone(&crds);
                self.follow(&crds, definitions, api_services).await;
            } else {
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
        }
    }

    async fn watches(&self, crds: &Arc<Resource>) -> Result<(Watch, Watch), Status> {
        let (registry, all) = (&self.environment.registry, ListOptions::default());
        let services = self.api_services().unwrap_or_else(|| crds.clone());
        let definitions = registry.watch(&target(crds, "", "", ""), &all).await?;
        Ok((definitions, registry.watch(&target(&services, "", "", ""), &all).await?))
    }

    /// Evaluates queued names until one of the watches ends.
    async fn follow(&mut self, crds: &Arc<Resource>, mut all: Watch, mut api_services: Watch) {
        loop {
            tokio::select! {
                biased;
                events = all.next() => {
                    let Some(events) = events else { return };
                    if !self.observe(events) {
                        return;
                    }
                }
                events = api_services.next() => {
                    let Some(events) = events else { return };
                    if !self.observe_api_services(events) {
                        return;
                    }
                }
                Some(done) = self.in_progress.join_next() => {
                    if let Ok((due, outcome)) = done {
                        self.handle_result(&due, outcome);
                    }
                }
                due = self.queue.next(), if self.in_progress.len() < IN_PROGRESS_MAX => {
                    self.evaluate(crds, due);
                }
            }
        }
    }

    /// Evaluates one definition or API service. Its write runs concurrently with others.
    fn evaluate(&mut self, crds: &Arc<Resource>, due: Due) {
        self.queue.begin(&due);
        let write = match &due {
            Due::Definition(name) => self.update_resources(crds, name),
            Due::ApiService(name) => self.register(name),
        };
        match write {
            None => self.handle_result(&due, Ok(Progress::Done)),
            Some(write) => {
                self.in_progress.spawn(async move {
                    // A panic must not leave the name begun forever: it is tried again.
                    let panicked = |_| Err(Status::internal("the evaluation panicked"));
                    let outcome = AssertUnwindSafe(write).catch_unwind().await;
                    (due, outcome.unwrap_or_else(panicked))
                });
            }
        }
    }

    fn handle_result(&mut self, due: &Due, outcome: Outcome) {
        match outcome {
            Ok(Progress::Done) => self.queue.done(due),
            Ok(Progress::Waiting) => self.queue.retry(due),
            Err(status) => {
                // Another server on the same database may have written the object.
                let is_race = matches!(
                    status.reason,
                    Some(Reason::Conflict | Reason::AlreadyExists | Reason::NotFound)
                );
                if !is_race {
                    tracing::warn!(object = ?due, %status, "cannot update a CustomResourceDefinition or its APIService; will try again");
                }
                self.queue.retry(due);
            }
        }
    }

    /// Enqueues a name; if it is being evaluated, it is evaluated once more.
    fn enqueue(&mut self, due: &Due) {
        self.queue.enqueue(due, Duration::ZERO);
    }

    /// Handles events of the watch of definitions; `false` if the watch ended.
    fn observe(&mut self, events: Vec<Event>) -> bool {
        for event in events {
            match event {
                Event::Added(crd) | Event::Modified(crd) => {
                    let known = self.known.get(crd.name());
                    let is_old = |known: &Known| known.made_of.stored.number() == crd.number();
                    if !known.is_some_and(|known| known.is_current && is_old(known)) {
                        self.enqueue(&Due::Definition(crd.name().into()));
                    }
                }
                Event::Deleted(crd) => {
                    self.forget(crd.name());
                }
                Event::Bookmark { .. } => {}
                Event::Error(_) => return false,
            }
        }
        true
    }

    /// Forgets definitions that were deleted while there was no watch.
    fn forget_gone(&mut self, crds: &Arc<Resource>) {
        let registry = self.environment.registry.clone();
        let gone = self.known.keys().filter(|name| registry.peek(crds, "", name).is_none());
        for name in gone.cloned().collect::<Vec<_>>() {
            self.forget(&name);
        }
    }

    /// Stops serving a definition, and frees its names.
    fn forget(&mut self, name: &str) {
        let Some(known) = self.known.remove(name) else { return };
        self.environment.registry.redefine(&known.served, Vec::new());
        self.enqueue_api_services_of(&known.group, &known.versions);
        self.enqueue_without_names(name, &known.group);
    }

    /// Enqueues the definitions of a group that lack names, because a name may have become free.
    fn enqueue_without_names(&mut self, name: &str, group: &str) {
        for (other, known) in &self.known {
            if other != name && known.group == group && known.lacks_names {
                self.queue.enqueue(&Due::Definition(other.clone()), Duration::ZERO);
            }
        }
    }

    /// Updates the served resources. Returns the write of the definition's new status, or else the
    /// cleanup of a deleted definition; `None` if neither is due.
    fn update_resources(
        &mut self,
        crds: &Arc<Resource>,
        name: &Str,
    ) -> Option<BoxFuture<'static, Outcome>> {
        let stored = self.environment.registry.peek(crds, "", name)?;
        let mut crd = match outline(&stored) {
            Ok(crd) => crd,
            Err(status) => return Some(Box::pin(ready(Err(status)))),
        };
        let group = Str::from(Crd(&crd).group());
        let others = self.known.iter().filter(|(other, k)| *other != name && k.group == group);
        let now = (self.environment.clock)().unix_micros;
        let schema = |version: &str| stored_schema(stored.abridged(), version);
        let of_others = others.map(|(_, known)| &known.names);
        let status = lifecycle::status((&crd, &schema), &self.built_in, of_others, now);
        if let Some(status) = &status {
            crd.make_object().insert("status", status.clone());
        }
        self.serve(&stored, &crd);
        let writer = self.writer(crds, stored);
        if let Some(status) = status {
            self.enqueue_without_names(name, &group);
            // The watch enqueues the definition again after the write.
            return Some(Box::pin(async move {
                writer.write(|crd| _ = crd.make_object().insert("status", status)).await?;
                Ok(Progress::Done)
            }));
        }
        let cleans_up = object::is_terminating(&crd)
            && object::finalizers(&crd).any(|f| f == lifecycle::CLEANUP_FINALIZER);
        cleans_up.then(|| writer.clean_up(crd))
    }

    fn writer(&self, crds: &Arc<Resource>, stored: Arc<Object>) -> Writer {
        Writer {
            environment: self.environment.clone(),
            caller: self.caller.clone(),
            built_in: self.built_in.clone(),
            crds: crds.clone(),
            stored,
        }
    }

    /// Serves the resources of a definition's present state, unless they are served already.
    fn serve(&mut self, stored: &Arc<Object>, crd: &Value) {
        let now = State::of(stored, crd);
        let before = self.known.get_mut(object::name(crd));
        let looks_the_same = before.as_ref().is_some_and(|known| known.made_of.looks_like(&now));
        if let Some(known) = before.filter(|_| looks_the_same) {
            let goes_on = known.made_of.is_terminating == now.is_terminating;
            known.made_of.stored = now.stored; // frees the older object
            if goes_on {
                return;
            }
        }
        let before = self.known.remove(object::name(crd));
        let resources = self.make(stored, crd);
        let old = before.map_or(Vec::new(), |known| {
            self.enqueue_api_services_of(&known.group, &known.versions);
            known.served
        });
        let still = |gvr: &GroupVersionResource| resources.iter().any(|r| r.resource == *gvr);
        let removed: Vec<_> = old.into_iter().filter(|gvr| !still(gvr)).collect();
        if looks_the_same && removed.is_empty() {
            self.environment.registry.revise(resources);
        } else {
            self.environment.registry.redefine(&removed, resources);
        }
        if let Some(known) = self.known.get(object::name(crd)) {
            let (group, versions) = (known.group.clone(), known.versions.clone());
            self.enqueue_api_services_of(&group, &versions);
        }
    }

    /// Makes the resources of a definition, if it is established, and adds it to the known
    /// definitions.
    fn make(
        &mut self,
        stored: &Arc<Object>,
        crd: &Value,
    ) -> Vec<pintle_registry::ResourceDefinition> {
        let name = Str::from(object::name(crd));
        let read = Crd(crd);
        let resources = if read.has("Established") {
            let source = source(&self.environment.registry, self.crds(), name.clone());
            pintle_crd::resources(crd, &self.built_in, source, self.caller.clone())
        } else {
            Vec::new()
        };
        let made_of = State::of(stored, crd);
        let accepted = made_of.accepted_names.clone().unwrap_or_default();
        let served = read.versions().filter(|version| version.is_served());
        let known = Known {
            group: read.group().into(),
            names: Value::from([("status", Value::from([("acceptedNames", accepted)]))]),
            lacks_names: !read.has("NamesAccepted"),
            is_current: false,
            versions: served.map(|version| version.name().into()).collect(),
            served: resources.iter().map(|r| r.resource.clone()).collect(),
            made_of,
        };
        self.known.insert(name, known);
        resources
    }
}

/// Writes one definition in the state that was evaluated.
struct Writer {
    environment: Environment,
    caller: Arc<dyn Caller>,
    built_in: Arc<BuiltIn>,
    crds: Arc<Resource>,
    stored: Arc<Object>,
}

impl Writer {
    /// Writes the status and the finalizers.
    async fn write(&self, change: impl FnOnce(&mut Value)) -> Result<(), Status> {
        let mut crd = self.stored.tree()?;
        change(&mut crd);
        let part = target(&self.crds, "", object::name(&crd), "status");
        let (body, options) = (body(&crd), WriteOptions::default());
        let context = self.environment.context(SERVER);
        self.environment.registry.update(&part, &body, &options, &context, &granted).await?;
        Ok(())
    }
}

/// The progress of an evaluation.
enum Progress {
    Done,
    /// The evaluation is incomplete and is repeated later.
    Waiting,
}

/// Reads the stored schemas of a definition on demand.
fn source(registry: &Arc<Registry>, crds: Option<Arc<Resource>>, name: Str) -> pintle_crd::Source {
    let registry = Arc::downgrade(registry);
    Arc::new(move |version| {
        let stored = registry.upgrade()?.peek(crds.as_ref()?, "", &name)?;
        pintle_crd::stored_schema(stored.abridged(), version)
    })
}
