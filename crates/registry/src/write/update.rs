//! PUT and everything that ends in one: an object that is there gets a new state.

use std::sync::Arc;

use pintle_apply::server_side;
use pintle_meta::{Status, field, object};
use pintle_store::{Expect, Kind, Revision};
use pintle_value::{Path, Value};

use super::commit::Committed;
use super::{Draft, Write, metadata, ownership};
use crate::admission::Operation;
use crate::answer::{Answer, Outcome};
use crate::definition::{ETCD_PREFIX, Members, SubresourceBehaviour};
use crate::request::{Body, Target};
use crate::{Generation, Object, Owned, revision, work};

/// How often a change that names no revision is tried again when others write in between. Each failure
/// means that some other write went through, so progress is made; the bound only stops the absurd.
pub(super) const ATTEMPTS_MAX: usize = 100;

/// What an attempt came to.
pub(super) enum Attempt {
    /// The answer.
    Done(Outcome),
    /// Someone else wrote in between.
    Raced,
}

impl Write<'_> {
    /// PUT to an object or to one of its parts.
    pub(crate) async fn update(&self, body: &Body) -> Result<Outcome, Status> {
        if let Some(paths) = super::scale_paths(self.target) {
            return self.update_scale(body, paths).await;
        }
        work::ahead(self.target.resource.work(body.bytes.len())).await;
        let mut draft = self.decode(body)?;
        self.record(&draft.tree);
        self.set_namespace(&mut draft.tree)?;
        self.check_name(&draft.tree)?;
        let create =
            self.target.resource.strategy.create_on_update() && self.target.subresource.is_empty();
        let mut queued = None;
        for _ in 0..ATTEMPTS_MAX {
            let Some(existing) = self.existing() else {
                if create {
                    // Who knows its uid means an object that was there: it does not come back.
                    self.check_uid(&draft.tree, &Value::Null)?;
                    self.may_create.ask().await?;
                    return self.create_draft(draft).await;
                }
                return Err(self.not_found());
            };
            match self.replace(&existing, draft.clone()).await? {
                Attempt::Done(outcome) => return Ok(outcome),
                Attempt::Raced if object::resource_version(&draft.tree).is_empty() => {
                    queued = self.registry.queue_retry(self.target, queued).await?;
                }
                Attempt::Raced => return Err(self.stale()),
            }
        }
        Err(self.stale())
    }

    /// The object that the URL names, as it is now.
    pub(super) fn existing(&self) -> Option<Arc<Object>> {
        let target = self.target;
        self.registry.peek(&target.resource, &target.namespace, &target.name)
    }

    pub(super) fn not_found(&self) -> Status {
        Status::not_found(&self.target.resource.group_resource(), &self.target.name)
    }

    pub(super) fn stale(&self) -> Status {
        Status::stale(&self.target.resource.group_resource(), &self.target.name)
    }

    /// One attempt to replace `existing` by what a client sent, in the version that it sent.
    pub(super) async fn replace(
        &self,
        existing: &Arc<Object>,
        draft: Draft,
    ) -> Result<Attempt, Status> {
        let Draft { tree: mut new, tracked, whole } = draft;
        let warnings = &self.context.warnings;
        let resource = &self.target.resource;
        work::ahead(resource.work(existing.size())).await;
        let old = resource.current(existing).await?;
        if whole {
            self.check_uid(&new, &old)?;
        }
        self.check_version(&new, existing.revision)?;
        self.store_form(&mut new, tracked);
        let part = self.target.subresource.as_str();
        // Upstream's managers own what they meant to change of a part, whether the part has it or not.
        let late = !tracked && self.is_part();
        if !late {
            new = self.confine(new, &old);
        }
        metadata::carry_over(&mut new, &old);
        // It is upstream's storage that forgets it, and a dry run ends before.
        if !self.options.dry_run {
            object::metadata_mut(&mut new).remove("selfLink");
        }
        warnings.extend(metadata::unite_owners(&mut new));
        let name = &self.target.name;
        // What admission makes of an object belongs to nobody.
        if !tracked {
            self.track(Some(&old), &mut new).await;
            if late {
                new = self.confine(new, &old);
            }
        }
        self.change(Operation::Update, name, &mut new, Some(&old)).await?;
        if part.is_empty() {
            self.assign(&mut new, Some(&old))?;
            resource.strategy.prepare_update(&mut new, &old);
        } else {
            resource.strategy.prepare_part(&mut new, &old, part);
        }
        resource.strategy.note_time(&mut new, Some(&old), self.context.now);
        self.grow_generation(&mut new, &old);
        self.validate(&new, Some(&old))?;
        warnings.extend(if part.is_empty() {
            resource.strategy.warnings(&new, Some(&old))
        } else {
            resource.strategy.part_warnings(&new, &old, part)
        });
        self.call_validating(Operation::Update, name, &new, Some(&old)).await?;
        pintle_schema::forget_empty(&resource.schema, resource.stored_type(), &mut new);
        self.settle(existing, &old, new).await
    }

    /// Grows the generation where the object becomes another. Empty lists that will not be kept are no change, but
    /// for some kinds.
    fn grow_generation(&self, new: &mut Value, old: &Value) {
        let resource = &self.target.resource;
        let generation = resource.strategy.generation();
        let generation =
            if self.target.subresource.is_empty() { generation } else { generation.of_part() };
        let without_empty = match generation {
            Generation::None | Generation::SpecAsSent => None,
            _ => pintle_schema::without_distinct(&resource.schema, resource.stored_type(), new),
        };
        if metadata::is_new_generation(without_empty.as_ref().unwrap_or(new), old, generation) {
            metadata::bump_generation(new);
        }
    }

    /// Commits the new state: as nothing if nothing changed, as a deletion if that was all that a
    /// deletion waited for.
    async fn settle(
        &self,
        existing: &Arc<Object>,
        old: &Value,
        new: Value,
    ) -> Result<Attempt, Status> {
        let resource = &self.target.resource;
        let goes = metadata::may_go(&new, old) && !resource.strategy.held(&new);
        let mut new = new;
        if !goes && self.is_stored(existing, old, &new).await? {
            if self.is_current().await? {
                return Ok(Attempt::Done(Outcome::ok(Answer::Object(existing.clone()))));
            }
            new = old.clone();
        }
        let operation = if goes { Operation::Delete } else { Operation::Update };
        let (name, left) = (self.target.name.as_str(), (!goes).then_some(&new));
        let charges = self.admission_companions(operation, name, left, Some(old))?;
        if self.options.dry_run {
            self.registry.rehearse(&charges)?;
            let answer = self.uncommitted(resource.read_back(new).await?);
            return Ok(Attempt::Done(Outcome::ok(answer)));
        }
        // What goes is told as it was stored; the client is told what it made of it.
        let (kind, state) = if goes { (Kind::Deleted, old) } else { (Kind::Updated, &new) };
        let mut companions =
            self.registry.companions(resource, Some(old), left, self.context.now)?;
        companions.extend(charges);
        let state = resource.to_storage(state).await?;
        let expect = Expect::At(existing.revision);
        Ok(match self.commit(&self.target.name, &state, expect, kind, companions).await? {
            Committed::Done(_) if goes => Attempt::Done(Outcome::committed(self.uncommitted(new))),
            Committed::Done(object) => {
                if let Some(observer) = &resource.observer {
                    observer.updated(old, &new);
                }
                Attempt::Done(Outcome::committed(Answer::Object(object)))
            }
            Committed::Conflict | Committed::CompanionConflict => Attempt::Raced,
        })
    }

    /// Whether the new state equals the stored one.
    async fn is_stored(&self, existing: &Object, old: &Value, new: &Value) -> Result<bool, Status> {
        if !server_side::same_but_for_times(new, old) {
            return Ok(false);
        }
        let resource = &self.target.resource;
        if resource.converter().is_none() || existing.is_view_of(resource.number) {
            return Ok(true);
        }
        // A write of an unchanged object brings its stored form up to date with the definition.
        Ok(server_side::same_but_for_times(&*resource.to_storage(new).await?, &existing.tree()?))
    }

    /// Whether what is kept has the form in which it would be written. Writing what was read brings it up to
    /// date: so storage is migrated (upstream: `GuaranteedUpdate` compares the bytes).
    async fn is_current(&self) -> Result<bool, Status> {
        let Target { resource, namespace, name, .. } = self.target;
        let key = resource.key(namespace, name)?;
        self.registry.store.is_current(&key).await.map_err(Status::internal)
    }

    /// The resource version that a client sent must be the stored one; whether it must send one is the
    /// kind's choice (UPD-01, UPD-04).
    fn check_version(&self, new: &Value, current: Revision) -> Result<(), Status> {
        let resource = &self.target.resource;
        match revision::parse(object::resource_version(new))? {
            Some(said) if said == current => Ok(()),
            None | Some(Revision(0)) if resource.strategy.unconditional_update() => Ok(()),
            None | Some(Revision(0)) => {
                let path = Path::new("metadata").field("resourceVersion");
                let why = "must be specified for an update";
                let error = field::Error::invalid(&path, &Value::Int(0), why);
                let kind = pintle_meta::GroupKind::new(
                    resource.resource.group.clone(),
                    resource.resource.resource.clone(),
                );
                Err(Status::invalid(&kind, &self.target.name, &[error]))
            }
            Some(_) => Err(self.stale()),
        }
    }

    /// A uid that a client sent must be the stored one, so that nothing is made anew where an object
    /// has gone (STRAT-07).
    fn check_uid(&self, new: &Value, old: &Value) -> Result<(), Status> {
        let (said, stored) = (object::uid(new), object::uid(old));
        if said.is_empty() || said == stored {
            return Ok(());
        }
        let Target { resource, namespace, name, .. } = self.target;
        let key = resource.etcd_key(namespace, name);
        // Upstream's dry run asks above the part of its storage that puts the prefix before keys.
        let prefix = if self.options.dry_run { ETCD_PREFIX } else { "" };
        let key = key.strip_prefix(prefix).unwrap_or(&key);
        let facts = ("UID", said, stored);
        Err(Status::failed_precondition(&resource.group_resource(), name, key, facts))
    }

    /// Whether the target is a part of an object that has members of its own.
    fn is_part(&self) -> bool {
        let part = self.target.resource.subresource(&self.target.subresource);
        matches!(part.map(|part| &part.behaviour), Some(SubresourceBehaviour::Part(_)))
    }

    /// Lets through only what the target may change: on the resource itself everything but the reset
    /// members, on a part only that part and metadata.
    pub(super) fn confine(&self, mut new: Value, old: &Value) -> Value {
        let resource = &self.target.resource;
        let part = resource.subresource(&self.target.subresource);
        match part.map(|part| &part.behaviour) {
            Some(SubresourceBehaviour::Part(members)) => {
                let mut confined = old.clone();
                copy_members(&mut confined, &new, members);
                if let Some(metadata) = new.get_mut("metadata") {
                    confined.make_object().insert("metadata", std::mem::take(metadata));
                }
                if let Owned::Except(members) = resource.strategy.owned(&self.target.subresource) {
                    reset_metadata(&mut confined, old, members);
                }
                confined
            }
            Some(SubresourceBehaviour::Finalize) => {
                let mut confined = old.clone();
                copy_members(&mut confined, &new, &[&["spec", "finalizers"]]);
                confined
            }
            _ => {
                copy_members(&mut new, old, resource.strategy.reset_fields());
                new
            }
        }
    }
}

/// Resets what of metadata the writers of a part cannot set. Who owns what is not among it.
fn reset_metadata(to: &mut Value, from: &Value, unowned: Members) {
    for path in unowned.iter().filter(|path| path.first() == Some(&"metadata")) {
        let mut managers = Value::object();
        ownership::move_managers(to, &mut managers);
        copy_members(to, from, &[path]);
        ownership::move_managers(&mut managers, to);
    }
}

/// Makes the members of `to` what they are in `from`, absence included.
pub(super) fn copy_members(to: &mut Value, from: &Value, members: &[&[&str]]) {
    for path in members {
        let Some((last, parents)) = path.split_last() else { continue };
        match from.at(path).cloned() {
            Some(value) => {
                let parent =
                    parents.iter().fold(to.make_object(), |map, key| map.entry_object(key));
                parent.insert(*last, value);
            }
            None => {
                let parent = parents.iter().try_fold(&mut *to, |node, key| node.get_mut(key));
                if let Some(map) = parent.and_then(Value::as_object_mut) {
                    map.remove(last);
                }
            }
        }
    }
}
