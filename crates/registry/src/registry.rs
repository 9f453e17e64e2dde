//! The registry: the served resources by name, and one method for each verb.

use std::future::ready;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arc_swap::ArcSwap;
use futures_util::stream::{self, StreamExt, TryStreamExt};
use imbl::HashMap;
use pintle_meta::{GroupVersionResource, Status};
use pintle_store::{Opening, Revision, Store, StoredState};
use pintle_value::Value;
use tokio::runtime::Handle;

use crate::admission::Admission;
use crate::cache::{Cache, Head};
use crate::encodings::EncodingCache;
use crate::list;
use crate::measures::{PhaseDurations, Stored};
use crate::request::{
    Body, Context, DeleteOptions, ListOptions, MayCreate, PatchType, Target, WriteOptions, granted,
};
use crate::results::{List, Outcome, ResponseBody, Waited};
use crate::revision;
use crate::select::Selection;
use crate::watch::Watch;
use crate::write::{PostingQueues, RetryQueues, Review, Write};
use crate::{Object, Resource, ResourceDefinition};

/// How many objects of a collection are deleted concurrently. Concurrent deletions share the
/// store's batches.
const DELETIONS_MAX: usize = 64;

/// The options of a registry.
pub struct Options {
    /// The store, whose log the registry reads.
    pub store: Box<dyn Opening>,
    /// The admission chain.
    pub admission: Arc<dyn Admission>,
    /// Fills a buffer with random bytes, for UIDs and generated names.
    pub entropy: fn(&mut [u8]),
    /// Whether a garbage collector runs. Without one, deletions add no finalizers that only a
    /// garbage collector removes.
    pub garbage_collection: bool,
    /// The bound on each collection's log of changes, in bytes of memory. Watches and lists at an
    /// exact resource version read the log.
    pub history_bytes_max: usize,
    /// The bound on the encoding cache, in bytes.
    pub encodings_bytes_max: usize,
}

/// All served resources and the verbs on them.
pub struct Registry {
    pub(crate) cache: Arc<Cache>,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) admission: Arc<dyn Admission>,
    pub(crate) entropy: fn(&mut [u8]),
    pub(crate) garbage_collection: bool,
    pub(crate) retry_queues: RetryQueues,
    pub(crate) posting_queues: PostingQueues,
    /// The runtime of the workers of these queues. Callers may have others, which are slower to
    /// poll.
    pub(crate) runtime: Handle,
    /// The permit to read an old state of a collection from the store.
    pub(crate) recalls: tokio::sync::Mutex<()>,
    /// The durations of the admission phases.
    pub admission_phases: PhaseDurations,
    encoding_cache: Arc<EncodingCache>,
    served: ArcSwap<Served>,
    /// The number of the next resource definition.
    next_number: AtomicU64,
}

/// The served resources: a snapshot that is replaced as a whole.
struct Served {
    number: u64,
    /// A persistent map, because one definition of thousands changes at a time.
    by_name: HashMap<GroupVersionResource, Arc<Resource>>,
    all: Arc<[Arc<Resource>]>,
}

impl Registry {
    /// Opens the store, which fills the watch cache, and serves `definitions`. The registry's tasks
    /// run on the current runtime.
    pub async fn open(
        options: Options,
        definitions: Vec<ResourceDefinition>,
    ) -> Result<Self, pintle_store::Error> {
        let cache = Arc::new(Cache::new(options.store.floor(), options.history_bytes_max));
        let store = options.store.read_to(cache.clone()).await?;
        cache.start_dispatcher();
        let empty = Served { number: 0, by_name: HashMap::new(), all: Arc::from([]) };
        let registry = Self {
            cache,
            store,
            admission: options.admission,
            entropy: options.entropy,
            garbage_collection: options.garbage_collection,
            retry_queues: RetryQueues::new(),
            posting_queues: PostingQueues::new(),
            runtime: Handle::current(),
            recalls: tokio::sync::Mutex::new(()),
            admission_phases: PhaseDurations::default(),
            encoding_cache: Arc::new(EncodingCache::new(options.encodings_bytes_max)),
            served: ArcSwap::from_pointee(empty),
            next_number: AtomicU64::new(1),
        };
        registry.define(definitions);
        Ok(registry)
    }

    /// Returns the served resource of that name.
    pub fn resource(&self, name: &GroupVersionResource) -> Option<Arc<Resource>> {
        self.served.load().by_name.get(name).cloned()
    }

    /// Returns a snapshot of all served resources, and a number that changes with it.
    pub fn resources(&self) -> (u64, Arc<[Arc<Resource>]>) {
        let served = self.served.load();
        (served.number, served.all.clone())
    }

    /// Returns all served versions of a resource, itself included.
    pub fn versions_of(&self, resource: &Resource) -> Vec<Arc<Resource>> {
        let served = self.served.load();
        let Some(storage) = &resource.storage else {
            return served.by_name.get(&resource.resource).cloned().into_iter().collect();
        };
        let is_one = |one: &&Arc<Resource>| {
            one.storage.as_ref().is_some_and(|s| s.collection == storage.collection)
        };
        served.all.iter().filter(is_one).cloned().collect()
    }

    /// Serves more resources, or new definitions of served ones.
    pub fn define(&self, definitions: Vec<ResourceDefinition>) {
        self.redefine(&[], definitions);
    }

    /// Removes resources and serves new definitions in one step. Watches of removed and replaced
    /// definitions end.
    pub fn redefine(&self, removed: &[GroupVersionResource], definitions: Vec<ResourceDefinition>) {
        let new = definitions.into_iter().map(|definition| self.new_resource(definition)).collect();
        let before = self.replace(removed, new);
        before.iter().for_each(|resource| resource.retire());
    }

    /// Replaces definitions without ending watches: the objects look as before.
    pub fn revise(&self, definitions: Vec<ResourceDefinition>) {
        let served = self.served.load();
        let new = definitions.into_iter().map(|definition| {
            let resource = self.new_resource(definition);
            match served.by_name.get(&resource.resource) {
                Some(old) => resource.taking_over_watches_of(old),
                None => resource,
            }
        });
        self.replace(&[], new.collect());
    }

    /// Makes a resource that no URL names. The server uses it for objects of a version that is not
    /// served.
    pub fn unserved(&self, definition: ResourceDefinition) -> Arc<Resource> {
        Arc::new(self.new_resource(definition))
    }

    fn new_resource(&self, definition: ResourceDefinition) -> Resource {
        let storage = definition.storage.as_ref();
        let collection = storage.map(|storage| self.cache.collection(&storage.collection));
        let number = self.next_number.fetch_add(1, Ordering::Relaxed);
        Resource::new(definition, collection, self.encoding_cache.clone(), number)
    }

    /// Replaces the snapshot of served resources; returns the removed and the replaced ones.
    fn replace(&self, removed: &[GroupVersionResource], new: Vec<Resource>) -> Vec<Arc<Resource>> {
        let new: Vec<_> = new.into_iter().map(Arc::new).collect();
        let named = |one: &Resource| new.iter().find(|r| r.resource == one.resource);
        let gone = |served: &Served| -> Vec<Arc<Resource>> {
            let names = removed.iter().chain(new.iter().map(|r| &r.resource));
            names.filter_map(|name| served.by_name.get(name).cloned()).collect()
        };
        let before = self.served.rcu(|served| {
            let gone = gone(served);
            let mut by_name = served.by_name.clone();
            removed.iter().for_each(|name| _ = by_name.remove(name));
            let added = new.iter().filter(|r| !gone.iter().any(|old| old.resource == r.resource));
            let is_gone = |one: &Arc<Resource>| gone.iter().any(|old| Arc::ptr_eq(old, one));
            let all = served.all.iter();
            let remaining = all.filter_map(|one| if is_gone(one) { named(one) } else { Some(one) });
            let all: Vec<_> = remaining.chain(added).cloned().collect();
            by_name.extend(new.iter().map(|r| (r.resource.clone(), r.clone())));
            Served { number: served.number + 1, by_name, all: all.into() }
        });
        gone(&before)
    }

    /// Converts an outcome's object to the target's version.
    async fn in_own_version(target: &Target, mut outcome: Outcome) -> Result<Outcome, Status> {
        if let ResponseBody::Object(object) = &mut outcome.body {
            let viewed = target.resource.in_own_version(vec![object.clone()]).await?;
            *object = viewed.into_iter().next().unwrap_or_else(|| object.clone());
        }
        Ok(outcome)
    }

    /// Returns the newest state that readers can see.
    pub fn head(&self) -> Head {
        self.cache.head()
    }

    /// Returns the size of each collection and counters of its reads, for metrics.
    pub fn stored(&self) -> Vec<Stored> {
        self.cache.stored()
    }

    /// Returns the newest stored state, for a backup.
    pub async fn stored_state(&self) -> Result<Box<dyn StoredState>, pintle_store::Error> {
        self.store.stored_state().await
    }

    /// Returns the store's size on disk, if it is on disk.
    pub fn disk_bytes(&self) -> Option<u64> {
        self.store.disk_bytes()
    }

    /// Returns the measures of commits, if the store itself commits.
    pub fn commits(&self) -> Option<&pintle_store::Measures> {
        self.store.measures()
    }

    /// Returns the memory of the encodings that are kept besides the stored JSON, in bytes.
    pub fn encoding_bytes(&self) -> usize {
        self.encoding_cache.bytes()
    }

    /// Returns an error with the reason if the store takes no writes, or if watches get no events.
    pub fn check(&self) -> Result<(), pintle_store::Error> {
        self.cache.check()?;
        self.store.check()
    }

    /// Returns an error with the reason if only another start of the server can help.
    pub fn check_life(&self) -> Result<(), pintle_store::Error> {
        self.cache.check()?;
        self.store.check_life()
    }

    /// Returns an error with the reason if the store is too slow or unable to take writes, so that
    /// the server is not ready.
    pub fn ready(&self) -> Result<(), pintle_store::Error> {
        self.store.ready()
    }

    /// Closes the store. The caller makes sure that no write is in progress.
    pub async fn close(&self) {
        self.store.close().await;
    }

    /// Drops states before `floor` from the store. Waits for readers of such states.
    pub async fn compact(&self, floor: Revision) -> Result<(), pintle_store::Error> {
        self.store.compact(floor).await
    }

    /// Drops states before an earlier head from memory.
    pub fn trim(&self, floor: Head) {
        self.cache.trim(floor);
    }

    /// Reduces the memory of objects that have not changed for some time: equal field sets of
    /// managers are in memory once, and a small object lies in one allocation with its JSON. Call
    /// it every second: the keys of such objects are collected meanwhile.
    pub async fn settle_objects(&self) {
        self.cache.settle().await;
    }

    /// Returns the newest cached state of an object.
    pub fn peek(&self, resource: &Resource, namespace: &str, name: &str) -> Option<Arc<Object>> {
        resource.collection().ok()?.get(&crate::resource::item(namespace, name))
    }

    /// Returns all objects of a resource, in the stored form.
    pub fn objects(&self, resource: &Resource) -> impl Iterator<Item = Arc<Object>> + use<> {
        let collection = resource.collection().ok();
        let objects = collection.map(|c| c.snapshot(self.cache.visible()).objects);
        objects.unwrap_or_default().into_iter()
    }

    /// Returns the cached objects of a resource in a namespace.
    pub fn objects_in(&self, resource: &Resource, namespace: &str) -> Vec<Arc<Object>> {
        let Ok(collection) = resource.collection() else { return Vec::new() };
        let snapshot = collection.snapshot(self.cache.visible());
        snapshot.objects.within(namespace, "").cloned().collect()
    }

    /// Reads one object. `resource_version` is the client's; `""` asks for the newest (RV-G1 …
    /// RV-G3).
    pub async fn get(&self, target: &Target, resource_version: &str) -> Result<Outcome, Status> {
        match revision::parse(resource_version)? {
            None => self.catch_up().await?,
            Some(revision) => {
                list::reach(self, target.resource.collection()?, revision).await?;
            }
        }
        let object = self.peek(&target.resource, &target.namespace, &target.name);
        let object = object
            .ok_or_else(|| Status::not_found(&target.resource.group_resource(), &target.name))?;
        target.resource.check([&object])?;
        match crate::write::scale_paths(target) {
            None => Self::in_own_version(target, Outcome::ok(ResponseBody::Object(object))).await,
            Some(paths) => {
                let tree = target.resource.current(&object).await?;
                if target.resource.is_custom() {
                    paths.check_count(&tree)?;
                }
                Ok(Outcome::ok(paths.response_body(&tree)))
            }
        }
    }

    /// Lists a collection, in one namespace or in all.
    pub async fn list(&self, target: &Target, options: &ListOptions) -> Result<List, Status> {
        let mut list = list::list(self, target, options).await?;
        list.objects = target.resource.in_own_version(list.objects).await?;
        Ok(list)
    }

    /// Watches a collection from now on, or from a resource version on.
    pub async fn watch(&self, target: &Target, options: &ListOptions) -> Result<Watch, Status> {
        Watch::start(self, target, options).await
    }

    // The write path is long. Its entry points return boxed futures, so that it is compiled once
    // here and not again in each calling crate.

    /// Handles POST to a collection or to a subresource.
    pub fn create<'a>(
        &'a self,
        target: &'a Target,
        body: &'a Body,
        options: &'a WriteOptions,
        context: &'a Context,
    ) -> Waited<'a, Outcome> {
        Box::pin(async move {
            let write = self.write(target, options, context, &granted);
            if let Some(action) = crate::write::action(target) {
                self.catch_up().await?;
                return write.act(body, action).await;
            }
            let outcome = self.decide(options.dry_run, context, || write.create(body));
            Self::in_own_version(target, outcome.await?).await
        })
    }

    /// Decodes a body that is posted to a virtual resource or to a subresource with its own kind,
    /// sets its defaults, and runs admission on it. Nothing is stored: the caller responds (PATH-13).
    pub fn receive<'a>(
        &'a self,
        target: &'a Target,
        body: &'a Body,
        options: &'a WriteOptions,
        context: &'a Context,
        default: fn(&mut Value),
    ) -> Waited<'a, Value> {
        Box::pin(async move {
            let resource = &target.resource;
            let (kind, ty) = match resource.subresource(&target.subresource) {
                Some(part) => {
                    let version = part.kind.group_version().to_string();
                    let ty = pintle_schema::builtin_kind(&version, &part.kind.kind);
                    let unknown =
                        || Status::internal(format_args!("no type {version}.{}", part.kind.kind));
                    (part.kind.clone(), ty.ok_or_else(unknown)?)
                }
                None => (resource.gvk(), resource.ty),
            };
            self.write(target, options, context, &granted).receive(body, ty, &kind, default).await
        })
    }

    /// Runs admission for a connection through an object (`connect`); `connection` holds its
    /// options.
    pub fn admit_connection<'a>(
        &'a self,
        target: &'a Target,
        connection: Value,
        context: &'a Context,
    ) -> Waited<'a, ()> {
        Box::pin(async move {
            let options = WriteOptions::default();
            self.write(target, &options, context, &granted).connect(connection).await
        })
    }

    /// Handles PUT.
    pub fn update<'a>(
        &'a self,
        target: &'a Target,
        body: &'a Body,
        options: &'a WriteOptions,
        context: &'a Context,
        may_create: &'a dyn MayCreate,
    ) -> Waited<'a, Outcome> {
        Box::pin(async move {
            let write = self.write(target, options, context, may_create);
            let outcome = self.decide(options.dry_run, context, || write.update(body));
            Self::in_own_version(target, outcome.await?).await
        })
    }

    /// Handles PATCH.
    pub fn patch<'a>(
        &'a self,
        target: &'a Target,
        patch: &'a [u8],
        patch_type: PatchType,
        options: &'a WriteOptions,
        context: &'a Context,
        may_create: &'a dyn MayCreate,
    ) -> Waited<'a, Outcome> {
        Box::pin(async move {
            let is_apply = matches!(patch_type, PatchType::Apply(_));
            let write = Write { is_apply, ..self.write(target, options, context, may_create) };
            let attempt = || write.patch(patch, patch_type);
            let outcome = self.decide(options.dry_run, context, attempt);
            Self::in_own_version(target, outcome.await?).await
        })
    }

    const fn write<'a>(
        &'a self,
        target: &'a Target,
        options: &'a WriteOptions,
        context: &'a Context,
        may_create: &'a dyn MayCreate,
    ) -> Write<'a> {
        Write { registry: self, target, options, context, is_apply: false, scale: None, may_create }
    }

    /// Handles DELETE of one object.
    pub fn delete<'a>(
        &'a self,
        target: &'a Target,
        options: &'a DeleteOptions,
        context: &'a Context,
    ) -> Waited<'a, Outcome> {
        Box::pin(async move {
            if let Some(why) = target.resource.strategy.refuse_delete(&target.name) {
                let resource = target.resource.group_resource();
                return Err(Status::forbidden(&resource, &target.name, why));
            }
            crate::write::warn_of_dependents(target, options, context);
            let attempt = || self.delete_object(target, options, context, Review::Needed);
            let outcome = self.decide(options.dry_run, context, attempt);
            Self::in_own_version(target, outcome.await?).await
        })
    }

    /// Handles DELETE of a collection; returns the selected objects as they were before their
    /// deletion (STRAT-06).
    pub fn delete_collection<'a>(
        &'a self,
        target: &'a Target,
        selection: &'a ListOptions,
        options: &'a DeleteOptions,
        context: &'a Context,
    ) -> Waited<'a, List> {
        Box::pin(async move {
            // Options are checked first, so that an invalid request gets no warning about
            // dependents.
            revision::check_list(selection)?;
            Selection::of(target, selection)?;
            crate::write::warn_of_dependents(target, options, context);
            // Upstream reads the collection in pages, all of exactly the requested version.
            let mut selection = selection.clone();
            if selection.version_match.is_empty() && !selection.resource_version.is_empty() {
                selection.version_match = match &*selection.resource_version {
                    "0" => "".into(),
                    _ => "Exact".into(),
                };
            }
            let list = self.list(target, &selection).await?;
            let deletions = stream::iter(list.objects.clone()).map(|object| async move {
                let one = Target {
                    resource: target.resource.clone(),
                    namespace: object.namespace().into(),
                    name: object.name().into(),
                    subresource: "".into(),
                };
                match self.delete_object(&one, options, context, Review::Needed).await {
                    Err(status) if status.code != 404 => Err(status),
                    Ok(_) | Err(_) => Ok(()), // another client deleted it
                }
            });
            deletions.buffer_unordered(DELETIONS_MAX).try_for_each(|()| ready(Ok(()))).await?;
            Ok(list)
        })
    }
}
