//! The registry: resources by name, and one call for each verb.

use std::collections::HashMap;
use std::sync::Arc;

use arc_swap::ArcSwap;
use pintle_meta::{GroupVersionResource, Status};
use pintle_store::{Revision, Store};
use pintle_value::Value;

use crate::admission::Admission;
use crate::answer::{Answer, List, Outcome};
use crate::cache::Cache;
use crate::list;
use crate::request::{Body, Context, DeleteOptions, ListOptions, PatchType, Target, WriteOptions};
use crate::revision;
use crate::watch::Watch;
use crate::write::Write;
use crate::{Object, Resource, ResourceDefinition};

/// How a registry is set up.
pub struct Options {
    /// Where everything is kept.
    pub store: Arc<dyn Store>,
    /// Who may still refuse a write.
    pub admission: Arc<dyn Admission>,
    /// Fills a buffer with random bytes, for uids and generated names.
    pub entropy: fn(&mut [u8]),
    /// Whether a garbage collector runs: only then do deletions leave finalizers for it.
    pub garbage_collection: bool,
    /// How much of each resource's recent changes is kept for watches and exact lists, in bytes.
    pub history_bytes_max: usize,
}

/// All resources and what can be done with them.
pub struct Registry {
    pub(crate) cache: Arc<Cache>,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) admission: Arc<dyn Admission>,
    pub(crate) entropy: fn(&mut [u8]),
    pub(crate) garbage_collection: bool,
    served: ArcSwap<Served>,
}

/// The served resources: a snapshot that is replaced as a whole.
struct Served {
    number: u64,
    by_name: HashMap<GroupVersionResource, Arc<Resource>>,
    all: Arc<[Arc<Resource>]>,
}

impl Registry {
    /// Fills the cache from the store and serves `definitions`.
    pub async fn open(
        options: Options,
        definitions: Vec<ResourceDefinition>,
    ) -> Result<Self, pintle_store::Error> {
        let cache = Arc::new(Cache::new(options.store.floor(), options.history_bytes_max));
        options.store.follow(cache.clone()).await?;
        let empty = Served { number: 0, by_name: HashMap::new(), all: Arc::from([]) };
        let registry = Self {
            cache,
            store: options.store,
            admission: options.admission,
            entropy: options.entropy,
            garbage_collection: options.garbage_collection,
            served: ArcSwap::from_pointee(empty),
        };
        registry.define(definitions);
        Ok(registry)
    }

    /// The resource that a URL names, if it is served.
    pub fn resource(&self, name: &GroupVersionResource) -> Option<Arc<Resource>> {
        self.served.load().by_name.get(name).cloned()
    }

    /// Every served resource, for discovery; a snapshot, with a number that changes with the set.
    pub fn resources(&self) -> (u64, Arc<[Arc<Resource>]>) {
        let served = self.served.load();
        (served.number, served.all.clone())
    }

    /// Serves further resources, or other definitions of served ones.
    pub fn define(&self, definitions: Vec<ResourceDefinition>) {
        let mut new = Vec::with_capacity(definitions.len());
        for definition in definitions {
            let collection =
                definition.storage.as_ref().map(|s| self.cache.collection(&s.collection));
            new.push(Arc::new(Resource::new(definition, collection)));
        }
        self.served.rcu(|served| {
            let mut all: Vec<Arc<Resource>> = served.all.to_vec();
            for resource in &new {
                match all.iter_mut().find(|r| r.resource == resource.resource) {
                    Some(old) => *old = resource.clone(),
                    None => all.push(resource.clone()),
                }
            }
            let by_name = all.iter().map(|r| (r.resource.clone(), r.clone())).collect();
            Served { number: served.number + 1, by_name, all: all.into() }
        });
    }

    /// The newest revision that readers see.
    pub fn head(&self) -> Revision {
        self.cache.visible()
    }

    /// How many objects each collection holds, for metrics.
    pub fn object_counts(&self) -> Vec<(Arc<str>, usize)> {
        self.cache.counts()
    }

    /// Whether writes are taken; the error says why not.
    pub fn check(&self) -> Result<(), pintle_store::Error> {
        self.store.check()
    }

    /// Forgets states before `floor`, in memory and in the store.
    pub async fn compact(&self, floor: Revision) -> Result<(), pintle_store::Error> {
        self.cache.trim(floor);
        self.store.compact(floor).await
    }

    /// The object of a resource, as it is now, if there is one.
    pub fn peek(&self, resource: &Resource, namespace: &str, name: &str) -> Option<Arc<Object>> {
        resource.collection().ok()?.get(&crate::resource::item(namespace, name))
    }

    /// One object. `resource_version` as the client gave it, `""` for the newest (RV-G1 … RV-G3).
    pub async fn get(&self, target: &Target, resource_version: &str) -> Result<Outcome, Status> {
        if let Some(revision) = revision::parse(resource_version)? {
            list::reach(&self.cache, revision).await?;
        }
        let object = self.peek(&target.resource, &target.namespace, &target.name);
        let object = object
            .ok_or_else(|| Status::not_found(&target.resource.group_resource(), &target.name))?;
        let answer = match crate::write::scale_paths(target) {
            None => Answer::Object(object),
            Some(paths) => paths.answer(&object.tree()),
        };
        Ok(Outcome::ok(answer))
    }

    /// A collection, in one namespace or in all.
    pub async fn list(&self, target: &Target, options: &ListOptions) -> Result<List, Status> {
        list::list(&self.cache, target, options).await
    }

    /// What becomes of a collection from now on, or from a resource version on.
    pub async fn watch(&self, target: &Target, options: &ListOptions) -> Result<Watch, Status> {
        Watch::start(&self.cache, target, options).await
    }

    /// Reads the object in a body, with texts for `Warning` headers, and does nothing with it: for what
    /// is answered and not kept (PATH-13).
    pub fn read(
        &self,
        target: &Target,
        body: &Body,
        options: &WriteOptions,
        context: &Context,
    ) -> Result<(Value, Vec<String>), Status> {
        let draft = Write { registry: self, target, options, context }.decode(body)?;
        Ok((draft.tree, draft.warnings))
    }

    /// POST to a collection, or to a subresource that is created.
    pub async fn create(
        &self,
        target: &Target,
        body: &Body,
        options: &WriteOptions,
        context: &Context,
    ) -> Result<Outcome, Status> {
        Write { registry: self, target, options, context }.create(body).await
    }

    /// PUT.
    pub async fn update(
        &self,
        target: &Target,
        body: &Body,
        options: &WriteOptions,
        context: &Context,
    ) -> Result<Outcome, Status> {
        Write { registry: self, target, options, context }.update(body).await
    }

    /// PATCH.
    pub async fn patch(
        &self,
        target: &Target,
        patch: &[u8],
        patch_type: PatchType,
        options: &WriteOptions,
        context: &Context,
    ) -> Result<Outcome, Status> {
        Write { registry: self, target, options, context }.patch(patch, patch_type).await
    }

    /// DELETE of one object.
    pub async fn delete(
        &self,
        target: &Target,
        options: &DeleteOptions,
        context: &Context,
    ) -> Result<Outcome, Status> {
        self.delete_object(target, options, context).await
    }

    /// DELETE of a collection: the deleted objects, as a list (STRAT-06).
    pub async fn delete_collection(
        &self,
        target: &Target,
        selection: &ListOptions,
        options: &DeleteOptions,
        context: &Context,
    ) -> Result<List, Status> {
        let list = self.list(target, selection).await?;
        for object in &list.objects {
            let one = Target {
                resource: target.resource.clone(),
                namespace: object.namespace().into(),
                name: object.name().into(),
                subresource: "".into(),
            };
            match self.delete_object(&one, options, context).await {
                Err(status) if status.code != 404 => return Err(status),
                Ok(_) | Err(_) => {} // gone meanwhile is as good as deleted
            }
        }
        Ok(list)
    }
}
