//! PUT, and the part of all updates that replaces an existing object.

use std::sync::Arc;
use std::time::Instant;

use pintle_apply::server_side;
use pintle_meta::{Status, field, object};
use pintle_store::{Expect, Kind, Revision};
use pintle_trace::Layer;
use pintle_value::{Map, Path, Value};

use super::commit::Committed;
use super::contention::ATTEMPTS_MAX;
use super::{Draft, Write, metadata, ownership};
use crate::admission::Operation;
use crate::definition::{ETCD_PREFIX, Members, SubresourceBehaviour};
use crate::request::{Body, Target};
use crate::results::{Outcome, ResponseBody};
use crate::{Generation, Object, revision, work};

/// The result of an attempt.
pub(super) enum Attempt {
    /// The result.
    Done(Outcome),
    /// Another writer changed the object.
    Conflict,
    /// Another object took a value that was assigned to this one, or another companion changed.
    CompanionConflict,
}

impl Write<'_> {
    /// Handles PUT of an object or of a subresource.
    pub(crate) async fn update(&self, body: &Body) -> Result<Outcome, Status> {
        if let Some(paths) = super::scale_paths(self.target) {
            return self.update_scale(body, paths).await;
        }
        work::ahead(self.target.resource.work(body.bytes.len())).await;
        let mut draft = self.decode_named(body)?;
        let is_conditional = !object::resource_version(&draft.tree).is_empty();
        let create = self.target.resource.strategy.create_on_update();
        let mut queued = None;
        for _ in 0..ATTEMPTS_MAX {
            let Some(existing) = self.existing() else {
                if create {
                    // A uid in the body names a deleted object, which an update must not create
                    // again.
                    self.check_uid(&draft.tree, &Value::Null)?;
                    self.may_create.ask().await?;
                    return self.create_draft(draft).await;
                }
                return Err(self.not_found());
            };
            let old = self.load(&existing).await?;
            match self.replace(&existing, old, draft).await? {
                Attempt::Done(outcome) => return Ok(outcome),
                Attempt::Conflict if is_conditional => return Err(self.stale()),
                Attempt::Conflict | Attempt::CompanionConflict => {
                    queued = self.registry.queue_retry(self.target, queued).await?;
                    // Few writes conflict: a copy of each object would cost more.
                    work::ahead(self.target.resource.work(body.bytes.len())).await;
                    draft = self.decode_named(body)?;
                }
            }
        }
        Err(self.stale())
    }

    /// Decodes a body with the object that the URL names.
    fn decode_named(&self, body: &Body) -> Result<Draft, Status> {
        let mut draft = self.decode(body)?;
        self.audit_object(&draft.tree);
        self.set_namespace(&mut draft.tree)?;
        self.check_name(&draft.tree)?;
        Ok(draft)
    }

    /// Returns the cached object that the URL names.
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

    /// Decodes an object that the write changes.
    pub(super) async fn load(&self, existing: &Object) -> Result<Value, Status> {
        let resource = &self.target.resource;
        work::ahead(resource.work(existing.size())).await;
        let began = Instant::now();
        let old = resource.current(existing).await?;
        self.context.timing.spent(Layer::Loading, began);
        Ok(old)
    }

    /// Tries once to replace `existing`, whose tree is `old`, with the client's object, which is in
    /// the request's version.
    pub(super) async fn replace(
        &self,
        existing: &Arc<Object>,
        old: Value,
        draft: Draft,
    ) -> Result<Attempt, Status> {
        let Draft { tree: mut new, tracked, is_body } = draft;
        let warnings = &self.context.warnings;
        let resource = &self.target.resource;
        if is_body {
            self.check_uid(&new, &old)?;
        }
        self.check_version(&new, existing.revision)?;
        self.store_form(&mut new, tracked);
        let part = self.target.subresource.as_str();
        // Upstream makes the writer of a subresource the owner of all fields that it sent changed,
        // even of fields outside the subresource, which are reset only afterwards.
        let confined_late = !tracked && self.is_part();
        if !confined_late {
            new = self.confine(new, &old);
        }
        metadata::keep_immutable(&mut new, &old);
        // Upstream's storage removes `selfLink`, and a dry run does not reach the storage.
        if !self.options.dry_run {
            object::metadata_mut(&mut new).remove("selfLink");
        }
        warnings.extend(metadata::deduplicate_owners(&mut new, is_body));
        let name = &self.target.name;
        // Fields that admission sets have no owner.
        if !tracked {
            self.track(Some(&old), &mut new).await;
            if confined_late {
                new = self.confine(new, &old);
            }
        }
        self.mutate(Operation::Update, name, &mut new, Some(&old)).await?;
        if part.is_empty() {
            self.assign(&mut new, Some(&old))?;
            resource.strategy.prepare_update(&mut new, &old);
        } else {
            resource.strategy.prepare_part(&mut new, &old, part);
        }
        resource.strategy.set_timestamps(&mut new, Some(&old), self.context.now);
        self.update_generation(&mut new, &old);
        self.validate(&new, Some(&old))?;
        warnings.extend(if part.is_empty() {
            resource.strategy.warnings(&new, Some(&old))
        } else {
            resource.strategy.part_warnings(&new, &old, part)
        });
        self.call_validating(Operation::Update, name, &new, Some(&old)).await?;
        pintle_schema::drop_empty(&resource.schema, resource.stored_type(), &mut new);
        self.commit_update(existing, &old, new).await
    }

    /// Increments the generation if the object changed. In most built-in kinds an empty list equals
    /// an absent one.
    fn update_generation(&self, new: &mut Value, old: &Value) {
        let resource = &self.target.resource;
        let generation = resource.strategy.generation();
        let generation =
            if self.target.subresource.is_empty() { generation } else { generation.of_part() };
        let is_exact = resource.is_custom() || generation == Generation::SpecAsSent;
        let same = |new: Option<&Value>, old: Option<&Value>| {
            if is_exact { new == old } else { object::same(new, old) }
        };
        if metadata::is_new_generation(new, old, generation, same) {
            metadata::bump_generation(new);
        }
    }

    /// Commits the new state: not at all if nothing changed, as a deletion if the update removed
    /// the last finalizer of a deleted object.
    async fn commit_update(
        &self,
        existing: &Arc<Object>,
        old: &Value,
        new: Value,
    ) -> Result<Attempt, Status> {
        let resource = &self.target.resource;
        let is_removed = metadata::may_remove(&new, old) && !resource.strategy.blocks_removal(&new);
        let mut new = new;
        if !is_removed && self.is_stored(existing, old, &new).await? {
            if self.is_current().await? {
                return Ok(Attempt::Done(Outcome::ok(ResponseBody::Object(existing.clone()))));
            }
            new = old.clone();
        }
        let operation = if is_removed { Operation::Delete } else { Operation::Update };
        let (name, remaining) = (self.target.name.as_str(), (!is_removed).then_some(&new));
        let charges = self.admission_companions(operation, name, remaining, Some(old))?;
        if self.options.dry_run {
            self.registry.dry_run_postings(&charges)?;
            let body = self.uncommitted(resource.read_back(new).await?);
            return Ok(Attempt::Done(Outcome::ok(body)));
        }
        // The DELETED event shows the object as it was stored; the client gets its own update.
        let (kind, state) = if is_removed { (Kind::Deleted, old) } else { (Kind::Updated, &new) };
        let mut companions =
            self.registry.companions(resource, Some(old), remaining, self.context.now)?;
        companions.extend(charges);
        let state = resource.to_storage(state).await?;
        let expect = Expect::At(existing.revision);
        Ok(match self.commit(&self.target.name, &state, expect, kind, companions).await? {
            Committed::Done(_) if is_removed => {
                Attempt::Done(Outcome::committed(self.uncommitted(new)))
            }
            Committed::Done(object) => {
                if let Some(observer) = &resource.observer {
                    observer.updated(old, &new);
                }
                Attempt::Done(Outcome::committed(ResponseBody::Object(object)))
            }
            Committed::Conflict => Attempt::Conflict,
            Committed::CompanionConflict => Attempt::CompanionConflict,
        })
    }

    /// Whether the new state equals the stored one, except for the times in `managedFields`.
    async fn is_stored(&self, existing: &Object, old: &Value, new: &Value) -> Result<bool, Status> {
        if !server_side::same_but_for_times(new, old) {
            return Ok(false);
        }
        let resource = &self.target.resource;
        let Some(converter) = resource.converter() else { return Ok(true) };
        if converter.writes_own_form() && existing.is_view_of(resource.number) {
            return Ok(true);
        }
        // An update without a change still rewrites the object in the definition's current stored
        // form.
        Ok(server_side::same_but_for_times(&*resource.to_storage(new).await?, &existing.tree()?))
    }

    /// Whether the stored bytes have the form in which this release would write them. If not, an
    /// update without a change rewrites them; storage migration relies on it (upstream:
    /// `GuaranteedUpdate` compares the bytes).
    async fn is_current(&self) -> Result<bool, Status> {
        let Target { resource, namespace, name, .. } = self.target;
        let key = resource.key(namespace, name)?;
        self.registry.store.is_current(&key).await.map_err(Status::internal)
    }

    /// Refuses a resource version that is not the stored one. The kind decides whether an update
    /// must have one (UPD-01, UPD-04).
    fn check_version(&self, new: &Value, current: Revision) -> Result<(), Status> {
        let resource = &self.target.resource;
        match revision::parse(object::resource_version(new))? {
            Some(expected) if expected == current => Ok(()),
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

    /// Refuses a uid that is not the stored one, so that an update does not apply to a new object
    /// of that name (STRAT-07).
    fn check_uid(&self, new: &Value, old: &Value) -> Result<(), Status> {
        let (own, stored) = (object::uid(new), object::uid(old));
        if own.is_empty() || own == stored {
            return Ok(());
        }
        let Target { resource, namespace, name, .. } = self.target;
        let key = resource.etcd_key(namespace, name);
        // Upstream's dry run checks in a layer above the one that adds the prefix to keys.
        let prefix = if self.options.dry_run { ETCD_PREFIX } else { "" };
        let key = key.strip_prefix(prefix).unwrap_or(&key);
        let facts = ("UID", own, stored);
        Err(Status::failed_precondition(&resource.group_resource(), name, key, facts))
    }

    /// Whether the target is a subresource with members of its own, such as `status`.
    fn is_part(&self) -> bool {
        let part = self.target.resource.subresource(&self.target.subresource);
        matches!(part.map(|part| &part.behaviour), Some(SubresourceBehaviour::Part(_)))
    }

    /// Resets the members that a write to the target cannot change: on the resource itself the
    /// reset members; on a subresource with members of its own everything but these members and the
    /// metadata.
    pub(super) fn confine(&self, mut new: Value, old: &Value) -> Value {
        let resource = &self.target.resource;
        let part = resource.subresource(&self.target.subresource);
        match part.map(|part| &part.behaviour) {
            Some(SubresourceBehaviour::Part(members)) => {
                let mut confined = confined_to(members, new, old);
                let members = resource.strategy.reset_metadata(&self.target.subresource);
                reset_metadata(&mut confined, old, members);
                confined
            }
            _ => {
                copy_members(&mut new, old, resource.strategy.reset_fields());
                new
            }
        }
    }
}

/// Returns `old` with the metadata of `new` and its members at `members`. What is equal in both is
/// moved instead of copied: most of the object in an update of its status.
fn confined_to(members: Members, mut new: Value, old: &Value) -> Value {
    let is_written = |name: &str| name == "metadata" || members.iter().any(|path| *path == [name]);
    let nested: Vec<&[&str]> = members.iter().copied().filter(|path| path.len() > 1).collect();
    let mut written = Value::object();
    copy_members(&mut written, &new, &nested);
    let mut given = std::mem::take(new.make_object()).into_iter().peekable();
    let mut confined = Vec::with_capacity(given.len());
    for (name, stored) in old.as_object().into_iter().flat_map(Map::iter) {
        while let Some(added) = given.next_if(|(given, _)| given < name) {
            confined.extend(Some(added).filter(|(name, _)| is_written(name)));
        }
        match given.next_if(|(given, _)| given == name) {
            Some(same) if is_written(name) || same.1 == *stored => confined.push(same),
            None if is_written(name) && name != "metadata" => {}
            _ => confined.push((name.clone(), stored.clone())),
        }
    }
    confined.extend(given.filter(|(name, _)| is_written(name)));
    let mut confined = Value::from(Map::from_sorted(confined));
    copy_members(&mut confined, &written, &nested);
    confined
}

/// Resets the metadata that writers of a subresource cannot set. `managedFields` are not reset.
fn reset_metadata(to: &mut Value, from: &Value, members: Members) {
    let mut reset = members.iter().filter(|path| path.first() == Some(&"metadata")).peekable();
    if reset.peek().is_none() {
        return;
    }
    let mut managers = Value::object();
    ownership::move_managers(to, &mut managers);
    reset.for_each(|path| copy_members(to, from, &[path]));
    ownership::move_managers(&mut managers, to);
}

/// Copies members from `from` to `to`; removes those that `from` lacks.
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

#[cfg(test)]
mod tests {
    use super::*;
    use pintle_value::json;

    #[test]
    fn a_part_is_written_and_the_rest_is_not() {
        const STATUS: Members = &[&["status"]];
        const RESIZE: Members = &[&["spec", "containers"]];
        let old = r#"{"metadata":{"name":"a"},"spec":{"containers":1,"node":"n"},"status":1}"#;
        for (members, new, expected) in [
            (STATUS, old, old),
            (
                STATUS,
                r#"{"added":1,"metadata":{"name":"b"},"spec":{"node":"m"},"status":2}"#,
                r#"{"metadata":{"name":"b"},"spec":{"containers":1,"node":"n"},"status":2}"#,
            ),
            (STATUS, "{}", r#"{"metadata":{"name":"a"},"spec":{"containers":1,"node":"n"}}"#),
            (
                STATUS,
                r#"{"a":1,"metadata":{},"spec":{"containers":1,"node":"n"},"status":2,"z":1}"#,
                r#"{"metadata":{},"spec":{"containers":1,"node":"n"},"status":2}"#,
            ),
            (
                RESIZE,
                r#"{"metadata":{"name":"b"},"spec":{"containers":2,"node":"m"},"status":2}"#,
                r#"{"metadata":{"name":"b"},"spec":{"containers":2,"node":"n"},"status":1}"#,
            ),
            (
                RESIZE,
                r#"{"metadata":{"name":"b"}}"#,
                r#"{"metadata":{"name":"b"},"spec":{"node":"n"},"status":1}"#,
            ),
        ] {
            let [new, old, expected] =
                [new, old, expected].map(|text| json::parse(text.as_bytes()).expect("valid"));
            assert_eq!(confined_to(members, new, &old), expected);
        }
    }
}
