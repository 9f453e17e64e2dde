//! The life of CustomResourceDefinitions: names are given, resources are served, and with the
//! definition go its objects.
//!
//! A definition is served before its status says so: a client that sees `Established` can use it.
//!
//! What is kept here could be found out again from the definitions themselves.

use std::collections::BTreeMap;
use std::sync::Arc;

use pintle_crd::{Crd, life};
use pintle_meta::{GroupVersionResource, Reason, Status, object};
use pintle_registry::answer::Event;
use pintle_registry::request::{DeleteOptions, ListOptions, WriteOptions, granted};
use pintle_registry::webhook::Caller;
use pintle_registry::{Registry, Resource};
use pintle_value::{Str, Value};

use crate::retry::Queue;
use crate::{Environment, SERVER, body, target};

const GROUP: &str = "apiextensions.k8s.io";
const PLURAL: &str = "customresourcedefinitions";

/// The definitions, and what was made of them.
pub struct Definitions {
    environment: Environment,
    caller: Arc<dyn Caller>,
    known: BTreeMap<Str, Known>,
}

/// A definition, as far as it matters to others and to what is served of it.
struct Known {
    group: Str,
    /// A definition with nothing but its accepted names.
    names: Value,
    /// What is served, and of which state of the definition that was made.
    served: Vec<GroupVersionResource>,
    made_of: Option<State>,
}

/// What the resources of a definition depend on.
#[derive(PartialEq)]
struct State {
    uid: Str,
    spec: Value,
    accepted_names: Option<Value>,
    is_terminating: bool,
}

impl State {
    fn of(crd: &Value) -> Self {
        Self {
            uid: object::uid(crd).into(),
            // The schemas are looked at later, and by their text: a hash of them is enough here.
            spec: without_schemas(crd),
            accepted_names: crd.at(&["status", "acceptedNames"]).cloned(),
            is_terminating: Crd(crd).is_terminating(),
        }
    }
}

/// The spec with hashes in the place of schemas, which may be long.
fn without_schemas(crd: &Value) -> Value {
    use std::hash::{DefaultHasher, Hash, Hasher};
    let mut spec = crd.get("spec").cloned().unwrap_or_default();
    let versions = spec.get_mut("versions").and_then(Value::as_array_mut);
    for version in versions.into_iter().flatten() {
        let Some(schema) = version.get("schema") else { continue };
        let mut hasher = DefaultHasher::new();
        pintle_value::json::to_string(schema).hash(&mut hasher);
        version.make_object().insert("schema", format!("{:016x}", hasher.finish()));
    }
    spec
}

impl Definitions {
    /// Serves what the definitions in the store say; before the server takes requests.
    pub fn restore(environment: Environment, caller: Arc<dyn Caller>) -> Self {
        let mut definitions = Self { environment, caller, known: BTreeMap::new() };
        let Some(crds) = definitions.crds() else { return definitions };
        let mut resources = Vec::new();
        for stored in definitions.environment.registry.objects(&crds) {
            let crd = stored.tree();
            resources.extend(definitions.make(&crd));
        }
        definitions.environment.registry.define(resources);
        definitions
    }

    /// Follows the definitions until told to stop.
    pub async fn run(mut self, shutdown: impl Future<Output = ()>) {
        crate::until(shutdown, self.work()).await;
    }

    fn crds(&self) -> Option<Arc<Resource>> {
        self.environment.resource(GROUP, "v1", PLURAL)
    }

    async fn work(&mut self) {
        let Some(crds) = self.crds() else { return };
        let mut queue = Queue::default();
        loop {
            let all = target(&crds, "", "", "");
            let watch = self.environment.registry.watch(&all, &ListOptions::default()).await;
            let Ok(mut watch) = watch else {
                tokio::time::sleep(std::time::Duration::from_secs(1)).await;
                continue;
            };
            self.forget_gone(&crds, &mut queue);
            loop {
                tokio::select! {
                    biased;
                    events = watch.next() => {
                        let Some(events) = events else { break };
                        if !self.note(events, &mut queue) {
                            break;
                        }
                    }
                    name = queue.next() => match self.settle(&crds, &name, &mut queue).await {
                        Ok(Progress::Done) => queue.forget(&name),
                        Ok(Progress::Waiting) => queue.retry(&name),
                        Err(status) => {
                            if status.reason != Some(Reason::Conflict) {
                                tracing::warn!(definition = %name, %status, "cannot settle it");
                            }
                            queue.retry(&name);
                        }
                    },
                }
            }
        }
    }

    /// Takes in what the watch tells; `false` where it is over.
    fn note(&mut self, events: Vec<Event>, queue: &mut Queue<Str>) -> bool {
        for event in events {
            match event {
                Event::Added(crd) | Event::Modified(crd) => {
                    queue.forget(&crd.name().into());
                    queue.add(&crd.name().into());
                }
                Event::Deleted(crd) => {
                    queue.forget(&crd.name().into());
                    self.forget(crd.name(), queue);
                }
                Event::Bookmark { .. } => {}
                Event::Error(_) => return false,
            }
        }
        true
    }

    /// Definitions that went while nobody looked.
    fn forget_gone(&mut self, crds: &Arc<Resource>, queue: &mut Queue<Str>) {
        let registry = self.environment.registry.clone();
        let gone = self.known.keys().filter(|name| registry.peek(crds, "", name).is_none());
        for name in gone.cloned().collect::<Vec<_>>() {
            self.forget(&name, queue);
        }
    }

    /// Serves a definition no longer; its names are free.
    fn forget(&mut self, name: &str, queue: &mut Queue<Str>) {
        let Some(known) = self.known.remove(name) else { return };
        self.environment.registry.redefine(&known.served, Vec::new());
        self.look_again(name, &known.group, queue);
    }

    /// Has the other definitions of a group looked at: a name may have become free.
    fn look_again(&self, name: &str, group: &str, queue: &mut Queue<Str>) {
        let others =
            self.known.iter().filter(|(other, known)| *other != name && known.group == group);
        others.for_each(|(other, _)| queue.add(other));
    }

    /// Brings what is served, and what the definition says of itself, up to date.
    async fn settle(
        &mut self,
        crds: &Arc<Resource>,
        name: &str,
        queue: &mut Queue<Str>,
    ) -> Result<Progress, Status> {
        let registry = self.environment.registry.clone();
        let Some(stored) = registry.peek(crds, "", name) else { return Ok(Progress::Done) };
        let mut crd = stored.tree();
        let group = Str::from(Crd(&crd).group());
        let others: Vec<Value> = self
            .known
            .iter()
            .filter(|(other, known)| *other != name && known.group == group)
            .map(|(_, known)| known.names.clone())
            .collect();
        let now = (self.environment.clock)().unix_micros;
        let status = life::status(&crd, &others, now);
        let changed = status.is_some();
        if let Some(status) = status {
            crd.make_object().insert("status", status);
        }
        self.serve(&crd);
        if changed {
            self.write_status(crds, &crd).await?;
            self.look_again(name, &group, queue);
            return Ok(Progress::Done); // the watch brings it back
        }
        if object::is_terminating(&crd)
            && object::finalizers(&crd).any(|f| f == life::CLEANUP_FINALIZER)
        {
            return self.clean_up(crds, crd).await;
        }
        Ok(Progress::Done)
    }

    /// Serves a definition as it is, unless that is so already.
    fn serve(&mut self, crd: &Value) {
        let name = Str::from(object::name(crd));
        let before = self.known.remove(&name);
        let mut now = State::of(crd);
        let made_of = before.as_ref().and_then(|known| known.made_of.as_ref());
        if made_of == Some(&now) {
            self.known.extend(before.map(|known| (name, known)));
            return;
        }
        now.is_terminating = !now.is_terminating;
        let only_terminates = made_of == Some(&now);
        let resources = self.make(crd);
        let old = before.map_or(Vec::new(), |known| known.served);
        let still = |gvr: &GroupVersionResource| resources.iter().any(|r| r.resource == *gvr);
        let removed: Vec<_> = old.into_iter().filter(|gvr| !still(gvr)).collect();
        if only_terminates && removed.is_empty() {
            self.environment.registry.revise(resources);
        } else {
            self.environment.registry.redefine(&removed, resources);
        }
    }

    /// The resources of a definition that is established, noted as known.
    fn make(&mut self, crd: &Value) -> Vec<pintle_registry::ResourceDefinition> {
        let name = Str::from(object::name(crd));
        let read = Crd(crd);
        let resources = if read.has("Established") {
            let source = source(&self.environment.registry, self.crds(), name.clone());
            pintle_crd::resources(crd, source, self.caller.clone())
        } else {
            Vec::new()
        };
        let accepted = crd.at(&["status", "acceptedNames"]).cloned().unwrap_or_default();
        let names = Value::from([("status", Value::from([("acceptedNames", accepted)]))]);
        let known = Known {
            group: read.group().into(),
            names,
            served: resources.iter().map(|r| r.resource.clone()).collect(),
            made_of: Some(State::of(crd)),
        };
        self.known.insert(name, known);
        resources
    }

    async fn write_status(&self, crds: &Arc<Resource>, crd: &Value) -> Result<(), Status> {
        let part = target(crds, "", object::name(crd), "status");
        let (body, options) = (body(crd), WriteOptions::default());
        let context = self.environment.context(SERVER);
        self.environment.registry.update(&part, &body, &options, &context, &granted).await?;
        Ok(())
    }

    /// Deletes the objects of a definition that goes, and lets it go when there are none.
    async fn clean_up(&self, crds: &Arc<Resource>, mut crd: Value) -> Result<Progress, Status> {
        let registry = &self.environment.registry;
        let name = object::name(&crd).to_owned();
        let served = self.known.get(name.as_str()).and_then(|known| known.served.first());
        let resource = served.and_then(|gvr| registry.resource(gvr));
        let (reason, words) = match resource {
            None => ("NeverEstablished", "resource was never established"),
            Some(resource) => {
                if registry.objects(&resource).next().is_some() {
                    return self.delete_objects(crds, crd, &resource).await;
                }
                ("InstanceDeletionCompleted", "removed all instances")
            }
        };
        let mut status = crd.get("status").cloned().unwrap_or_else(Value::object);
        let now = (self.environment.clock)().unix_micros;
        life::set_condition(&mut status, ("Terminating", false, reason, words), now);
        let others: Vec<Value> = object::finalizers(&crd)
            .filter(|finalizer| *finalizer != life::CLEANUP_FINALIZER)
            .map(Value::from)
            .collect();
        object::metadata_mut(&mut crd).insert("finalizers", others);
        crd.make_object().insert("status", status);
        self.write_status(crds, &crd).await?;
        Ok(Progress::Done)
    }

    async fn delete_objects(
        &self,
        crds: &Arc<Resource>,
        mut crd: Value,
        resource: &Arc<Resource>,
    ) -> Result<Progress, Status> {
        let registry = &self.environment.registry;
        let context = self.environment.context(SERVER);
        let everything = target(resource, "", "", "");
        let (selection, options) = (ListOptions::default(), DeleteOptions::default());
        let deleted = registry.delete_collection(&everything, &selection, &options, &context).await;
        let (reason, words) = match deleted {
            Ok(_) => {
                ("InstanceDeletionInProgress", "CustomResource deletion is in progress".into())
            }
            Err(status) => {
                ("InstanceDeletionFailed", format!("could not issue all deletes: {status}"))
            }
        };
        let mut status = crd.get("status").cloned().unwrap_or_else(Value::object);
        life::set_condition(
            &mut status,
            ("Terminating", true, reason, &words),
            context.now.unix_micros,
        );
        if crd.get("status") != Some(&status) {
            crd.make_object().insert("status", status);
            self.write_status(crds, &crd).await?;
        }
        Ok(Progress::Waiting)
    }
}

/// What became of a look at a definition.
enum Progress {
    Done,
    /// Something remains; look again later.
    Waiting,
}

/// Gives a definition as it is stored when it is asked.
fn source(registry: &Arc<Registry>, crds: Option<Arc<Resource>>, name: Str) -> pintle_crd::Source {
    let registry = Arc::downgrade(registry);
    Arc::new(move || {
        let stored = registry.upgrade().zip(crds.as_ref());
        let stored = stored.and_then(|(registry, crds)| registry.peek(crds, "", &name));
        stored.map_or(Value::Null, |stored| stored.tree())
    })
}
