//! Counts open watches, which determine the seats of writes.

use std::sync::Arc;

use parking_lot::Mutex;
use pintle_fairness::{Watched, Watches};
use pintle_meta::fields;

use crate::request_info::{RequestInfo, ResourceInfo};

/// A counted watch; dropping it ends the count.
pub(crate) struct WatchGuard {
    watches: Arc<Mutex<Watches>>,
    watched: Watched,
}

impl WatchGuard {
    /// Counts a watch. A watch of a single node's pods is not counted: the write of a pod notifies
    /// few of them (upstream: `getBuiltinIndexes`).
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

/// The number of watches that a write notifies.
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
