//! Who owns whom: only objects that name owners cost anything.

use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};
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

/// What an object says of an owner.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Reference {
    pub(super) uid: Str,
    /// Whether the owner's deletion in the foreground waits for the object.
    pub(super) blocks: bool,
}

/// Owners, by uid, and their dependents.
#[derive(Debug, Default)]
pub(super) struct Graph {
    dependents: HashMap<Str, Dependents>,
    owners: HashMap<Place, Box<[Reference]>>,
}

/// The objects that name an owner; never none.
#[derive(Debug, Default)]
struct Dependents {
    all: BTreeSet<Place>,
    blocking: BTreeSet<Place>,
}

impl Graph {
    /// Says which owners an object names now; returns those that it named before.
    pub(super) fn set(&mut self, place: &Place, owners: &[Reference]) -> Box<[Reference]> {
        if let Some(before) = self.owners.get(place).filter(|before| ***before == *owners) {
            return before.clone();
        }
        let before = self.remove(place);
        for owner in owners {
            let dependents = self.dependents.entry(owner.uid.clone()).or_default();
            dependents.all.insert(place.clone());
            if owner.blocks {
                dependents.blocking.insert(place.clone());
            }
        }
        if !owners.is_empty() {
            self.owners.insert(place.clone(), owners.into());
        }
        before
    }

    /// Forgets an object; returns the owners that it named.
    pub(super) fn remove(&mut self, place: &Place) -> Box<[Reference]> {
        let owners = self.owners.remove(place).unwrap_or_default();
        for owner in &owners {
            if let Some(dependents) = self.dependents.get_mut(&owner.uid) {
                dependents.all.remove(place);
                dependents.blocking.remove(place);
                if dependents.all.is_empty() {
                    self.dependents.remove(&owner.uid);
                }
            }
        }
        owners
    }

    /// Whether an object names owners.
    pub(super) fn has(&self, place: &Place) -> bool {
        self.owners.contains_key(place)
    }

    /// The owners that an object names.
    pub(super) fn owners(&self, place: &Place) -> &[Reference] {
        self.owners.get(place).map_or(&[], |owners| owners)
    }

    /// Whether no object names an owner.
    pub(super) fn is_empty(&self) -> bool {
        self.owners.is_empty()
    }

    /// The objects that name an owner.
    pub(super) fn dependents(&self, uid: &str) -> impl ExactSizeIterator<Item = &Place> {
        self.dependents.get(uid).map_or(&NONE, |dependents| &dependents.all).iter()
    }

    /// The objects for which an owner waits that is deleted in the foreground.
    pub(super) fn blocking(&self, uid: &str) -> impl ExactSizeIterator<Item = &Place> {
        self.dependents.get(uid).map_or(&NONE, |dependents| &dependents.blocking).iter()
    }
}

static NONE: BTreeSet<Place> = BTreeSet::new();

/// How an owner's deletion treats its dependents, while the owner waits for them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    /// They stay, and forget it.
    Orphan,
    /// Those that block it go first.
    Foreground,
}

/// Owners that are being deleted and wait for their dependents.
#[derive(Debug, Default)]
pub(super) struct Waiting {
    by_uid: HashMap<Str, (Place, Ending)>,
    places: HashSet<Place>,
}

impl Waiting {
    /// Says that an owner waits; whether that is new.
    pub(super) fn add(&mut self, uid: Str, place: &Place, ending: Ending) -> bool {
        self.places.insert(place.clone());
        let before = self.by_uid.insert(uid, (place.clone(), ending));
        before.is_none_or(|(_, before)| before != ending)
    }

    /// Forgets an owner.
    pub(super) fn remove(&mut self, uid: &str) {
        if let Some((place, _)) = self.by_uid.remove(uid) {
            self.places.remove(&place);
        }
    }

    /// The owner of that uid, if it waits.
    pub(super) fn get(&self, uid: &str) -> Option<&Place> {
        self.by_uid.get(uid).map(|(place, _)| place)
    }

    /// Whether an object waits.
    pub(super) fn has(&self, place: &Place) -> bool {
        self.places.contains(place)
    }

    /// Whether the dependents of the owner of that uid are to forget it.
    pub(super) fn orphans(&self, uid: &str) -> bool {
        self.by_uid.get(uid).is_some_and(|(_, ending)| *ending == Ending::Orphan)
    }

    /// Whether nobody waits.
    pub(super) fn is_empty(&self) -> bool {
        self.by_uid.is_empty()
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
