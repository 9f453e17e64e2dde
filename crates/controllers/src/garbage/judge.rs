//! What is to become of one object, by what its owners and dependents are now.
//!
//! Purpose: decisions only; they are carried out elsewhere. They follow upstream's collector
//! (`pkg/controller/garbagecollector`), but that owners are looked up where they are kept.

use std::sync::Arc;

use memchr::memmem;
use pintle_meta::object;
use pintle_registry::request::{DeleteOptions, Propagation};
use pintle_registry::{Object, Registry, Unreadable};
use pintle_value::{Str, Value};

use super::graph::{Gone, Graph, Place, Waiting};
use super::kinds::Kinds;
use super::owners::{self, FOREGROUND, LIFE, ORPHAN, Owner};

/// What is known when a judgement is made.
pub(super) struct Judge<'a> {
    pub(super) registry: &'a Registry,
    pub(super) kinds: &'a Kinds,
    pub(super) graph: &'a Graph,
    pub(super) gone: &'a Gone,
    pub(super) waiting: &'a Waiting,
}

/// What is to be done.
#[derive(Default)]
pub(super) struct Judgement {
    pub(super) deed: Option<Deed>,
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

impl Judgement {
    const fn of(deed: Deed) -> Self {
        Self { deed: Some(deed), unresolved: false }
    }
}

impl Judge<'_> {
    /// Decides about one object. What that takes follows from the object's own owners, however many
    /// dependents it or they have.
    ///
    /// `waited` says whether it was known to wait for its dependents before the last changes were heard: only
    /// then is it certain that all of them are known.
    pub(super) fn look_at(&self, place: &Place, waited: bool) -> Result<Judgement, Unreadable> {
        let Some(object) = self.kept(place) else { return Ok(Judgement::default()) };
        let tree = object.excerpt(LIFE)?;
        Ok(if let Some(patch) = self.forgetting(place, &tree) {
            Judgement::of(Deed::Patch(place.clone(), patch))
        } else if owners::ends_with(&tree, ORPHAN) && waited {
            self.release(place, &tree, ORPHAN, self.graph.dependents(object::uid(&tree)))
        } else if owners::ends_with(&tree, FOREGROUND) && waited {
            self.release(place, &tree, FOREGROUND, self.graph.blocking(object::uid(&tree)))
        } else if object::is_terminating(&tree) {
            Judgement::default()
        } else {
            self.weigh(place, &tree)?
        })
    }

    /// What takes the references to those owners away whose dependents are to stay.
    fn forgetting(&self, place: &Place, tree: &Value) -> Option<Value> {
        let owners = self.graph.owners(place).iter();
        let leaving: Vec<Str> =
            owners.filter(|o| self.waiting.orphans(&o.uid)).map(|o| o.uid.clone()).collect();
        (!leaving.is_empty()).then(|| owners::without(tree, &leaving))
    }

    /// An owner loses the finalizer with which it waits when there is nobody left to wait for. Each of those
    /// has its own turn: when the owner begins to wait, and when something changes about them.
    fn release<'p>(
        &self,
        place: &Place,
        tree: &Value,
        finalizer: &str,
        awaited: impl ExactSizeIterator<Item = &'p Place>,
    ) -> Judgement {
        if awaited.len() > 0 {
            return Judgement::default();
        }
        Judgement::of(Deed::Patch(place.clone(), owners::without_finalizer(tree, finalizer)))
    }

    /// A dependent: it stays while it has an owner that stays.
    fn weigh(&self, place: &Place, tree: &Value) -> Result<Judgement, Unreadable> {
        let owners = owners::owners(tree);
        let mut standings = Vec::with_capacity(owners.len());
        for owner in &owners {
            match self.standing(place, owner)? {
                // An owner that this object cannot have; it is nobody's to collect.
                None => return Ok(Judgement::default()),
                Some(Standing::Unknown) => {
                    return Ok(Judgement { unresolved: true, deed: None });
                }
                Some(standing) => standings.push(standing),
            }
        }
        if owners.is_empty() {
            return Ok(Judgement::default());
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
        if leaving.is_empty() {
            return Ok(Judgement::default());
        }
        Ok(Judgement::of(Deed::Patch(place.clone(), owners::without(tree, &leaving))))
    }

    /// An object without owners that stay goes: after its own dependents if an owner waits for it.
    fn collect(&self, place: &Place, tree: &Value, awaited: bool) -> Result<Judgement, Unreadable> {
        let uid = object::uid(tree);
        let propagation = if awaited && self.graph.dependents(uid).len() > 0 {
            if self.any_in_foreground(self.graph.dependents(uid))? {
                // Perhaps a circle: nobody shall wait for this object, or all would for ever.
                let patch = owners::unblocking(tree);
                return Ok(Judgement::of(Deed::Patch(place.clone(), patch)));
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
        Ok(Judgement::of(Deed::Delete(place.clone(), options)))
    }

    /// Whether one of these objects waits for its own dependents to go. Owners are looked up as they are now,
    /// so these are too: one that began to wait is not heard of yet.
    fn any_in_foreground<'p>(
        &self,
        mut places: impl Iterator<Item = &'p Place>,
    ) -> Result<bool, Unreadable> {
        let waits = |place: &Place| {
            let Some(object) = self.kept(place) else { return Ok(false) };
            let says = memmem::find(object.json_bytes(), FOREGROUND.as_bytes()).is_some();
            Ok(says && owners::ends_with(&object.excerpt(LIFE)?, FOREGROUND))
        };
        places.try_fold(false, |any, place| Ok(any || waits(place)?))
    }

    /// What an owner is to an object; `None` where it cannot be its owner: an object of the cluster has
    /// none in a namespace.
    fn standing(&self, place: &Place, owner: &Owner) -> Result<Option<Standing>, Unreadable> {
        if self.gone.has(&owner.uid, place) {
            return Ok(Some(Standing::Absent));
        }
        let Some(resource) = self.kinds.named(&owner.api_version, &owner.kind) else {
            return Ok(Some(Standing::Unknown));
        };
        let (namespace, _) = place.split();
        let namespace = if !resource.namespaced() {
            ""
        } else if namespace.is_empty() {
            return Ok(None);
        } else {
            namespace
        };
        let Some(object) = self.registry.peek(resource, namespace, &owner.name) else {
            return Ok(Some(Standing::Absent));
        };
        let tree = object.excerpt(LIFE)?;
        Ok(Some(if object::uid(&tree) != owner.uid {
            Standing::Absent
        } else if owners::ends_with(&tree, FOREGROUND) {
            Standing::Waiting
        } else {
            Standing::Alive
        }))
    }

    fn kept(&self, place: &Place) -> Option<Arc<Object>> {
        let (namespace, name) = place.split();
        self.registry.peek(self.kinds.kept_in(&place.collection)?, namespace, name)
    }
}
