//! Who owns whom: only objects that name owners cost anything.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::sync::Arc;

use pintle_value::Str;

/// Where an object is kept: its collection, and its key in it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Place {
    pub(super) collection: Arc<str>,
    /// `namespace/name`, or `name`.
    pub(super) item: Arc<str>,
}

impl Place {
    /// The namespace, `""` where there is none, and the name.
    pub(super) fn split(&self) -> (&str, &str) {
        self.item.split_once('/').unwrap_or(("", &self.item))
    }

    fn is_in_namespace(&self) -> bool {
        self.item.contains('/')
    }
}

/// Owners, by uid, and their dependents.
#[derive(Debug, Default)]
pub(super) struct Graph {
    dependents: HashMap<Str, BTreeSet<Place>>,
    owners: HashMap<Place, Vec<Str>>,
}

impl Graph {
    /// Says which owners an object names now; returns those that it named before.
    pub(super) fn set(&mut self, place: &Place, owners: Vec<Str>) -> Vec<Str> {
        let before = self.owners.get(place);
        if before.map_or(owners.is_empty(), |before| *before == owners) {
            return owners;
        }
        let before = self.remove(place);
        for owner in &owners {
            self.dependents.entry(owner.clone()).or_default().insert(place.clone());
        }
        if !owners.is_empty() {
            self.owners.insert(place.clone(), owners);
        }
        before
    }

    /// Forgets an object; returns the owners that it named.
    pub(super) fn remove(&mut self, place: &Place) -> Vec<Str> {
        let owners = self.owners.remove(place).unwrap_or_default();
        for owner in &owners {
            if let Some(dependents) = self.dependents.get_mut(owner) {
                dependents.remove(place);
                if dependents.is_empty() {
                    self.dependents.remove(owner);
                }
            }
        }
        owners
    }

    /// Whether an object names owners.
    pub(super) fn has(&self, place: &Place) -> bool {
        self.owners.contains_key(place)
    }

    /// Whether no object names an owner.
    pub(super) fn is_empty(&self) -> bool {
        self.owners.is_empty()
    }

    /// The objects that name an owner.
    pub(super) fn dependents(&self, uid: &str) -> impl Iterator<Item = &Place> {
        self.dependents.get(uid).into_iter().flatten()
    }
}

/// The uids of owners that are known to be gone: enough of the last ones to finish their dependents
/// though their kind be no longer served.
#[derive(Debug, Default)]
pub(super) struct Gone {
    /// With whether the owner was in a namespace.
    uids: HashMap<Str, bool>,
    order: VecDeque<Str>,
}

const GONE_MAX: usize = 4096;

impl Gone {
    pub(super) fn add(&mut self, uid: Str, place: &Place) {
        if self.uids.insert(uid.clone(), place.is_in_namespace()).is_none() {
            self.order.push_back(uid);
        }
        if self.order.len() > GONE_MAX
            && let Some(oldest) = self.order.pop_front()
        {
            self.uids.remove(&oldest);
        }
    }

    /// Whether an owner of a dependent is gone. What is of the cluster has no owner in a namespace.
    pub(super) fn has(&self, uid: &str, dependent: &Place) -> bool {
        let was_in_namespace = self.uids.get(uid).copied();
        was_in_namespace.is_some_and(|was| !was || dependent.is_in_namespace())
    }
}
