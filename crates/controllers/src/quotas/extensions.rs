//! Counts of objects at extension API servers for quotas (`count/RESOURCE.GROUP`).
//!
//! This server does not see their writes, so it asks for the number when a watch reports a change.
//! Only resources that a quota counts are followed.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;

use parking_lot::Mutex;
use pintle_admission::quota::usage;
use pintle_meta::{GroupResource, Status, User, object};
use pintle_value::{Str, Value};
use tokio::sync::{Notify, watch};

use crate::Environment;
use crate::extensions::{
    ExtensionRequest, ExtensionResource, ExtensionServers, Followers, ObjectUpdate, Served,
};

/// The verbs that a counted resource must support (upstream: `NamespacedResourcesFunc` of the quota
/// controller).
const VERBS: [&str; 4] = ["create", "list", "watch", "delete"];

/// Counts objects, and reports when to count again.
pub(super) struct Extensions {
    servers: Arc<dyn ExtensionServers>,
    user: User,
    /// The resources that quotas count.
    counted: Mutex<HashSet<GroupResource>>,
    more: Notify,
    following: tokio::sync::Mutex<Following>,
}

struct Following {
    changes: watch::Receiver<u64>,
    followers: Followers,
}

/// The quotas that must be counted again.
pub(super) enum Recount {
    All,
    Within(BTreeSet<Str>),
}

/// The counts by item of a quota; `None` if the server does not answer.
pub(super) type Counts = BTreeMap<String, Option<usize>>;

impl Extensions {
    pub(super) fn new(environment: &Environment) -> Self {
        let (servers, user) = (environment.extensions.clone(), environment.account(super::USER));
        let (changes, followers) =
            (servers.changes(), Followers::new(servers.clone(), user.clone()));
        Self {
            servers,
            user,
            counted: Mutex::default(),
            more: Notify::new(),
            following: tokio::sync::Mutex::new(Following { changes, followers }),
        }
    }

    /// Waits until something has to be counted again; forever without extension API servers. Cancel
    /// safe.
    pub(super) async fn next(&self) -> Recount {
        let mut following = self.following.lock().await;
        let Following { changes, followers } = &mut *following;
        let again = tokio::select! {
            Ok(()) = changes.changed() => Recount::All,
            () = self.more.notified() => Recount::Within(BTreeSet::new()),
            (_, update) = followers.next() => return Recount::Within(namespaces(&update)),
        };
        let served = self.servers.served();
        let counted = self.counted.lock();
        let is_counted = |r: &&ExtensionResource| counted.contains(&r.resource.group_resource());
        followers.set(countable(&served).filter(is_counted), &served);
        again
    }

    /// Counts the objects that a quota limits.
    pub(super) async fn count(&self, namespace: &str, quota: &Value) -> Counts {
        let served = self.servers.served();
        let mut counts = Counts::new();
        if served.resources.is_empty() {
            return counts; // the usual case
        }
        let hard = quota.at(&["spec", "hard"]).and_then(Value::as_object);
        for name in hard.into_iter().flat_map(pintle_value::Map::keys) {
            let is_meant =
                |r: &&ExtensionResource| usage::measures(&r.resource.group_resource(), name);
            let Some(resource) = countable(&served).find(is_meant) else { continue };
            let of = resource.resource.group_resource();
            let count = if usage::in_scope(&of, quota, &Value::Null) {
                self.count_of(namespace, resource).await
            } else {
                Ok(0)
            };
            if let Err(status) = &count {
                tracing::debug!(resource = %of, %status, "cannot count a quota's objects at an extension API server");
            }
            counts.insert(name.to_string(), count.ok());
            if self.counted.lock().insert(of) {
                self.more.notify_one();
            }
        }
        counts
    }

    async fn count_of(&self, namespace: &str, of: &ExtensionResource) -> Result<usize, Status> {
        let (mut count, mut continue_token) = (0_usize, String::new());
        loop {
            let page = ExtensionRequest::List { namespace, continue_token: &continue_token };
            let page = self.servers.ask(&self.user, of, page).await?;
            let Some(items) = page.get("items").and_then(Value::as_array) else {
                return Err(Status::internal("a list without items"));
            };
            count = count.saturating_add(items.len());
            let beyond = page.at(&["metadata", "remainingItemCount"]).and_then(Value::as_int);
            if let Some(beyond) = beyond.and_then(|beyond| usize::try_from(beyond).ok()) {
                return Ok(count.saturating_add(beyond));
            }
            continue_token = page.str_at(&["metadata", "continue"]).unwrap_or_default().to_owned();
            if continue_token.is_empty() {
                return Ok(count);
            }
        }
    }
}

fn countable(served: &Served) -> impl Iterator<Item = &ExtensionResource> {
    served.resources.iter().filter(|resource| {
        let has_all = VERBS.iter().all(|verb| resource.has(verb));
        resource.is_preferred && resource.namespaced && has_all
    })
}

/// Returns the namespaces of the objects in an update.
fn namespaces(update: &ObjectUpdate) -> BTreeSet<Str> {
    let of = |tree: &Value| Str::from(object::namespace(tree));
    match update {
        ObjectUpdate::All(all) => all.iter().map(of).collect(),
        ObjectUpdate::Changed(tree) | ObjectUpdate::Deleted(tree) => BTreeSet::from([of(tree)]),
    }
}
