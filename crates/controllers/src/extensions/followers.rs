//! Followers of objects at extension API servers: list and watch, for controllers that need all
//! objects.
//!
//! Of each object they store only the metadata that names it and determines its life.
//!
//! Invariants:
//! - If a server does not answer, nothing changes: its objects stay as they were seen last.
//! - Without extension API servers nothing runs.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use pintle_meta::{GroupVersionResource, Status, User, object};
use pintle_value::{Map, Value};
use tokio::sync::mpsc;
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::Instant;

use super::{ExtensionRequest, ExtensionResource, ExtensionServers, Served};

/// The pauses between requests to a failed server (upstream: the reflector's).
const DELAY_MIN: Duration = Duration::from_secs(1);
const DELAY_MAX: Duration = Duration::from_secs(30);
/// The most objects of a resource; a resource with more objects is not followed.
const OBJECTS_MAX: usize = 200_000;
/// The bound on unread updates.
const UPDATES_MAX: usize = 32;
/// How long decisions wait for a server's first list (upstream's value).
const FIRST_LIST_TIMEOUT: Duration = Duration::from_secs(30);

/// The metadata that names an object and determines its life.
const MEMBERS: [&str; 7] = [
    "name",
    "namespace",
    "uid",
    "resourceVersion",
    "deletionTimestamp",
    "ownerReferences",
    "finalizers",
];

/// An update of the objects of a resource.
#[derive(Debug)]
pub(crate) enum ObjectUpdate {
    /// All objects.
    All(Vec<Value>),
    Changed(Value),
    Deleted(Value),
}

/// Follows resources, each with a task.
pub(crate) struct Followers {
    servers: Arc<dyn ExtensionServers>,
    user: Arc<User>,
    by_resource: HashMap<GroupVersionResource, Follower>,
    tasks: JoinSet<()>,
    sender: mpsc::Sender<(GroupVersionResource, ObjectUpdate)>,
    receiver: mpsc::Receiver<(GroupVersionResource, ObjectUpdate)>,
}

struct Follower {
    task: AbortHandle,
    began: Instant,
    has_listed: bool,
}

impl Followers {
    /// Returns an empty set of followers, which send requests as `user`.
    pub(crate) fn new(servers: Arc<dyn ExtensionServers>, user: User) -> Self {
        let (sender, receiver) = mpsc::channel(UPDATES_MAX);
        let (by_resource, tasks) = (HashMap::new(), JoinSet::new());
        Self { servers, user: Arc::new(user), by_resource, tasks, sender, receiver }
    }

    /// Sets the followed resources; but a resource stays followed while its server does not answer
    /// discovery requests. Returns those that are no longer followed.
    pub(crate) fn set<'r>(
        &mut self,
        resources: impl IntoIterator<Item = &'r ExtensionResource>,
        served: &Served,
    ) -> Vec<GroupVersionResource> {
        let mut before = std::mem::take(&mut self.by_resource);
        for resource in resources {
            let follower = before.remove(&resource.resource);
            let follower = follower.unwrap_or_else(|| self.begin(resource.clone()));
            self.by_resource.insert(resource.resource.clone(), follower);
        }
        let mut gone = Vec::new();
        for (resource, follower) in before {
            let version = format!("{}/{}", resource.group, resource.version);
            if served.silent.contains(&version) {
                self.by_resource.insert(resource, follower);
            } else {
                follower.task.abort();
                gone.push(resource);
            }
        }
        while self.tasks.try_join_next().is_some() {}
        gone
    }

    fn begin(&mut self, resource: ExtensionResource) -> Follower {
        let (servers, user) = (self.servers.clone(), self.user.clone());
        let source = Source { servers, user, resource, sender: self.sender.clone() };
        let task = self.tasks.spawn(source.follow());
        Follower { task, began: Instant::now(), has_listed: false }
    }

    /// Waits for the next update of a followed resource; forever if none is followed. Cancel safe.
    pub(crate) async fn next(&mut self) -> (GroupVersionResource, ObjectUpdate) {
        loop {
            let Some((resource, update)) = self.receiver.recv().await else {
                return std::future::pending().await; // unreachable: `self` holds a sender
            };
            let Some(follower) = self.by_resource.get_mut(&resource) else { continue };
            follower.has_listed |= matches!(update, ObjectUpdate::All(_));
            return (resource, update);
        }
    }

    /// Whether a followed server has not sent its first list yet, and may do so soon.
    pub(crate) fn is_behind(&self) -> bool {
        let mut followers = self.by_resource.values();
        followers
            .any(|follower| !follower.has_listed && follower.began.elapsed() < FIRST_LIST_TIMEOUT)
    }
}

/// The objects of one resource, and the channel for their updates.
struct Source {
    servers: Arc<dyn ExtensionServers>,
    user: Arc<User>,
    resource: ExtensionResource,
    sender: mpsc::Sender<(GroupVersionResource, ObjectUpdate)>,
}

impl Source {
    async fn follow(self) {
        let mut delay = DELAY_MIN;
        loop {
            let began = Instant::now();
            if let Err(status) = self.list_and_watch().await {
                let resource = self.resource.resource.group_resource();
                tracing::debug!(%resource, %status, "cannot follow objects of an extension API server");
            }
            if began.elapsed() > DELAY_MAX {
                delay = DELAY_MIN;
            }
            tokio::time::sleep(delay).await;
            delay = delay.saturating_mul(2).min(DELAY_MAX);
        }
    }

    /// Sends all objects, then changes, until an error, until the server requests a new list, or
    /// until a watch ends within [`DELAY_MIN`].
    async fn list_and_watch(&self) -> Result<(), Status> {
        let mut version = self.list().await?;
        loop {
            let began = Instant::now();
            let watch = self.servers.watch(&self.user, &self.resource, &version);
            let mut events = watch.await?;
            while let Some(event) = events.next().await {
                let Some(object) = event.get("object") else { return Ok(()) };
                let object_version = object::resource_version(object).to_owned();
                let update = match event.str_at(&["type"]) {
                    Some("ADDED" | "MODIFIED") => Some(ObjectUpdate::Changed(life(object))),
                    Some("DELETED") => Some(ObjectUpdate::Deleted(life(object))),
                    Some("BOOKMARK") => None,
                    _ => return Ok(()), // an error, mostly an expired resource version
                };
                if let Some(update) = update {
                    self.send(update).await;
                }
                version = object_version;
            }
            if began.elapsed() < DELAY_MIN {
                return Ok(()); // pause before the next watch
            }
        }
    }

    /// Sends all objects; returns the list's resource version.
    async fn list(&self) -> Result<String, Status> {
        let mut objects = Vec::new();
        let mut continue_token = String::new();
        loop {
            let page = ExtensionRequest::List { namespace: "", continue_token: &continue_token };
            let page = self.servers.ask(&self.user, &self.resource, page).await?;
            let Some(items) = page.get("items").and_then(Value::as_array) else {
                return Err(Status::internal("a list without items"));
            };
            objects.extend(items.iter().map(life));
            if objects.len() > OBJECTS_MAX {
                let resource = self.resource.resource.group_resource();
                tracing::warn!(%resource, "an extension API server has too many objects to follow; owner references to them are not resolved");
                return Err(Status::internal("too many objects"));
            }
            let metadata =
                |member| page.str_at(&["metadata", member]).unwrap_or_default().to_owned();
            continue_token = metadata("continue");
            if continue_token.is_empty() {
                self.send(ObjectUpdate::All(objects)).await;
                return Ok(metadata("resourceVersion"));
            }
        }
    }

    async fn send(&self, update: ObjectUpdate) {
        // The receiver is dropped only when this task is about to end.
        let _ = self.sender.send((self.resource.resource.clone(), update)).await;
    }
}

/// Returns the stored part of an object.
fn life(object: &Value) -> Value {
    let mut metadata = Map::new();
    for member in MEMBERS {
        if let Some(value) = object.at(&["metadata", member]) {
            metadata.insert(member, value.clone());
        }
    }
    Value::from([("metadata", Value::from(metadata))])
}
