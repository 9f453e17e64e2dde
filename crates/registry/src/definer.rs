//! Definers: the objects that define resources (CustomResourceDefinitions). The objects of a
//! resource must not outlive its definer.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use pintle_value::{Str, json};

use crate::Object;

/// The object that defines a resource.
#[derive(Debug)]
pub struct Definer {
    /// The collection in which the definer is stored.
    collection: Arc<str>,
    /// The definer's name.
    name: Str,
    uid: Str,
    /// The newest revision at which the definer had this uid and was not terminating. So the
    /// definer's bytes are decoded once per version, not for each write to the resource.
    live_at: AtomicU64,
}

/// The state of a definer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DefinerState {
    Live,
    Terminating,
    /// Deleted, or replaced by another object of that name.
    Gone,
}

impl Definer {
    /// The object with this name and uid.
    pub fn new(collection: &str, name: &str, uid: &str) -> Self {
        let live_at = AtomicU64::new(0);
        Self { collection: collection.into(), name: name.into(), uid: uid.into(), live_at }
    }

    pub(crate) const fn collection(&self) -> &Arc<str> {
        &self.collection
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Returns the definer's state, given the object that is stored under its name.
    pub(crate) fn state(&self, found: &Object) -> DefinerState {
        if self.live_at.load(Ordering::Relaxed) == found.revision.0 {
            return DefinerState::Live;
        }
        let json = found.abridged();
        let metadata = json::member(json, "metadata").and_then(|range| json.get(range));
        let metadata = metadata.unwrap_or_default();
        let uid = json::member(metadata, "uid").and_then(|range| metadata.get(range));
        let uid = uid.and_then(|uid| json::parse(uid).ok());
        if uid.as_ref().and_then(|uid| uid.as_str()) != Some(&*self.uid) {
            return DefinerState::Gone;
        }
        if json::member(metadata, "deletionTimestamp").is_some() {
            return DefinerState::Terminating;
        }
        self.live_at.store(found.revision.0, Ordering::Relaxed);
        DefinerState::Live
    }
}
