//! What is to become of one object, by what its owners and dependents are now.
//!
//! Purpose: decisions only; they are carried out elsewhere. They follow upstream's collector
//! (`pkg/controller/garbagecollector`), but that owners are looked up where they are kept.

use std::sync::Arc;

use pintle_meta::object;
use pintle_registry::request::{DeleteOptions, Propagation};
use pintle_registry::{Object, Registry};
use pintle_value::{Str, Value};

use super::graph::{Gone, Graph, Place};
use super::kinds::Kinds;
use super::owners::{self, FOREGROUND, ORPHAN, Owner};

/// What is known when a judgement is made.
pub(super) struct Judge<'a> {
    pub(super) registry: &'a Registry,
    pub(super) kinds: &'a Kinds,
    pub(super) graph: &'a Graph,
    pub(super) gone: &'a Gone,
}

/// What is to be done.
#[derive(Default)]
pub(super) struct Judgement {
    pub(super) deeds: Vec<Deed>,
    /// Other objects whose turn it is.
    pub(super) next: Vec<Place>,
    /// The object has an owner of a kind that is not served: to be looked at again when kinds change.
    pub(super) unresolved: bool,
}

/// One write. Both kinds fail if the object is no longer what was looked at.
pub(super) enum Deed {
    Delete(Place, DeleteOptions),
    /// A merge patch.
    Patch(Place, Value),
}

impl Deed {
    pub(super) const fn place(&self) -> &Place {
        match self {
            Self::Delete(place, _) | Self::Patch(place, _) => place,
        }
    }
}

/// What an owner is to its dependent.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Standing {
    Alive,
    /// There is none of that uid.
    Absent,
    /// It is being deleted in the foreground, and waits for its dependents.
    Waiting,
    /// Its kind is not served.
    Unknown,
}

impl Judge<'_> {
    pub(super) fn look_at(&self, place: &Place) -> Judgement {
        let Some(object) = self.kept(place) else { return Judgement::default() };
        let tree = object.tree();
        if owners::ends_with(&tree, ORPHAN) {
            self.orphan(place, &tree)
        } else if owners::ends_with(&tree, FOREGROUND) {
            self.clear(place, &tree)
        } else if object::is_terminating(&tree) {
            Judgement::default()
        } else {
            self.weigh(place, &tree)
        }
    }

    /// An owner whose dependents are to stay: they lose their reference to it, then it its finalizer.
    fn orphan(&self, place: &Place, tree: &Value) -> Judgement {
        let uid = Str::from(object::uid(tree));
        let mut judgement = Judgement::default();
        for dependent in self.graph.dependents(&uid) {
            if let Some(object) = self.kept(dependent) {
                let patch = owners::without(&object.tree(), std::slice::from_ref(&uid));
                judgement.deeds.push(Deed::Patch(dependent.clone(), patch));
            }
        }
        if judgement.deeds.is_empty() {
            let patch = owners::without_finalizer(tree, ORPHAN);
            judgement.deeds.push(Deed::Patch(place.clone(), patch));
        }
        judgement
    }

    /// An owner that goes after its dependents: those that block it have their turn first.
    fn clear(&self, place: &Place, tree: &Value) -> Judgement {
        let blocking = self.blocking(object::uid(tree));
        if !blocking.is_empty() {
            return Judgement { next: blocking, ..Judgement::default() };
        }
        let patch = owners::without_finalizer(tree, FOREGROUND);
        Judgement { deeds: vec![Deed::Patch(place.clone(), patch)], ..Judgement::default() }
    }

    fn blocking(&self, uid: &str) -> Vec<Place> {
        let blocks = |place: &&Place| {
            self.kept(place).is_some_and(|object| {
                owners::owners(&object.tree()).iter().any(|o| o.uid == uid && o.blocks)
            })
        };
        self.graph.dependents(uid).filter(blocks).cloned().collect()
    }

    /// A dependent: it stays while it has an owner that stays.
    fn weigh(&self, place: &Place, tree: &Value) -> Judgement {
        let owners = owners::owners(tree);
        let mut standings = Vec::with_capacity(owners.len());
        for owner in &owners {
            match self.standing(place, owner) {
                // An owner that this object cannot have; it is nobody's to collect.
                None => return Judgement::default(),
                Some(Standing::Unknown) => {
                    return Judgement { unresolved: true, ..Judgement::default() };
                }
                Some(standing) => standings.push(standing),
            }
        }
        if owners.is_empty() {
            return Judgement::default();
        }
        let is = |standing| standings.contains(&standing);
        if !is(Standing::Alive) {
            return self.collect(place, tree, is(Standing::Waiting));
        }
        let leaving: Vec<Str> = owners
            .into_iter()
            .zip(&standings)
            .filter(|(_, standing)| **standing != Standing::Alive)
            .map(|(owner, _)| owner.uid)
            .collect();
        let mut judgement = Judgement::default();
        if !leaving.is_empty() {
            judgement.deeds.push(Deed::Patch(place.clone(), owners::without(tree, &leaving)));
        }
        judgement
    }

    /// An object without owners that stay goes: after its own dependents if an owner waits for it.
    fn collect(&self, place: &Place, tree: &Value, awaited: bool) -> Judgement {
        let mut judgement = Judgement::default();
        let uid = object::uid(tree);
        let mut dependents = self.graph.dependents(uid).peekable();
        let propagation = if awaited && dependents.peek().is_some() {
            let mut trees = dependents.filter_map(|place| self.kept(place)).map(|o| o.tree());
            if trees.any(|dependent| owners::ends_with(&dependent, FOREGROUND)) {
                // Perhaps a circle: nobody shall wait for this object, or all would for ever.
                judgement.deeds.push(Deed::Patch(place.clone(), owners::unblocking(tree)));
                return judgement;
            }
            Propagation::Foreground
        } else if object::finalizers(tree).any(|f| f == ORPHAN) {
            Propagation::Orphan
        } else if object::finalizers(tree).any(|f| f == FOREGROUND) {
            Propagation::Foreground
        } else {
            Propagation::Background
        };
        let options = DeleteOptions {
            uid: Some(uid.into()),
            resource_version: Some(object::resource_version(tree).into()),
            propagation: Some(propagation),
            ..DeleteOptions::default()
        };
        judgement.deeds.push(Deed::Delete(place.clone(), options));
        judgement
    }

    /// What an owner is to an object; `None` where it cannot be its owner: an object of the cluster has
    /// none in a namespace.
    fn standing(&self, place: &Place, owner: &Owner) -> Option<Standing> {
        if self.gone.has(&owner.uid, place) {
            return Some(Standing::Absent);
        }
        let Some(resource) = self.kinds.named(&owner.api_version, &owner.kind) else {
            return Some(Standing::Unknown);
        };
        let (namespace, _) = place.split();
        let namespace = if !resource.namespaced() {
            ""
        } else if namespace.is_empty() {
            return None;
        } else {
            namespace
        };
        let Some(object) = self.registry.peek(resource, namespace, &owner.name) else {
            return Some(Standing::Absent);
        };
        let tree = object.tree();
        Some(if object::uid(&tree) != owner.uid {
            Standing::Absent
        } else if owners::ends_with(&tree, FOREGROUND) {
            Standing::Waiting
        } else {
            Standing::Alive
        })
    }

    fn kept(&self, place: &Place) -> Option<Arc<Object>> {
        let (namespace, name) = place.split();
        self.registry.peek(self.kinds.kept_in(&place.collection)?, namespace, name)
    }
}
