//! Objects of extension API servers that quotas count (`count/RESOURCE.GROUP`).
//!
//! No write of theirs is seen here: their number is asked for when something tells that it changed. Only what a
//! quota counts is followed.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;

use parking_lot::Mutex;
use pintle_admission::quota::usage;
use pintle_meta::{GroupResource, Status, User, object};
use pintle_value::{Str, Value};
use tokio::sync::{Notify, watch};

use crate::Environment;
use crate::extensions::{
    ExtensionRequest, ExtensionResource, ExtensionServers, Followers, News, Served,
};

/// What a resource must offer to be counted (upstream: `NamespacedResourcesFunc` of the quota controller).
const VERBS: [&str; 4] = ["create", "list", "watch", "delete"];

/// Counts, and tells when to count again.
pub(super) struct Extensions {
    servers: Arc<dyn ExtensionServers>,
    user: User,
    /// What quotas were found to count.
    counted: Mutex<HashSet<GroupResource>>,
    more: Notify,
    following: tokio::sync::Mutex<Following>,
}

struct Following {
    changes: watch::Receiver<u64>,
    followers: Followers,
}

/// Which quotas are to be counted again.
pub(super) enum Again {
    All,
    Within(BTreeSet<Str>),
}

/// What there is of each of a quota's items; nothing where the server does not say it.
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

    /// What is to be counted again; for ever where there are no extension API servers. Cancel safe.
    pub(super) async fn next(&self) -> Again {
        let mut following = self.following.lock().await;
        let Following { changes, followers } = &mut *following;
        let again = tokio::select! {
            Ok(()) = changes.changed() => Again::All,
            () = self.more.notified() => Again::Within(BTreeSet::new()),
            (_, news) = followers.next() => return Again::Within(namespaces(&news)),
        };
        let served = self.servers.served();
        let counted = self.counted.lock();
        let is_counted = |r: &&ExtensionResource| counted.contains(&r.resource.group_resource());
        followers.set(countable(&served).filter(is_counted), &served);
        again
    }

    /// Counts what a quota is about.
    pub(super) async fn count(&self, namespace: &str, quota: &Value) -> Counts {
        let served = self.servers.served();
        let mut counts = Counts::new();
        if served.resources.is_empty() {
            return counts; // as almost always
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
                tracing::debug!(resource = %of, %status, "an extension API server cannot be asked for a quota");
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

/// The namespaces of the objects that something is told of.
fn namespaces(news: &News) -> BTreeSet<Str> {
    let of = |tree: &Value| Str::from(object::namespace(tree));
    match news {
        News::All(all) => all.iter().map(of).collect(),
        News::Changed(tree) | News::Deleted(tree) => BTreeSet::from([of(tree)]),
    }
}
