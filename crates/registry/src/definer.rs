//! What defines a resource, where another object does: with that object the resource's objects go.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use pintle_value::{Str, json};

use crate::Object;

/// The object that defines a resource.
#[derive(Debug)]
pub struct Definer {
    /// The collection in which it is stored.
    collection: Arc<str>,
    /// Its name.
    name: Str,
    uid: Str,
    /// The newest version of it that was found to be the same object, and to stay: its bytes are looked at
    /// once, not for each object that hangs on it.
    sound: AtomicU64,
}

/// What became of what defines a resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    Stays,
    Goes,
    /// It is another one of that name.
    Gone,
}

impl Definer {
    /// The object of that uid.
    pub fn new(collection: &str, name: &str, uid: &str) -> Self {
        let sound = AtomicU64::new(0);
        Self { collection: collection.into(), name: name.into(), uid: uid.into(), sound }
    }

    pub(crate) const fn collection(&self) -> &Arc<str> {
        &self.collection
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Its standing, given the object that is stored under its name.
    pub(crate) fn standing(&self, found: &Object) -> Standing {
        if self.sound.load(Ordering::Relaxed) == found.revision.0 {
            return Standing::Stays;
        }
        let json = found.json_bytes();
        let metadata = json::member(json, "metadata").and_then(|range| json.get(range));
        let metadata = metadata.unwrap_or_default();
        let uid = json::member(metadata, "uid").and_then(|range| metadata.get(range));
        let uid = uid.and_then(|uid| json::parse(uid).ok());
        if uid.as_ref().and_then(|uid| uid.as_str()) != Some(&*self.uid) {
            return Standing::Gone;
        }
        if json::member(metadata, "deletionTimestamp").is_some() {
            return Standing::Goes;
        }
        self.sound.store(found.revision.0, Ordering::Relaxed);
        Standing::Stays
    }
}
