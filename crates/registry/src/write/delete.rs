//! DELETE: removes an object at once, after its grace period, or when its last finalizer is
//! removed.

mod existing;
mod grace;
mod unreadable;

use std::sync::Arc;
use std::time::Instant;

use pintle_meta::{GroupKind, GroupResource, Status, field, object};
use pintle_store::{Expect, Kind};
use pintle_trace::Layer;
use pintle_value::{Path, Str, Value};

use super::commit::Committed;
use super::contention::ATTEMPTS_MAX;
use super::metadata;
use crate::admission::{Attributes, Memory, Operation, Options, Stored};
use crate::allocation::{Companion, Part};
use crate::measures::Phase;
use crate::request::{Context, DeleteOptions, Propagation, Target};
use crate::results::{Outcome, ResponseBody};
use crate::{Deletion, Dependents, GracePeriod, Object, Registry, work};
use existing::Existing;
use grace::{Due, GRACE, due, has_grace};

/// The next step of a deletion.
enum Step {
    /// Removes the object, in this state.
    Remove(Existing),
    /// Marks the object as deleted, which watchers see, and removes it in the same commit.
    MarkAndRemove(Existing),
    /// Writes this state; the object stays for now.
    Keep(Existing),
    /// Changes nothing: an earlier deletion is in progress.
    Unchanged,
}

/// Whether admission must review a deletion.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Review {
    /// Its plugins, policies and webhooks may refuse the deletion.
    Needed,
    /// It has admitted the request of which the deletion is an effect. Its changes that belong to
    /// the commit, such as those of quotas, are made nevertheless.
    Done,
}

impl Registry {
    /// Deletes one object as the effect of another request, which admission has admitted: no plugin,
    /// policy or webhook is asked about the deletion.
    pub async fn delete_admitted(
        &self,
        target: &Target,
        options: &DeleteOptions,
        context: &Context,
    ) -> Result<(), Status> {
        let attempt = || self.delete_object(target, options, context, Review::Done);
        self.decide(options.dry_run, context, attempt).await.map(|_| ())
    }

    /// Deletes one object.
    pub(crate) async fn delete_object(
        &self,
        target: &Target,
        options: &DeleteOptions,
        context: &Context,
        review: Review,
    ) -> Result<Outcome, Status> {
        check(options)?;
        if options.ignore_read_errors {
            return self.delete_unreadable(target, options).await;
        }
        let resource = &target.resource;
        let not_found = || Status::not_found(&resource.group_resource(), &target.name);
        let mut queued = None;
        for _ in 0..ATTEMPTS_MAX {
            let existing =
                self.peek(resource, &target.namespace, &target.name).ok_or_else(not_found)?;
            work::ahead(existing.size()).await;
            // As in upstream, a request cannot delete an object that cannot be converted to the
            // request's version.
            let state = Existing::read(resource, &existing).await?;
            check_preconditions(target, options, state.head())?;
            if is_pending(target, options, context, state.head()) {
                return Ok(Outcome::ok(ResponseBody::Object(existing)));
            }
            if review == Review::Needed {
                self.admit_deletion(target, options, context, &state).await?;
            }
            let step = self.next_step(target, options, context, state);
            if let Some(outcome) = self.execute(target, options, context, &existing, step).await? {
                return Ok(outcome);
            }
            queued = self.queue_retry(target, queued).await?;
        }
        Err(Status::stale(&resource.group_resource(), &target.name))
    }

    /// Runs admission, webhooks and policies included.
    async fn admit_deletion(
        &self,
        target: &Target,
        options: &DeleteOptions,
        context: &Context,
        existing: &Existing,
    ) -> Result<(), Status> {
        let attributes = deletion(target, options, context, existing);
        let phases = &self.admission_phases;
        let admitted = async {
            self.admission.before_mutation(&attributes, self)?;
            for mutator in self.admission.mutators() {
                if let Some(mutated) =
                    mutator.mutate_registered(&attributes, self, &mut Memory::default())
                {
                    mutated.await?;
                }
            }
            Ok(())
        };
        phases.measured((Phase::Admit, Operation::Delete), &context.timing, admitted).await?;
        let validated = async {
            self.admission.validate(&attributes, self)?;
            if let Some(reviewed) = self.admission.validate_registered(&attributes, self) {
                reviewed.await?;
            }
            Ok(())
        };
        phases.measured((Phase::Validate, Operation::Delete), &context.timing, validated).await
    }

    /// Decides the next step of the deletion (upstream: rest.BeforeDelete and markAsDeleting).
    fn next_step(
        &self,
        target: &Target,
        options: &DeleteOptions,
        context: &Context,
        mut state: Existing,
    ) -> Step {
        let strategy = &*target.resource.strategy;
        let tree = state.head();
        let (deletion, begins) = (strategy.deletion(), !object::is_terminating(tree));
        let finalizers = match deletion {
            Deletion::MarkOnly if begins => object::finalizers(tree).map(str::to_owned).collect(),
            _ => self.finalizers(tree, options, strategy.dependents()),
        };
        let is_blocked = !finalizers.is_empty() || strategy.blocks_removal(tree);
        let (period, due) = when(target, options, context, tree);
        match due {
            Due::Pending => return Step::Unchanged, // as `is_pending` has found
            Due::At(_, 0) if !is_blocked && period == GracePeriod::None => {
                return Step::Remove(state);
            }
            Due::Passed if !is_blocked => return Step::Remove(state),
            Due::Passed if object::finalizers(tree).eq(&finalizers) && has_grace(tree) => {
                return Step::Unchanged;
            }
            _ => {}
        }
        let tree = state.head_mut();
        let metadata = object::metadata_mut(tree);
        if finalizers.is_empty() {
            metadata.remove("finalizers");
        } else {
            metadata.insert("finalizers", finalizers);
        }
        if matches!(due, Due::Passed) {
            metadata.entry_or(GRACE, || 0.into());
        }
        if let Due::At(time, seconds) = due {
            let grace = (deletion == Deletion::Graceful).then_some(seconds);
            if begins && grace.is_some() {
                metadata::bump_generation(tree);
            }
            metadata::mark_deleting(tree, time, grace);
            if begins {
                strategy.mark_terminating(tree);
            }
            if !is_blocked && seconds == 0 {
                return Step::MarkAndRemove(state);
            }
        }
        Step::Keep(state)
    }

    /// Executes a step; `None` after a conflict.
    async fn execute(
        &self,
        target: &Target,
        options: &DeleteOptions,
        context: &Context,
        existing: &Arc<Object>,
        step: Step,
    ) -> Result<Option<Outcome>, Status> {
        let resource = &target.resource;
        let marked = matches!(step, Step::MarkAndRemove(_));
        let (state, kind) = match step {
            Step::Remove(state) | Step::MarkAndRemove(state) => (state, Kind::Deleted),
            Step::Keep(state) => (state, Kind::Updated),
            Step::Unchanged => {
                return Ok(Some(Outcome::ok(ResponseBody::Object(existing.clone()))));
            }
        };
        let gone = kind == Kind::Deleted;
        let uid: Str = object::uid(state.head()).into();
        let body = if options.dry_run {
            let mut state = state.into_whole();
            resource.to_served(&mut state);
            ResponseBody::Value(state, resource.schema.get(resource.ty).name.to_string())
        } else {
            let namespaced_name = (target.namespace.as_str(), target.name.as_str());
            let expect = Expect::At(existing.revision);
            let mut companions = Vec::new();
            if gone {
                if let Some(allocator) = &resource.allocator {
                    companions =
                        allocator.companions(self, Some(state.tree()), None, context.now)?;
                }
                let before = state.before();
                let attributes = deletion(target, options, context, &before);
                companions.extend(self.admission.before_commit(&attributes, self)?);
            }
            let write = if gone && !marked {
                state.encode_unchanged(resource, namespaced_name, expect)?
            } else {
                state.encode(resource, namespaced_name, expect, Kind::Updated).await?
            };
            if marked {
                let after = Expect::AfterPrevious;
                let end = state.encode(resource, namespaced_name, after, kind).await?;
                companions.insert(0, Companion(Part::Write(end)));
            }
            let began = Instant::now();
            let committed = self.commit_encoded(write, companions).await;
            context.timing.spent(Layer::Store, began);
            match committed? {
                Committed::Done(object) => ResponseBody::Object(object),
                Committed::Conflict | Committed::CompanionConflict => return Ok(None),
            }
        };
        let body = if gone && !resource.strategy.delete_returns_object() {
            ResponseBody::Status(Status::deleted(&resource.group_resource(), &target.name, &uid))
        } else {
            body
        };
        // 202 only if the client set orphanDependents=false and the deletion is not complete
        // (STRAT-04).
        let accepted = !gone && options.orphan_dependents == Some(false);
        let committed = !options.dry_run;
        Ok(Some(Outcome { accepted, committed, ..Outcome::ok(body) }))
    }

    /// Returns the finalizers of an object that is being deleted. They include those that tell the
    /// garbage collector what to do with dependents.
    fn finalizers(
        &self,
        tree: &Value,
        options: &DeleteOptions,
        dependents: Dependents,
    ) -> Vec<String> {
        let mut finalizers: Vec<String> = object::finalizers(tree).map(str::to_owned).collect();
        if !self.garbage_collection {
            return finalizers;
        }
        let has = |name: &str| finalizers.iter().any(|f| f == name);
        let (orphan, foreground) = match (options.orphan_dependents, options.propagation) {
            _ if dependents == Dependents::None => (false, false),
            (Some(orphan), _) => (orphan, false),
            (None, Some(Propagation::Orphan)) => (true, false),
            (None, Some(Propagation::Foreground)) => (false, true),
            (None, Some(Propagation::Background)) => (false, false),
            (None, None) if has(ORPHAN) => (true, false),
            (None, None) if has(FOREGROUND) => (false, true),
            (None, None) => (dependents == Dependents::Orphaned, false),
        };
        finalizers.retain(|f| f != ORPHAN && f != FOREGROUND);
        finalizers.extend(orphan.then(|| ORPHAN.to_owned()));
        finalizers.extend(foreground.then(|| FOREGROUND.to_owned()));
        finalizers
    }
}

/// Whether an earlier deletion is in progress and the request does not change it. As in upstream,
/// admission does not review such a request.
fn is_pending(target: &Target, options: &DeleteOptions, context: &Context, tree: &Value) -> bool {
    let strategy = &*target.resource.strategy;
    let is_held = strategy.deletion() != Deletion::Graceful
        && object::is_terminating(tree)
        && strategy.blocks_removal(tree);
    is_held || matches!(when(target, options, context, tree), (_, Due::Pending))
}

/// Returns the kind's grace period for an object, and when the object can be removed.
fn when(
    target: &Target,
    options: &DeleteOptions,
    context: &Context,
    tree: &Value,
) -> (GracePeriod, Due) {
    let period = target.resource.strategy.grace_period(tree);
    (period, due(tree, options, period, context.now.unix_micros))
}

/// Adds the kind's warning about dependents to a DELETE that does not say what happens to them.
pub(crate) fn warn_of_dependents(target: &Target, options: &DeleteOptions, context: &Context) {
    if options.propagation.is_none() && options.orphan_dependents.is_none() {
        let warning = target.resource.strategy.dependents_warning();
        context.warnings.extend(warning.map(str::to_owned));
    }
}

/// Returns the deletion's attributes for admission.
fn deletion<'a>(
    target: &'a Target,
    options: &'a DeleteOptions,
    context: &'a Context,
    existing: &'a dyn Stored,
) -> Attributes<'a> {
    Attributes {
        operation: Operation::Delete,
        resource: &target.resource,
        namespace: &target.namespace,
        name: &target.name,
        subresource: "",
        kind: None,
        object: None,
        old: Some(existing),
        user: &context.user,
        verb: context.verb,
        now: context.now,
        timing: &context.timing,
        recorder: context.recorder.as_deref(),
        warnings: &context.warnings,
        dry_run: options.dry_run,
        options: Options::Delete(options),
    }
}

const ORPHAN: &str = "orphan";
const FOREGROUND: &str = "foregroundDeletion";

/// Refuses `propagationPolicy` together with `orphanDependents` (KCM-01).
fn check(options: &DeleteOptions) -> Result<(), Status> {
    if options.propagation.is_none() || options.orphan_dependents.is_none() {
        return Ok(());
    }
    let path = Path::new("propagationPolicy");
    let policy = options.propagation.unwrap_or(Propagation::Background).name();
    let why = "orphanDependents and deletionPropagation cannot be both set";
    let error = field::Error::invalid(&path, &policy.into(), why);
    Err(Status::invalid(&GroupKind::new("meta.k8s.io", "DeleteOptions"), "", &[error]))
}

/// Checks the uid and resource version that the client expects (DEL-09).
fn check_preconditions(
    target: &Target,
    options: &DeleteOptions,
    tree: &Value,
) -> Result<(), Status> {
    let resource = &target.resource;
    let conflict = |what: &str, wanted: &str, stored: &str, hint: &str| {
        // In upstream, kinds with another deletion check preconditions in their own storage, with
        // another message.
        if resource.strategy.deletion() != Deletion::Graceful {
            let why = format!(
                "Precondition failed: {what} in precondition: {wanted}, {what} in object meta: {stored}"
            );
            return Status::conflict(&resource.group_resource(), &target.name, &why);
        }
        let why = format!(
            "the {what} in the precondition ({wanted}) does not match the {what} in record \
             ({stored}). {hint}"
        );
        // Upstream names the kind of the stored form here. All other conflicts name the resource.
        let stored = tree.str_at(&["apiVersion"]).unwrap_or_default();
        let group = stored.split_once('/').map_or("", |(group, _)| group);
        let named = GroupResource::new(group, &*resource.kind);
        Status::conflict(&named, &target.name, &why)
    };
    let (uid, version) = (object::uid(tree), object::resource_version(tree));
    if let Some(wanted) = options.uid.as_deref().filter(|wanted| *wanted != uid) {
        let hint = "The object might have been deleted and then recreated";
        return Err(conflict("UID", wanted, uid, hint));
    }
    if let Some(wanted) = options.resource_version.as_deref().filter(|w| *w != version) {
        let hint = "The object might have been modified";
        return Err(conflict("ResourceVersion", wanted, version, hint));
    }
    Ok(())
}
