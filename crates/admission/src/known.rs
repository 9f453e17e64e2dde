//! An index of a resource's objects for decisions about other objects: each object is decoded once,
//! and not for every write that it concerns.
//!
//! Each query first applies pending changes of a [`Feed`], so that a LimitRange, for example, takes
//! effect once its write is acknowledged. A query of a resource without objects costs almost
//! nothing.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::{RwLock, RwLockReadGuard, RwLockWriteGuard};
use pintle_meta::{GroupVersionResource, Status};
use pintle_registry::{Feed, FeedUpdate, Object, Registry, Unreadable};
use pintle_store::Kind;
use pintle_value::Str;

/// The objects of a resource, as `T`, by namespace and name.
pub(crate) struct Known<T> {
    resource: (&'static str, &'static str),
    read: fn(&Object) -> Result<T, Unreadable>,
    state: RwLock<State<T>>,
}

struct State<T> {
    /// `None` until a query finds that the resource is served.
    feed: Option<Feed>,
    /// An undecodable object is an error and never counts as absent.
    namespaces: BTreeMap<Str, BTreeMap<Str, Result<Arc<T>, Unreadable>>>,
}

impl<T> Known<T> {
    /// An empty index of a resource, by group and plural, in version v1.
    pub(crate) const fn new(
        group: &'static str,
        plural: &'static str,
        read: fn(&Object) -> Result<T, Unreadable>,
    ) -> Self {
        let state = State { feed: None, namespaces: BTreeMap::new() };
        Self { resource: (group, plural), read, state: RwLock::new(state) }
    }

    /// The objects in a namespace, sorted by name; `""` for cluster-scoped resources.
    ///
    /// # Errors
    /// If one of them cannot be decoded: its effect is unknown.
    pub(crate) fn within(
        &self,
        namespace: &str,
        registry: &Registry,
    ) -> Result<Vec<Arc<T>>, Status> {
        let state = self.current(registry);
        let Some(all) = state.namespaces.get(namespace) else { return Ok(Vec::new()) };
        let all = all.values().map(|one| match one {
            Ok(one) => Ok(one.clone()),
            Err(why) => Err(Status::internal(format_args!("{}: {why}", self.resource.1))),
        });
        all.collect()
    }

    fn current(&self, registry: &Registry) -> RwLockReadGuard<'_, State<T>> {
        let state = self.state.read();
        if state.feed.as_ref().is_some_and(Feed::is_current) {
            return state;
        }
        drop(state);
        let mut state = self.state.write();
        self.catch_up(&mut state, registry);
        RwLockWriteGuard::downgrade(state)
    }

    fn catch_up(&self, state: &mut State<T>, registry: &Registry) {
        let State { feed, namespaces } = state;
        if feed.is_none() {
            let name = GroupVersionResource::new(self.resource.0, "v1", self.resource.1);
            *feed = registry.resource(&name).map(|resource| registry.feed(&resource));
        }
        let objects = match feed.as_mut().map(Feed::take) {
            Some(Ok(FeedUpdate::State(objects))) => {
                namespaces.clear();
                objects
            }
            Some(Ok(FeedUpdate::Changes(objects))) => objects,
            // A resource that is not served, or that is virtual, has no stored objects.
            Some(Err(_)) | None => return,
        };
        for object in objects {
            let (namespace, name) = (object.namespace(), object.name());
            if object.kind() == Kind::Deleted {
                let Some(all) = namespaces.get_mut(namespace) else { continue };
                all.remove(name);
                if all.is_empty() {
                    namespaces.remove(namespace);
                }
            } else {
                let all = namespaces.entry(namespace.into()).or_default();
                all.insert(name.into(), (self.read)(&object).map(Arc::new));
            }
        }
    }
}
