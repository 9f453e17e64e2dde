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

use super::extensions::{Answers, Extensions, OwnerResource, Question};
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
    pub(super) extensions: &'a Extensions,
    /// What was answered about the owners of the object at hand.
    pub(super) answers: &'a Answers,
}

/// What is to be done.
#[derive(Default)]
pub(super) struct Judgement {
    pub(super) deed: Option<Deed>,
    /// The object has an owner of a kind that is not served: to be looked at again when kinds change.
    pub(super) unresolved: bool,
    /// An owner is there, but was not seen yet by whoever follows its collection: its end may never be told.
    pub(super) unobserved: bool,
}

/// One write, which fails if the object is no longer what was looked at; or what is to be known first.
pub(super) enum Deed {
    Delete(Place, DeleteOptions),
    /// A merge patch.
    Patch(Place, Value),
    Ask(Place, Vec<Question>),
}

impl Deed {
    pub(super) const fn place(&self) -> &Place {
        match self {
            Self::Delete(place, _) | Self::Patch(place, _) | Self::Ask(place, _) => place,
        }
    }
}

/// What an owner is to its dependent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    Alive,
    /// There is none of that uid.
    Absent,
    /// It is being deleted in the foreground, and waits for its dependents.
    Waiting,
    /// Its kind is not served.
    Unknown,
}

impl Standing {
    /// What the object under an owner's name says of the owner of that uid.
    pub(super) fn of(tree: &Value, uid: &str) -> Self {
        if object::uid(tree) != uid {
            Self::Absent
        } else if owners::ends_with(tree, FOREGROUND) {
            Self::Waiting
        } else {
            Self::Alive
        }
    }
}

/// What is known of an owner.
enum Known {
    Is(Standing),
    /// Nothing before somebody is asked.
    Open(Question),
}

impl Judgement {
    const fn of(deed: Deed) -> Self {
        Self { deed: Some(deed), unresolved: false, unobserved: false }
    }
}

impl Judge<'_> {
    /// Decides about one object. What that takes follows from the object's own owners, however many
    /// dependents it or they have.
    ///
    /// `waited` says whether it was known to wait for its dependents before the last changes were heard: only
    /// then is it certain that all of them are known.
    pub(super) fn look_at(&self, place: &Place, waited: bool) -> Result<Judgement, Unreadable> {
        let Some(tree) = self.life(place)? else { return Ok(Judgement::default()) };
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
        let mut open = Vec::new();
        for owner in &owners {
            match self.standing(place, owner)? {
                // An owner that this object cannot have; it is nobody's to collect.
                None => return Ok(Judgement::default()),
                Some(Known::Is(Standing::Unknown)) => {
                    return Ok(Judgement { unresolved: true, ..Judgement::default() });
                }
                Some(Known::Is(standing)) => standings.push(standing),
                Some(Known::Open(question)) => open.push(question),
            }
        }
        if !open.is_empty() {
            return Ok(Judgement::of(Deed::Ask(place.clone(), open)));
        }
        if owners.is_empty() {
            return Ok(Judgement::default());
        }
        let is = |standing| standings.contains(&standing);
        if !is(Standing::Alive) {
            return self.collect(place, tree, is(Standing::Waiting));
        }
        let unobserved = owners.iter().any(|owner| self.is_unobserved(place, owner));
        let leaving: Vec<Str> = owners
            .into_iter()
            .zip(&standings)
            .filter(|(_, standing)| **standing != Standing::Alive)
            .map(|(owner, _)| owner.uid)
            .collect();
        let deed = (!leaving.is_empty())
            .then(|| Deed::Patch(place.clone(), owners::without(tree, &leaving)));
        Ok(Judgement { deed, unresolved: false, unobserved })
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
            if self.extensions.resource_of(place).is_some() {
                return Ok(self
                    .life(place)?
                    .is_some_and(|tree| owners::ends_with(&tree, FOREGROUND)));
            }
            let Some(object) = self.kept(place) else { return Ok(false) };
            let says = memmem::find(object.json_bytes(), FOREGROUND.as_bytes()).is_some();
            Ok(says && owners::ends_with(&object.excerpt(LIFE)?, FOREGROUND))
        };
        places.try_fold(false, |any, place| Ok(any || waits(place)?))
    }

    /// What an owner is to an object; `None` where it cannot be its owner: an object of the cluster has
    /// none in a namespace.
    fn standing(&self, place: &Place, owner: &Owner) -> Result<Option<Known>, Unreadable> {
        if self.gone.has(&owner.uid, place) {
            return Ok(Some(Known::Is(Standing::Absent)));
        }
        if let Some(answer) = self.answers.get(owner) {
            return Ok(Some(Known::Is(*answer)));
        }
        if let Some(resource) = self.extensions.named(owner) {
            let Some(namespace) = namespace_of_owner(place, resource.namespaced) else {
                return Ok(None);
            };
            if self.extensions.was_alive(resource, namespace, owner) {
                return Ok(Some(Known::Is(Standing::Alive)));
            }
            let resource = OwnerResource::Extension(resource.clone());
            return Ok(Some(question(owner, namespace, resource)));
        }
        if self.extensions.is_silent(&owner.api_version) {
            return Ok(Some(Known::Is(Standing::Unknown)));
        }
        let Some(resource) = self.kinds.named(&owner.api_version, &owner.kind) else {
            return Ok(Some(Known::Is(Standing::Unknown)));
        };
        let Some(namespace) = namespace_of_owner(place, resource.namespaced()) else {
            return Ok(None);
        };
        if self.extensions.resource_of(place).is_some() {
            // Its server may have seen an owner that another server on the same database made, and that is
            // not to be seen here yet.
            return Ok(Some(question(owner, namespace, OwnerResource::Registry(resource.clone()))));
        }
        let object = self.registry.peek(resource, namespace, &owner.name);
        let tree = object.map(|object| object.excerpt(LIFE)).transpose()?;
        let standing = tree.map_or(Standing::Absent, |tree| Standing::of(&tree, &owner.uid));
        Ok(Some(Known::Is(standing)))
    }

    /// Whether an extension API server has an owner, as it answered, whose object it has not told of.
    fn is_unobserved(&self, place: &Place, owner: &Owner) -> bool {
        self.answers.contains_key(owner)
            && self.extensions.named(owner).is_some_and(|resource| {
                let namespace = namespace_of_owner(place, resource.namespaced).unwrap_or_default();
                !self.extensions.was_alive(resource, namespace, owner)
            })
    }

    /// What decides about an object's life; nothing where it is gone.
    fn life(&self, place: &Place) -> Result<Option<Value>, Unreadable> {
        if self.extensions.resource_of(place).is_some() {
            return Ok(self.extensions.life(place).cloned());
        }
        self.kept(place).map(|object| object.excerpt(LIFE)).transpose()
    }

    fn kept(&self, place: &Place) -> Option<Arc<Object>> {
        let (namespace, name) = place.split();
        self.registry.peek(self.kinds.kept_in(&place.collection)?, namespace, name)
    }
}

/// The namespace in which an object has an owner, `""` for one of the cluster.
fn namespace_of_owner(place: &Place, is_in_namespace: bool) -> Option<&str> {
    let (namespace, _) = place.split();
    match (is_in_namespace, namespace) {
        (false, _) => Some(""),
        (true, "") => None,
        (true, namespace) => Some(namespace),
    }
}

fn question(owner: &Owner, namespace: &str, resource: OwnerResource) -> Known {
    Known::Open(Question { owner: owner.clone(), namespace: namespace.into(), resource })
}
