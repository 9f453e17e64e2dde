//! Objects of extension API servers in the collector: what is known of them, and what has to be asked.
//!
//! Invariant: what a server does not say is never a reason to delete. An owner that such a server keeps is
//! absent only if the server says so of that very object when it is asked.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use pintle_meta::{GroupVersionResource, Status, User, object};
use pintle_registry::Resource;
use pintle_value::{Str, Value};
use tokio::sync::watch;

use super::graph::Place;
use super::judge::Standing;
use super::owners::{self, Owner};
use crate::Environment;
use crate::extensions::{
    ExtensionRequest, ExtensionResource, ExtensionServers, Followers, News, Served,
};

/// What the collector needs of a resource to follow it (upstream: `GetDeletableResources`).
const VERBS: [&str; 3] = ["delete", "list", "watch"];
/// How long questions about the owners of one object may take together.
const PATIENCE: Duration = Duration::from_secs(60);

/// What is known of extension API servers and their objects.
pub(super) struct Extensions {
    servers: Arc<dyn ExtensionServers>,
    changes: watch::Receiver<u64>,
    followers: Followers,
    /// Whom owner references mean, by `apiVersion` and `kind`.
    by_name: HashMap<(Str, Str), Arc<ExtensionResource>>,
    /// Versions of groups of which nothing is known now.
    silent: HashSet<String>,
    collections: HashMap<Arc<str>, Collection>,
}

/// The objects of a resource as they were seen last.
struct Collection {
    resource: Arc<ExtensionResource>,
    objects: HashMap<Arc<str>, Value>,
}

/// What happened.
pub(super) enum Event {
    /// Other resources are served.
    Served,
    News(GroupVersionResource, News),
}

/// What became of an object: its state now, or the last one before it was gone.
pub(super) enum Change {
    Seen(Place, Value),
    Ended(Place, Value),
}

/// An owner of which only its server can tell whether it is there.
pub(super) struct Question {
    pub(super) owner: Owner,
    /// `""` where the owner is not in a namespace.
    pub(super) namespace: Str,
    pub(super) resource: OwnerResource,
}

/// Who keeps an owner.
pub(super) enum OwnerResource {
    Extension(Arc<ExtensionResource>),
    /// The registry, which may not have seen yet what an extension API server saw of another server's writes.
    Registry(Arc<Resource>),
}

/// What owners are, each as an object names it.
pub(super) type Answers = HashMap<Owner, Standing>;

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

    /// What happens next; for ever where there are no extension API servers. Cancel safe.
    pub(super) async fn next(&mut self) -> Event {
        tokio::select! {
            Ok(()) = self.changes.changed() => Event::Served,
            (resource, news) = self.followers.next() => Event::News(resource, news),
        }
    }

    /// Follows what is served now. Returns the objects that are no longer followed: they may be there still.
    pub(super) fn refresh(&mut self) -> Vec<(Place, Value)> {
        let served: Served = self.servers.served();
        let is_followed = |resource: &&ExtensionResource| {
            resource.is_preferred && VERBS.iter().all(|verb| resource.has(verb))
        };
        let followed = || served.resources.iter().filter(is_followed);
        let gone = self.followers.set(followed(), &served);
        let mut objects = Vec::new();
        for collection in gone.iter().filter_map(|gone| self.collections.remove(&name(gone))) {
            let name: Arc<str> = name(&collection.resource.resource);
            let place = |item| Place { collection: name.clone(), item };
            objects.extend(collection.objects.into_iter().map(|(item, tree)| (place(item), tree)));
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

    /// Takes in what a server told.
    pub(super) fn take(&mut self, resource: &GroupVersionResource, news: News) -> Vec<Change> {
        let name = name(resource);
        let Some(collection) = self.collections.get_mut(&name) else { return Vec::new() };
        let place = |item: &Arc<str>| Place { collection: name.clone(), item: item.clone() };
        let objects = &mut collection.objects;
        match news {
            News::All(all) => {
                let all: HashMap<_, _> = all.into_iter().map(|tree| (item(&tree), tree)).collect();
                let before = std::mem::take(objects);
                let missing = before.into_iter().filter(|(item, tree)| {
                    all.get(item).is_none_or(|now| object::uid(now) != object::uid(tree))
                });
                let ended = missing.map(|(item, tree)| Change::Ended(place(&item), tree));
                let seen = all.iter().map(|(item, tree)| Change::Seen(place(item), tree.clone()));
                let changes = ended.chain(seen).collect();
                *objects = all;
                changes
            }
            News::Changed(tree) => {
                let item = item(&tree);
                objects.insert(item.clone(), tree.clone());
                vec![Change::Seen(place(&item), tree)]
            }
            News::Deleted(tree) => {
                let item = item(&tree);
                objects.remove(&item);
                vec![Change::Ended(place(&item), tree)]
            }
        }
    }

    /// Whether a server may soon tell of objects that are not known yet.
    pub(super) fn is_behind(&self) -> bool {
        self.followers.is_behind()
    }

    /// Whose collection it is, if it is an extension API server's.
    pub(super) fn resource_of(&self, place: &Place) -> Option<&Arc<ExtensionResource>> {
        self.collections.get(&place.collection).map(|collection| &collection.resource)
    }

    /// What decides about an object's life, as it was seen last.
    pub(super) fn life(&self, place: &Place) -> Option<&Value> {
        self.collections.get(&place.collection)?.objects.get(&place.item)
    }

    /// The resource that an owner reference means.
    pub(super) fn named(&self, owner: &Owner) -> Option<&Arc<ExtensionResource>> {
        if self.by_name.is_empty() {
            return None; // as almost always: nothing is put together
        }
        self.by_name.get(&(owner.api_version.clone(), owner.kind.clone()))
    }

    /// Whether nothing is known now of a version of a group.
    pub(super) fn is_silent(&self, api_version: &str) -> bool {
        self.silent.contains(api_version)
    }

    /// Whether an owner was alive when it was seen last. When it goes, its dependents are looked at again.
    pub(super) fn was_alive(&self, of: &ExtensionResource, namespace: &str, owner: &Owner) -> bool {
        let Some(collection) = self.collections.get(&name(&of.resource)) else { return false };
        let item = item_of(namespace, &owner.name);
        collection
            .objects
            .get(&item)
            .is_some_and(|tree| object::uid(tree) == owner.uid && !object::is_terminating(tree))
    }
}

/// The name under which the collector knows the objects of a resource, as no collection here is called.
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

/// Asks who keeps the owners what has become of them. All must answer.
pub(super) async fn ask(
    environment: &Environment,
    user: &User,
    questions: &[Question],
) -> Result<Answers, Status> {
    let asking = async {
        let mut answers = Answers::new();
        for question in questions {
            let standing = question.ask(environment, user).await?;
            answers.insert(question.owner.clone(), standing);
        }
        Ok(answers)
    };
    let late = |_| Err(Status::internal("the servers of an object's owners do not answer"));
    tokio::time::timeout(PATIENCE, asking).await.unwrap_or_else(late)
}

impl Question {
    async fn ask(&self, environment: &Environment, user: &User) -> Result<Standing, Status> {
        let (namespace, name) = (self.namespace.as_str(), self.owner.name.as_str());
        let uid = self.owner.uid.as_str();
        match &self.resource {
            OwnerResource::Extension(resource) => {
                let request = ExtensionRequest::Get { namespace, name };
                match environment.extensions.ask(user, resource, request).await {
                    Ok(tree) if object::name(&tree) == name && !object::uid(&tree).is_empty() => {
                        Ok(Standing::of(&tree, uid))
                    }
                    Ok(_) => Err(Status::internal("the answer is another object")),
                    Err(status) if status.code == 404 => Ok(Standing::Absent),
                    Err(status) => Err(status),
                }
            }
            OwnerResource::Registry(resource) => {
                environment.registry.catch_up().await?;
                let Some(object) = environment.registry.peek(resource, namespace, name) else {
                    return Ok(Standing::Absent);
                };
                Ok(Standing::of(&object.excerpt(owners::LIFE)?, uid))
            }
        }
    }
}
