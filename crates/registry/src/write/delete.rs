//! DELETE: removes an object at once, after its grace period, or when its last finalizer is
//! removed.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Instant;

use pintle_meta::{GroupKind, GroupResource, Status, field, object, time};
use pintle_store::{Expect, Kind};
use pintle_trace::Layer;
use pintle_value::{Path, Str, Value};

use super::commit::{Committed, encode};
use super::metadata;
use crate::admission::{Attributes, Memory, Operation, Options};
use crate::allocation::{Companion, Part};
use crate::answer::{Answer, Outcome};
use crate::measures::Phase;
use crate::request::{Context, DeleteOptions, IGNORE_READ_ERRORS, Propagation, Target};
use crate::{Deletion, Dependents, GracePeriod, Object, Registry, work};

const ATTEMPTS_MAX: usize = 100;

/// The next step of a deletion.
enum Step {
    /// Removes the object, in this state.
    Remove(Value),
    /// Marks the object as deleted, which watchers see, and removes it in the same commit.
    MarkAndRemove(Value),
    /// Writes this state; the object stays for now.
    Keep(Value),
    /// Changes nothing: an earlier deletion is in progress.
    Unchanged,
}

impl Registry {
    /// Deletes one object.
    pub(crate) async fn delete_object(
        &self,
        target: &Target,
        options: &DeleteOptions,
        context: &Context,
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
            let tree = resource.current(&existing).await?;
            check_preconditions(target, options, &tree)?;
            self.admit_deletion(target, options, context, &tree).await?;
            let step = self.next_step(target, options, context, tree);
            if let Some(outcome) = self.execute(target, options, context, &existing, step).await? {
                return Ok(outcome);
            }
            queued = self.queue_retry(target, queued).await?;
        }
        Err(Status::stale(&resource.group_resource(), &target.name))
    }

    /// Deletes an unreadable object, and refuses a readable one (upstream: `corruptObjectDeleter`).
    async fn delete_unreadable(
        &self,
        target: &Target,
        options: &DeleteOptions,
    ) -> Result<Outcome, Status> {
        let resource = &target.resource;
        let mut queued = None;
        for _ in 0..ATTEMPTS_MAX {
            let existing = self.peek(resource, &target.namespace, &target.name);
            let Some(existing) = existing.filter(|existing| existing.check().is_err()) else {
                let why = "is exclusively used to delete corrupt object(s), try again by removing this option";
                let path = Path::new(IGNORE_READ_ERRORS);
                let error = field::Error::invalid(&path, &Value::Bool(true), why);
                let named = resource.group_resource();
                let kind = GroupKind::new(&*named.group, &*named.resource);
                return Err(Status::invalid(&kind, &target.name, &[error]));
            };
            work::ahead(existing.size()).await;
            if let Some(outcome) = self.try_delete_unreadable(target, options, &existing).await? {
                return Ok(outcome);
            }
            queued = self.queue_retry(target, queued).await?;
        }
        Err(Status::stale(&resource.group_resource(), &target.name))
    }

    /// Removes an unreadable object; `None` after a conflict. Admission is not called, because
    /// there is no object to show it (upstream: `corruptObjectDeleter`). Watchers get an object
    /// with only its name.
    async fn try_delete_unreadable(
        &self,
        target: &Target,
        options: &DeleteOptions,
        existing: &Arc<Object>,
    ) -> Result<Option<Outcome>, Status> {
        let resource = &target.resource;
        if !options.dry_run {
            let namespaced_name = (target.namespace.as_str(), target.name.as_str());
            let (expect, identity) = (Expect::At(existing.revision), existing.identity(resource));
            let kind = Kind::Deleted;
            match self
                .commit(resource, namespaced_name, &identity, expect, kind, Vec::new())
                .await?
            {
                Committed::Done(_) => {}
                Committed::Conflict | Committed::CompanionConflict => return Ok(None),
            }
            tracing::warn!(object = %existing.item, "deleted an unreadable object; its finalizers were ignored");
        }
        let status = Status::deleted(&resource.group_resource(), &target.name, "");
        let committed = !options.dry_run;
        Ok(Some(Outcome { committed, ..Outcome::ok(Answer::Status(status)) }))
    }

    /// Runs admission, webhooks and policies included.
    async fn admit_deletion(
        &self,
        target: &Target,
        options: &DeleteOptions,
        context: &Context,
        tree: &Value,
    ) -> Result<(), Status> {
        let attributes = deletion(target, options, context, tree);
        let (phases, warnings) = (&self.admission_phases, &context.warnings);
        let admitted = async {
            self.admission.before_mutation(&attributes, self)?;
            for mutator in self.admission.mutators() {
                if let Some(mutated) =
                    mutator.mutate_registered(&attributes, self, &mut Memory::default())
                {
                    warnings.extend(mutated.await?.warnings);
                }
            }
            Ok(())
        };
        phases.measured((Phase::Admit, Operation::Delete), &context.timing, admitted).await?;
        let validated = async {
            warnings.extend(self.admission.validate(&attributes, self)?);
            if let Some(reviewed) = self.admission.validate_registered(&attributes, self) {
                warnings.extend(reviewed.await?);
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
        mut tree: Value,
    ) -> Step {
        let strategy = &*target.resource.strategy;
        let (deletion, begins) = (strategy.deletion(), !object::is_terminating(&tree));
        if deletion != Deletion::Graceful && !begins && strategy.blocks_removal(&tree) {
            return Step::Unchanged;
        }
        let finalizers = match deletion {
            Deletion::MarkOnly if begins => object::finalizers(&tree).map(str::to_owned).collect(),
            _ => self.finalizers(&tree, options, strategy.dependents()),
        };
        let is_blocked = !finalizers.is_empty() || strategy.blocks_removal(&tree);
        let period = strategy.grace_period(&tree);
        let due = due(&tree, options, period, context.now.unix_micros);
        match due {
            Due::Pending => return Step::Unchanged,
            Due::At(_, 0) if !is_blocked && period == GracePeriod::None => {
                return Step::Remove(tree);
            }
            Due::Passed if !is_blocked => return Step::Remove(tree),
            Due::Passed if object::finalizers(&tree).eq(&finalizers) && has_grace(&tree) => {
                return Step::Unchanged;
            }
            _ => {}
        }
        let metadata = object::metadata_mut(&mut tree);
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
                metadata::bump_generation(&mut tree);
            }
            metadata::mark_deleting(&mut tree, time, grace);
            if begins {
                strategy.mark_terminating(&mut tree);
            }
            if !is_blocked && seconds == 0 {
                return Step::MarkAndRemove(tree);
            }
        }
        Step::Keep(tree)
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
                return Ok(Some(Outcome::ok(Answer::Object(existing.clone()))));
            }
        };
        let gone = kind == Kind::Deleted;
        let uid: Str = object::uid(&state).into();
        let answer = if options.dry_run {
            let mut state = state;
            resource.to_served(&mut state);
            Answer::Value(state, resource.schema.get(resource.ty).name.to_string())
        } else {
            let namespaced_name = (target.namespace.as_str(), target.name.as_str());
            let expect = Expect::At(existing.revision);
            let mut companions = Vec::new();
            if gone {
                companions = self.companions(resource, Some(&state), None, context.now)?;
                let attributes = deletion(target, options, context, &state);
                companions.extend(self.admission.before_commit(&attributes, self)?);
            }
            // The DELETED event shows the object as it was stored.
            let stored = match gone && !marked {
                true if resource.is_stored_form(existing) => Cow::Borrowed(&state),
                true => Cow::Owned(existing.tree()?),
                false => resource.to_storage(&state).await?,
            };
            let written = if marked { Kind::Updated } else { kind };
            let write = encode(resource, namespaced_name, &stored, expect, written)?;
            if marked {
                let end = encode(resource, namespaced_name, &stored, Expect::AfterPrevious, kind)?;
                companions.insert(0, Companion(Part::Write(end)));
            }
            let began = Instant::now();
            let committed = self.commit_encoded(write, companions).await;
            context.timing.spent(Layer::Store, began);
            match committed? {
                Committed::Done(object) => Answer::Object(object),
                Committed::Conflict | Committed::CompanionConflict => return Ok(None),
            }
        };
        let answer = if gone && !resource.strategy.delete_returns_object() {
            Answer::Status(Status::deleted(&resource.group_resource(), &target.name, &uid))
        } else {
            answer
        };
        // 202 only if the client set orphanDependents=false and the deletion is not complete
        // (STRAT-04).
        let accepted = !gone && options.orphan_dependents == Some(false);
        let committed = !options.dry_run;
        Ok(Some(Outcome { accepted, committed, ..Outcome::ok(answer) }))
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
    tree: &'a Value,
) -> Attributes<'a> {
    Attributes {
        operation: Operation::Delete,
        resource: &target.resource,
        namespace: &target.namespace,
        name: &target.name,
        subresource: "",
        kind: None,
        object: None,
        old: Some(tree),
        user: &context.user,
        verb: context.verb,
        now: context.now,
        timing: &context.timing,
        recorder: context.recorder.as_deref(),
        dry_run: options.dry_run,
        options: Options::Delete(options),
    }
}

fn has_grace(tree: &Value) -> bool {
    tree.at(&["metadata", GRACE]).is_some()
}

const GRACE: &str = "deletionGracePeriodSeconds";
const ORPHAN: &str = "orphan";
const FOREGROUND: &str = "foregroundDeletion";

/// When a deleted object can be removed, if no finalizer blocks it.
enum Due {
    /// At the end of its current grace period, which this request does not shorten.
    Pending,
    /// At this time in microseconds, after a grace period of this many seconds.
    At(i64, i64),
    /// The object's grace period is over.
    Passed,
}

/// Returns when the object can be removed. A request for an object that is being deleted can only
/// shorten the grace period (DEL-06).
fn due(tree: &Value, options: &DeleteOptions, period: GracePeriod, now: i64) -> Due {
    if !object::is_terminating(tree) {
        let grace = grace_seconds(period, options);
        return Due::At(now + micros(grace), grace);
    }
    let current = tree.at(&["metadata", GRACE]).and_then(Value::as_int);
    let Some(current @ 1..) = current else { return Due::Passed };
    match options.grace_period_seconds.map(at_least_a_second) {
        Some(0) => Due::At(now, 0),
        Some(requested) if requested < current => {
            let deadline = time::parse(object::text(tree, "deletionTimestamp")).unwrap_or(now);
            let time = deadline - micros(current) + micros(requested);
            if time < now { Due::At(now, 1) } else { Due::At(time, requested) }
        }
        _ => Due::Pending,
    }
}

/// Returns the grace period: 0 for a kind without one, else the client's or the kind's default.
const fn grace_seconds(period: GracePeriod, options: &DeleteOptions) -> i64 {
    match period {
        GracePeriod::None | GracePeriod::Zero => 0,
        GracePeriod::Seconds(default) => match options.grace_period_seconds {
            Some(requested) => at_least_a_second(requested),
            None => default,
        },
    }
}

/// Converts a grace period to microseconds, to be added to a time. Upstream's durations are
/// nanoseconds in 64 bits, at most 292 years, so the year of the sum keeps four digits.
fn micros(seconds: i64) -> i64 {
    seconds.min(i64::MAX / 1_000_000_000) * 1_000_000
}

/// Upstream treats a negative period as one second.
const fn at_least_a_second(seconds: i64) -> i64 {
    if seconds < 0 { 1 } else { seconds }
}

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
