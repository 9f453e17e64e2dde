//! Watches that are open, for the seats of writes.

use std::sync::Arc;

use parking_lot::Mutex;
use pintle_fairness::{Watched, Watches};
use pintle_meta::fields;

use crate::request_info::{RequestInfo, ResourceInfo};

/// A watch that is open until this is dropped.
pub(crate) struct WatchGuard {
    watches: Arc<Mutex<Watches>>,
    watched: Watched,
}

impl WatchGuard {
    /// Counts a watch. One of a single node's pods is not: a write of a pod is of interest to few of those
    /// (upstream: `getBuiltinIndexes`).
    pub(super) fn begin(watches: &Arc<Mutex<Watches>>, info: &RequestInfo) -> Option<Self> {
        let named = info.resource.as_ref()?;
        if named.resource == "pods" && is_of_one_node(&named.fields) {
            return None;
        }
        let watched = watched(named);
        watches.lock().begin(watched.clone());
        Some(Self { watches: watches.clone(), watched })
    }
}

impl Drop for WatchGuard {
    fn drop(&mut self) {
        self.watches.lock().end(&self.watched);
    }
}

/// How many watches a write is of interest to.
pub(super) fn interested(watches: &Mutex<Watches>, written: &ResourceInfo) -> usize {
    watches.lock().interested(watched(written))
}

fn watched(named: &ResourceInfo) -> Watched {
    Watched {
        group: named.group.clone(),
        resource: named.resource.clone(),
        namespace: named.namespace.clone(),
        name: named.name.clone(),
    }
}

fn is_of_one_node(selector: &fields::Selector) -> bool {
    let node = selector.exact_match("spec.nodeName");
    node.is_some_and(|node| !node.is_empty())
}
