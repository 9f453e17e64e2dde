//! Decides the action of the garbage collector for one object, from the present state of its owners
//! and dependents.
//!
//! The decisions are those of upstream's collector (`pkg/controller/garbagecollector`). Unlike
//! upstream's, they read owners from the registry. [`perform`](super::perform()) executes them.

use std::collections::hash_map::Entry;
use std::sync::Arc;

use pintle_meta::object;
use pintle_registry::request::{DeleteOptions, Propagation};
use pintle_registry::{Object, Registry, Unreadable};
use pintle_value::{Str, Value};

use super::extensions::{Extensions, OwnerResource, Question};
use super::graph::{AbsentOwners, Graph, ObjectKey, Waiting};
use super::kinds::Kinds;
use super::owners::{self, AllNamed, FOREGROUND, Named, ORPHAN, Owner, OwnerState, OwnerStates};
use crate::pace::Pace;

/// The data that a decision depends on.
pub(super) struct Evaluator<'a> {
    pub(super) registry: &'a Registry,
    pub(super) kinds: &'a Kinds,
    pub(super) graph: &'a Graph,
    pub(super) absent_owners: &'a AbsentOwners,
    pub(super) waiting: &'a Waiting,
    pub(super) extensions: &'a Extensions,
    /// The states of owners that other servers were asked for.
    pub(super) owner_states: &'a OwnerStates,
}

/// The result of an evaluation.
#[derive(Default)]
pub(super) struct Decision {
    pub(super) operation: Option<Operation>,
    /// The object has an owner whose kind is not served: evaluate it again when the served kinds
    /// change.
    pub(super) unresolved: bool,
    /// An owner exists, but no watch has reported it yet, so a watch may never report its deletion.
    pub(super) unobserved: bool,
}

/// A write, which fails if the object changed after the evaluation; or questions that must be
/// answered before the next evaluation.
pub(super) enum Operation {
    Delete(ObjectKey, DeleteOptions),
    /// A merge patch.
    Patch(ObjectKey, Value),
    Ask(ObjectKey, Vec<Question>),
}

impl Operation {
    pub(super) const fn key(&self) -> &ObjectKey {
        match self {
            Self::Delete(key, _) | Self::Patch(key, _) | Self::Ask(key, _) => key,
        }
    }
}

/// The state of an owner, or the question that must be answered first.
enum Known {
    Is(OwnerState),
    /// Unknown until the question is answered.
    Open(Question),
}

impl Decision {
    const fn of(operation: Operation) -> Self {
        Self { operation: Some(operation), unresolved: false, unobserved: false }
    }

    /// Whether nothing is to be done until something changes.
    pub(super) const fn is_nothing(&self) -> bool {
        self.operation.is_none() && !self.unresolved && !self.unobserved
    }
}

impl Evaluator<'_> {
    /// Decides about one object. The cost depends on the number of its owners, not of its
    /// dependents.
    ///
    /// `waited` is true if the object was known to wait for its dependents before the last changes
    /// were observed: only then are all of its dependents known.
    pub(super) async fn evaluate(
        &self,
        key: &ObjectKey,
        waited: bool,
    ) -> Result<Decision, Unreadable> {
        match self.lifecycle(key)? {
            Some(tree) => self.decide(key, &tree, waited).await,
            None => Ok(Decision::default()),
        }
    }

    /// Decides about an object by the members on which decisions depend.
    pub(super) async fn decide(
        &self,
        key: &ObjectKey,
        tree: &Value,
        waited: bool,
    ) -> Result<Decision, Unreadable> {
        Ok(if let Some(patch) = self.orphan_patch(key, tree) {
            Decision::of(Operation::Patch(key.clone(), patch))
        } else if owners::is_finalizing(tree, ORPHAN) && waited {
            self.release(key, tree, ORPHAN, self.graph.dependents(object::uid(tree)))
        } else if owners::is_finalizing(tree, FOREGROUND) && waited {
            self.release(key, tree, FOREGROUND, self.graph.blocking(object::uid(tree)))
        } else if object::is_terminating(tree) {
            Decision::default()
        } else {
            self.decide_dependent(key, tree).await?
        })
    }

    /// Returns a patch that removes the references to owners that are deleted with the propagation
    /// `Orphan`.
    fn orphan_patch(&self, key: &ObjectKey, tree: &Value) -> Option<Value> {
        let owners = self.graph.owners(key).iter();
        let orphaning: Vec<Str> =
            owners.filter(|o| self.waiting.orphans(&o.uid)).map(|o| o.uid.clone()).collect();
        (!orphaning.is_empty()).then(|| owners::without(tree, &orphaning))
    }

    /// Removes an owner's finalizer once it waits for no dependent. The dependents are evaluated
    /// separately: when the owner begins to wait, and when they change.
    fn release<'p>(
        &self,
        key: &ObjectKey,
        tree: &Value,
        finalizer: &str,
        awaited: impl ExactSizeIterator<Item = &'p ObjectKey>,
    ) -> Decision {
        if awaited.len() > 0 {
            return Decision::default();
        }
        Decision::of(Operation::Patch(key.clone(), owners::without_finalizer(tree, finalizer)))
    }

    /// Decides about a dependent: it remains while one of its owners remains.
    ///
    /// It yields between owners. What changes meanwhile is observed later, and then the object is
    /// evaluated again.
    async fn decide_dependent(
        &self,
        key: &ObjectKey,
        tree: &Value,
    ) -> Result<Decision, Unreadable> {
        let owners = owners::owners(tree);
        let mut owner_states = Vec::with_capacity(owners.len());
        let (mut open, mut named, mut pace) = (Vec::new(), AllNamed::new(), Pace::default());
        for owner in &owners {
            match self.owner_state(key, owner, &mut named, &mut pace).await? {
                // The object cannot have such an owner; upstream does not collect it, either.
                None => return Ok(Decision::default()),
                Some(Known::Is(OwnerState::Unknown)) => {
                    return Ok(Decision { unresolved: true, ..Decision::default() });
                }
                Some(Known::Is(owner_state)) => owner_states.push(owner_state),
                Some(Known::Open(question)) => open.push(question),
            }
        }
        if !open.is_empty() {
            return Ok(Decision::of(Operation::Ask(key.clone(), open)));
        }
        if owners.is_empty() {
            return Ok(Decision::default());
        }
        let is = |owner_state| owner_states.contains(&owner_state);
        if !is(OwnerState::Alive) {
            return self.collect(key, tree, is(OwnerState::Waiting)).await;
        }
        let unobserved = owners.iter().any(|owner| self.is_unobserved(key, owner));
        let removed: Vec<Str> = owners
            .into_iter()
            .zip(&owner_states)
            .filter(|(_, owner_state)| **owner_state != OwnerState::Alive)
            .map(|(owner, _)| owner.uid)
            .collect();
        let operation = (!removed.is_empty())
            .then(|| Operation::Patch(key.clone(), owners::without(tree, &removed)));
        Ok(Decision { operation, unresolved: false, unobserved })
    }

    /// Deletes an object without remaining owners; in the foreground if an owner waits for it and
    /// it has dependents of its own.
    async fn collect(
        &self,
        key: &ObjectKey,
        tree: &Value,
        awaited: bool,
    ) -> Result<Decision, Unreadable> {
        let uid = object::uid(tree);
        let propagation = if awaited && self.graph.dependents(uid).len() > 0 {
            if self.any_in_foreground(self.graph.dependents(uid)).await? {
                // The owners may form a cycle, in which each would wait for ever. So no owner waits
                // for this object.
                let patch = owners::unblocking(tree);
                return Ok(Decision::of(Operation::Patch(key.clone(), patch)));
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
        Ok(Decision::of(Operation::Delete(key.clone(), options)))
    }

    /// Whether one of these objects waits for its own dependents. Like owners, they are read from
    /// the registry: the collector may not have observed yet that one began to wait.
    async fn any_in_foreground<'p>(
        &self,
        keys: impl Iterator<Item = &'p ObjectKey> + Send,
    ) -> Result<bool, Unreadable> {
        let mut pace = Pace::default();
        for key in keys {
            let waits = if self.extensions.resource_of(key).is_some() {
                let tree = self.extensions.lifecycle(key);
                tree.is_some_and(|tree| owners::is_finalizing(tree, FOREGROUND))
            } else if let Some(object) = self.stored(key) {
                pace.step(object.size()).await;
                owners::is_in(object.abridged(), FOREGROUND)
                    && owners::is_finalizing(&owners::owner_lifecycle(&object)?, FOREGROUND)
            } else {
                false
            };
            if waits {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The state of an owner; `None` if the object cannot have it: a cluster-scoped object cannot
    /// have a namespaced owner.
    async fn owner_state<'o>(
        &self,
        key: &ObjectKey,
        owner: &'o Owner,
        named: &mut AllNamed<'o>,
        pace: &mut Pace,
    ) -> Result<Option<Known>, Unreadable> {
        pace.step(0).await;
        if self.absent_owners.has(&owner.uid, key) {
            return Ok(Some(Known::Is(OwnerState::Absent)));
        }
        if let Some(state) = self.owner_states.get(owner) {
            return Ok(Some(Known::Is(*state)));
        }
        if let Some(resource) = self.extensions.named(owner) {
            let Some(namespace) = namespace_of_owner(key, resource.namespaced) else {
                return Ok(None);
            };
            if self.extensions.was_alive(resource, namespace, owner) {
                return Ok(Some(Known::Is(OwnerState::Alive)));
            }
            let resource = OwnerResource::Extension(resource.clone());
            return Ok(Some(question(owner, namespace, resource)));
        }
        if self.extensions.is_silent(&owner.api_version) {
            return Ok(Some(Known::Is(OwnerState::Unknown)));
        }
        let Some(resource) = self.kinds.named(&owner.api_version, &owner.kind) else {
            return Ok(Some(Known::Is(OwnerState::Unknown)));
        };
        let Some(namespace) = namespace_of_owner(key, resource.namespaced()) else {
            return Ok(None);
        };
        if self.extensions.resource_of(key).is_some() {
            // The object's server may have seen an owner that another server created in the shared
            // database and that this server has not read yet.
            return Ok(Some(question(owner, namespace, OwnerResource::Registry(resource.clone()))));
        }
        let named = match named.entry(owner.named()) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(unknown) => {
                let object = self.registry.peek(resource, namespace, &owner.name);
                pace.step(object.as_ref().map_or(0, |object| object.size())).await;
                unknown.insert(object.as_deref().map(Named::read).transpose()?)
            }
        };
        Ok(Some(Known::Is(Named::state(named.as_ref(), &owner.uid))))
    }

    /// Whether an extension API server confirmed an owner that no watch has reported.
    fn is_unobserved(&self, key: &ObjectKey, owner: &Owner) -> bool {
        self.owner_states.contains_key(owner)
            && self.extensions.named(owner).is_some_and(|resource| {
                let namespace = namespace_of_owner(key, resource.namespaced).unwrap_or_default();
                !self.extensions.was_alive(resource, namespace, owner)
            })
    }

    /// The members on which decisions depend; `None` if the object does not exist.
    fn lifecycle(&self, key: &ObjectKey) -> Result<Option<Value>, Unreadable> {
        if self.extensions.resource_of(key).is_some() {
            return Ok(self.extensions.lifecycle(key).cloned());
        }
        self.stored(key).as_deref().map(owners::lifecycle).transpose()
    }

    fn stored(&self, key: &ObjectKey) -> Option<Arc<Object>> {
        let (namespace, name) = key.split();
        self.registry.peek(self.kinds.of_collection(&key.collection)?, namespace, name)
    }
}

/// The namespace of an object's owner, `""` for a cluster-scoped owner; `None` if the object cannot
/// have such an owner.
fn namespace_of_owner(key: &ObjectKey, is_in_namespace: bool) -> Option<&str> {
    let (namespace, _) = key.split();
    match (is_in_namespace, namespace) {
        (false, _) => Some(""),
        (true, "") => None,
        (true, namespace) => Some(namespace),
    }
}

fn question(owner: &Owner, namespace: &str, resource: OwnerResource) -> Known {
    Known::Open(Question { owner: owner.clone(), namespace: namespace.into(), resource })
}
