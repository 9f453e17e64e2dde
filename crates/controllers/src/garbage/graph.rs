//! The graph of owners and dependents. Objects without owner references take no memory in it.

use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};
use std::sync::Arc;

use pintle_registry::request::Propagation;
use pintle_value::Str;

/// The collection of an object, and its key in the collection.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct ObjectKey {
    pub(super) collection: Arc<str>,
    /// `namespace/name`, or `name` for cluster-scoped objects.
    pub(super) item: Arc<str>,
}

impl ObjectKey {
    /// The namespace (empty for cluster-scoped objects) and the name.
    pub(super) fn split(&self) -> (&str, &str) {
        self.item.split_once('/').unwrap_or(("", &self.item))
    }

    fn is_in_namespace(&self) -> bool {
        self.item.contains('/')
    }
}

/// The parts of an owner reference that the graph needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Reference {
    pub(super) uid: Str,
    /// Whether a foreground deletion of the owner waits for the object (`blockOwnerDeletion`).
    pub(super) blocks: bool,
}

/// Owners by UID, and their dependents.
#[derive(Debug, Default)]
pub(super) struct Graph {
    dependents: HashMap<Str, Dependents>,
    owners: HashMap<ObjectKey, Box<[Reference]>>,
}

/// The dependents of an owner; never empty.
#[derive(Debug, Default)]
struct Dependents {
    all: BTreeSet<ObjectKey>,
    blocking: BTreeSet<ObjectKey>,
}

impl Graph {
    /// Sets the owners of an object; returns the previous ones.
    pub(super) fn set(&mut self, key: &ObjectKey, owners: &[Reference]) -> Box<[Reference]> {
        if let Some(before) = self.owners.get(key).filter(|before| ***before == *owners) {
            return before.clone();
        }
        let before = self.remove(key);
        for owner in owners {
            let dependents = self.dependents.entry(owner.uid.clone()).or_default();
            dependents.all.insert(key.clone());
            if owner.blocks {
                dependents.blocking.insert(key.clone());
            }
        }
        if !owners.is_empty() {
            self.owners.insert(key.clone(), owners.into());
        }
        before
    }

    /// Removes an object; returns its owners.
    pub(super) fn remove(&mut self, key: &ObjectKey) -> Box<[Reference]> {
        let owners = self.owners.remove(key).unwrap_or_default();
        for owner in &owners {
            if let Some(dependents) = self.dependents.get_mut(&owner.uid) {
                dependents.all.remove(key);
                dependents.blocking.remove(key);
                if dependents.all.is_empty() {
                    self.dependents.remove(&owner.uid);
                }
            }
        }
        owners
    }

    /// Whether an object has owner references.
    pub(super) fn has(&self, key: &ObjectKey) -> bool {
        self.owners.contains_key(key)
    }

    /// The owners of an object.
    pub(super) fn owners(&self, key: &ObjectKey) -> &[Reference] {
        self.owners.get(key).map_or(&[], |owners| owners)
    }

    /// Whether no object has an owner.
    pub(super) fn is_empty(&self) -> bool {
        self.owners.is_empty()
    }

    /// The dependents of an owner.
    pub(super) fn dependents(&self, uid: &str) -> impl ExactSizeIterator<Item = &ObjectKey> {
        self.dependents.get(uid).map_or(&NONE, |dependents| &dependents.all).iter()
    }

    /// The dependents for which a foreground deletion of the owner waits.
    pub(super) fn blocking(&self, uid: &str) -> impl ExactSizeIterator<Item = &ObjectKey> {
        self.dependents.get(uid).map_or(&NONE, |dependents| &dependents.blocking).iter()
    }
}

static NONE: BTreeSet<ObjectKey> = BTreeSet::new();

/// Owners that are being deleted and whose dependents must be handled first: they lose the
/// reference (orphan), or the blocking ones are deleted before the owner (foreground).
#[derive(Debug, Default)]
pub(super) struct Waiting {
    by_uid: HashMap<Str, (ObjectKey, Propagation)>,
    keys: HashSet<ObjectKey>,
}

impl Waiting {
    /// Adds an owner, or sets its propagation; returns whether something changed.
    pub(super) fn add(&mut self, uid: Str, key: &ObjectKey, propagation: Propagation) -> bool {
        self.keys.insert(key.clone());
        let before = self.by_uid.insert(uid, (key.clone(), propagation));
        before.is_none_or(|(_, before)| before != propagation)
    }

    /// Removes an owner.
    pub(super) fn remove(&mut self, uid: &str) {
        if let Some((key, _)) = self.by_uid.remove(uid) {
            self.keys.remove(&key);
        }
    }

    /// The owner with this UID, if it waits.
    pub(super) fn get(&self, uid: &str) -> Option<&ObjectKey> {
        self.by_uid.get(uid).map(|(key, _)| key)
    }

    /// Whether an object is a waiting owner.
    pub(super) fn has(&self, key: &ObjectKey) -> bool {
        self.keys.contains(key)
    }

    /// Whether the dependents of the owner with this UID must lose their reference to it.
    pub(super) fn orphans(&self, uid: &str) -> bool {
        self.by_uid.get(uid).is_some_and(|(_, propagation)| *propagation == Propagation::Orphan)
    }

    /// Whether no owner waits.
    pub(super) fn is_empty(&self) -> bool {
        self.by_uid.is_empty()
    }
}

/// The UIDs of the owners that were deleted last (upstream: `absentOwnerCache`). With them,
/// dependents are deleted even if the owner's kind is no longer served.
#[derive(Debug, Default)]
pub(super) struct AbsentOwners {
    /// Whether each owner was namespaced.
    uids: HashMap<Str, bool>,
    order: VecDeque<Str>,
}

const ABSENT_OWNERS_MAX: usize = 4096;

impl AbsentOwners {
    pub(super) fn add(&mut self, uid: Str, key: &ObjectKey) {
        if self.uids.insert(uid.clone(), key.is_in_namespace()).is_none() {
            self.order.push_back(uid);
        }
        if self.order.len() > ABSENT_OWNERS_MAX
            && let Some(oldest) = self.order.pop_front()
        {
            self.uids.remove(&oldest);
        }
    }

    /// Whether an owner of a dependent was deleted. A cluster-scoped object cannot have a
    /// namespaced owner.
    pub(super) fn has(&self, uid: &str, dependent: &ObjectKey) -> bool {
        let was_in_namespace = self.uids.get(uid).copied();
        was_in_namespace.is_some_and(|was| !was || dependent.is_in_namespace())
    }
}
