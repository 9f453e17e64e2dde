//! Objects of extension API servers in the garbage collector: their states from watches, and
//! questions to their servers.
//!
//! Invariant: an unavailable server never causes a deletion. An owner at such a server counts as
//! absent only if the server reports so when asked for that owner.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use pintle_meta::{GroupVersionResource, Status, User, object};
use pintle_registry::Resource;
use pintle_value::{Str, Value};
use tokio::sync::watch;

use super::graph::ObjectKey;
use super::owners::{AllNamed, Named, Owner, OwnerStates};
use crate::Environment;
use crate::extensions::{
    ExtensionRequest, ExtensionResource, ExtensionServers, Followers, ObjectUpdate, Served,
};
use crate::pace::Pace;

/// The verbs that the collector needs to follow a resource (upstream: `GetDeletableResources`).
const VERBS: [&str; 3] = ["delete", "list", "watch"];
/// The timeout of all questions about the owners of one object.
const QUESTIONS_TIMEOUT: Duration = Duration::from_secs(60);

/// The extension API servers and their objects.
pub(super) struct Extensions {
    servers: Arc<dyn ExtensionServers>,
    changes: watch::Receiver<u64>,
    followers: Followers,
    /// The resources that owner references name, by `apiVersion` and `kind`.
    by_name: HashMap<(Str, Str), Arc<ExtensionResource>>,
    /// Group versions whose servers do not respond.
    silent: HashSet<String>,
    collections: HashMap<Arc<str>, Collection>,
}

/// The objects of a resource, as its watch last reported them.
struct Collection {
    resource: Arc<ExtensionResource>,
    objects: HashMap<Arc<str>, Value>,
}

/// The events of [`Extensions::next`].
pub(super) enum Event {
    /// The served resources changed.
    Served,
    Update(GroupVersionResource, ObjectUpdate),
}

/// A change of an object: its new state, or its last state before it was deleted.
pub(super) enum Change {
    Seen(ObjectKey, Value),
    Ended(ObjectKey, Value),
}

/// The question whether an owner exists, for the server that serves it.
pub(super) struct Question {
    pub(super) owner: Owner,
    /// Empty if the owner is cluster-scoped.
    pub(super) namespace: Str,
    pub(super) resource: OwnerResource,
}

/// The resource of an owner, and its server.
pub(super) enum OwnerResource {
    Extension(Arc<ExtensionResource>),
    /// The registry, after it has read what other servers wrote to a shared database.
    Registry(Arc<Resource>),
}

impl Extensions {
    pub(super) fn new(environment: &Environment) -> Self {
        let servers = environment.extensions.clone();
        let mut changes = servers.changes();
        changes.mark_changed();
        let followers = Followers::new(servers.clone(), environment.account(super::USER));
        Self {
            servers,
            changes,
            followers,
            by_name: HashMap::new(),
            silent: HashSet::new(),
            collections: HashMap::new(),
        }
    }

    /// The next event; pending for ever if there are no extension API servers. Cancel safe.
    pub(super) async fn next(&mut self) -> Event {
        tokio::select! {
            Ok(()) = self.changes.changed() => Event::Served,
            (resource, update) = self.followers.next() => Event::Update(resource, update),
        }
    }

    /// Follows the resources that are now served. Returns the objects that are no longer followed;
    /// they may still exist.
    pub(super) fn refresh(&mut self) -> Vec<(ObjectKey, Value)> {
        let served: Served = self.servers.served();
        let is_followed = |resource: &&ExtensionResource| {
            resource.is_preferred && VERBS.iter().all(|verb| resource.has(verb))
        };
        let followed = || served.resources.iter().filter(is_followed);
        let gone = self.followers.set(followed(), &served);
        let mut objects = Vec::new();
        for collection in gone.iter().filter_map(|gone| self.collections.remove(&name(gone))) {
            let name: Arc<str> = name(&collection.resource.resource);
            let key = |item| ObjectKey { collection: name.clone(), item };
            objects.extend(collection.objects.into_iter().map(|(item, tree)| (key(item), tree)));
        }
        for resource in followed() {
            self.collections.entry(name(&resource.resource)).or_insert_with(|| Collection {
                resource: Arc::new(resource.clone()),
                objects: HashMap::new(),
            });
        }
        self.by_name = served.resources.into_iter().map(by_name).collect();
        self.silent = served.silent.into_iter().collect();
        objects
    }

    /// Updates the objects of a resource; returns the changes.
    pub(super) fn take(
        &mut self,
        resource: &GroupVersionResource,
        update: ObjectUpdate,
    ) -> Vec<Change> {
        let name = name(resource);
        let Some(collection) = self.collections.get_mut(&name) else { return Vec::new() };
        let key = |item: &Arc<str>| ObjectKey { collection: name.clone(), item: item.clone() };
        let objects = &mut collection.objects;
        match update {
            ObjectUpdate::All(all) => {
                let all: HashMap<_, _> = all.into_iter().map(|tree| (item(&tree), tree)).collect();
                let before = std::mem::take(objects);
                let missing = before.into_iter().filter(|(item, tree)| {
                    all.get(item).is_none_or(|now| object::uid(now) != object::uid(tree))
                });
                let ended = missing.map(|(item, tree)| Change::Ended(key(&item), tree));
                let seen = all.iter().map(|(item, tree)| Change::Seen(key(item), tree.clone()));
                let changes = ended.chain(seen).collect();
                *objects = all;
                changes
            }
            ObjectUpdate::Changed(tree) => {
                let item = item(&tree);
                objects.insert(item.clone(), tree.clone());
                vec![Change::Seen(key(&item), tree)]
            }
            ObjectUpdate::Deleted(tree) => {
                let item = item(&tree);
                objects.remove(&item);
                vec![Change::Ended(key(&item), tree)]
            }
        }
    }

    /// Whether some watch has not reported all objects yet.
    pub(super) fn is_behind(&self) -> bool {
        self.followers.is_behind()
    }

    /// The resource of an extension API server's object; `None` for other objects.
    pub(super) fn resource_of(&self, key: &ObjectKey) -> Option<&Arc<ExtensionResource>> {
        self.collections.get(&key.collection).map(|collection| &collection.resource)
    }

    /// An object, as its watch last reported it.
    pub(super) fn lifecycle(&self, key: &ObjectKey) -> Option<&Value> {
        self.collections.get(&key.collection)?.objects.get(&key.item)
    }

    /// The resource of an owner reference.
    pub(super) fn named(&self, owner: &Owner) -> Option<&Arc<ExtensionResource>> {
        if self.by_name.is_empty() {
            return None; // the usual case, without the allocations below
        }
        self.by_name.get(&(owner.api_version.clone(), owner.kind.clone()))
    }

    /// Whether the server of a group version does not respond.
    pub(super) fn is_silent(&self, api_version: &str) -> bool {
        self.silent.contains(api_version)
    }

    /// Whether an owner existed and was not being deleted when its watch last reported it. When the
    /// watch reports its deletion, its dependents are evaluated again.
    pub(super) fn was_alive(&self, of: &ExtensionResource, namespace: &str, owner: &Owner) -> bool {
        let Some(collection) = self.collections.get(&name(&of.resource)) else { return false };
        let item = item_of(namespace, &owner.name);
        collection
            .objects
            .get(&item)
            .is_some_and(|tree| object::uid(tree) == owner.uid && !object::is_terminating(tree))
    }
}

/// The collector's name for a resource's collection, different from all collections of the
/// registry.
fn name(of: &GroupVersionResource) -> Arc<str> {
    format!("extension:{}/{}", of.group, of.resource).into()
}

fn by_name(resource: ExtensionResource) -> ((Str, Str), Arc<ExtensionResource>) {
    ((resource.api_version().into(), resource.kind.clone()), Arc::new(resource))
}

fn item(tree: &Value) -> Arc<str> {
    item_of(object::namespace(tree), object::name(tree))
}

fn item_of(namespace: &str, name: &str) -> Arc<str> {
    match namespace {
        "" => name.into(),
        _ => format!("{namespace}/{name}").into(),
    }
}

/// Asks the owners' servers for the states of owners. Fails if a server does not respond.
pub(super) async fn ask(
    environment: &Environment,
    user: &User,
    questions: &[Question],
) -> Result<OwnerStates, Status> {
    let asking = async {
        let (mut states, mut all, mut pace) =
            (OwnerStates::new(), AllNamed::new(), Pace::default());
        for question in questions {
            let owner = &question.owner;
            pace.step(0).await;
            let named = match all.entry(owner.named()) {
                Entry::Occupied(known) => known.into_mut(),
                Entry::Vacant(unknown) => {
                    unknown.insert(question.ask(environment, user, &mut pace).await?)
                }
            };
            states.insert(owner.clone(), Named::state(named.as_ref(), &owner.uid));
        }
        Ok(states)
    };
    let late = |_| Err(Status::internal("the servers of an object's owners do not respond"));
    tokio::time::timeout(QUESTIONS_TIMEOUT, asking).await.unwrap_or_else(late)
}

impl Question {
    /// Asks for the object that the owner reference names.
    async fn ask(
        &self,
        environment: &Environment,
        user: &User,
        pace: &mut Pace,
    ) -> Result<Option<Named>, Status> {
        let (namespace, name) = (self.namespace.as_str(), self.owner.name.as_str());
        match &self.resource {
            OwnerResource::Extension(resource) => {
                let request = ExtensionRequest::Get { namespace, name };
                match environment.extensions.ask(user, resource, request).await {
                    Ok(tree) if object::name(&tree) == name && !object::uid(&tree).is_empty() => {
                        Ok(Some(Named::of(&tree)))
                    }
                    Ok(_) => Err(Status::internal("the response is another object")),
                    Err(status) if status.code == 404 => Ok(None),
                    Err(status) => Err(status),
                }
            }
            OwnerResource::Registry(resource) => {
                environment.registry.catch_up().await?;
                let object = environment.registry.peek(resource, namespace, name);
                pace.step(object.as_ref().map_or(0, |object| object.size())).await;
                Ok(object.as_deref().map(Named::read).transpose()?)
            }
        }
    }
}
