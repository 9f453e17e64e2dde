//! DELETE: at once, after a grace period, or when the last finalizer is gone.

use std::borrow::Cow;
use std::sync::Arc;

use pintle_meta::{GroupKind, GroupResource, Status, field, object, time};
use pintle_store::{Expect, Kind};
use pintle_value::{Path, Str, Value};

use super::commit::Committed;
use super::metadata;
use crate::admission::{Attributes, Memory, Operation, Options};
use crate::answer::{Answer, Outcome};
use crate::request::{Context, DeleteOptions, Propagation, Target};
use crate::{Dependents, GracePeriod, Object, Registry};

const ATTEMPTS_MAX: usize = 100;

/// What is to be done with an object that a client wants gone.
enum Step {
    /// It goes now, in this state.
    Remove(Value),
    /// It stays for now, in this state.
    Keep(Value),
    /// It is on its way already.
    Nothing,
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
        let resource = &target.resource;
        let not_found = || Status::not_found(&resource.group_resource(), &target.name);
        let mut turn = None;
        for _ in 0..ATTEMPTS_MAX {
            let existing =
                self.peek(resource, &target.namespace, &target.name).ok_or_else(not_found)?;
            // As upstream has it, what cannot be shown in the version of the request cannot go by it.
            let tree = resource.current(&existing).await?;
            check_preconditions(target, options, &tree)?;
            let warnings = self.admit_deletion(target, options, context, &tree).await?;
            let step = self.next_step(target, options, context, tree);
            if let Some(outcome) = self.take(target, options, context, &existing, step).await? {
                return Ok(outcome.warn(warnings));
            }
            turn = self.turn(target, turn).await;
        }
        Err(Status::stale(&resource.group_resource(), &target.name))
    }

    /// Asks the admission chain, and whoever is asked elsewhere; gives warnings.
    async fn admit_deletion(
        &self,
        target: &Target,
        options: &DeleteOptions,
        context: &Context,
        tree: &Value,
    ) -> Result<Vec<String>, Status> {
        let attributes = deletion(target, options, context, tree);
        self.admission.admit(&attributes, self)?;
        let mut warnings = Vec::new();
        for mutator in self.admission.mutators() {
            if let Some(mutated) = mutator.mutate(&attributes, self, &mut Memory::default()) {
                warnings.extend(mutated.await?.warnings);
            }
        }
        warnings.extend(self.admission.judge(&attributes, self)?);
        if let Some(reviewed) = self.admission.review(&attributes, self) {
            warnings.extend(reviewed.await?);
        }
        Ok(warnings)
    }

    /// Decides, without doing anything (upstream: rest.BeforeDelete and markAsDeleting).
    fn next_step(
        &self,
        target: &Target,
        options: &DeleteOptions,
        context: &Context,
        mut tree: Value,
    ) -> Step {
        let strategy = &*target.resource.strategy;
        let before = tree.clone();
        self.set_collector_finalizers(&mut tree, options, strategy.dependents());
        let now = context.now.unix_micros;
        let grace = grace_seconds(strategy.grace_period(&tree), options);
        if object::is_terminating(&tree) {
            match shorten(&mut tree, options, now) {
                Shortened::Pending => return Step::Nothing,
                Shortened::Yes => return Step::Keep(tree),
                Shortened::Over => {}
            }
        } else if grace > 0 {
            metadata::bump_generation(&mut tree);
            metadata::mark_deleting(&mut tree, now + grace * 1_000_000, grace);
            strategy.terminating(&mut tree);
            return Step::Keep(tree);
        }
        if object::finalizers(&tree).next().is_none() && !strategy.held(&tree) {
            return Step::Remove(before);
        }
        if !object::is_terminating(&tree) {
            metadata::bump_generation(&mut tree);
            metadata::mark_deleting(&mut tree, now, 0);
            strategy.terminating(&mut tree);
        }
        if tree == before { Step::Nothing } else { Step::Keep(tree) }
    }

    /// Does what was decided; `None` if someone else wrote in between.
    async fn take(
        &self,
        target: &Target,
        options: &DeleteOptions,
        context: &Context,
        existing: &Arc<Object>,
        step: Step,
    ) -> Result<Option<Outcome>, Status> {
        let resource = &target.resource;
        let gone = matches!(step, Step::Remove(_));
        let (state, kind) = match step {
            Step::Remove(state) => (state, Kind::Deleted),
            Step::Keep(state) => (state, Kind::Updated),
            Step::Nothing => {
                return Ok(Some(Outcome::ok(Answer::Object(existing.clone()))));
            }
        };
        let uid: Str = object::uid(&state).into();
        let answer = if options.dry_run {
            let mut state = state;
            resource.to_served(&mut state);
            Answer::Value(state, resource.schema.get(resource.ty).name.to_string())
        } else {
            let place = (target.namespace.as_str(), target.name.as_str());
            let expect = Expect::At(existing.revision);
            let mut companions = Vec::new();
            if gone {
                companions = self.companions(resource, Some(&state), None, context.now)?;
                let attributes = deletion(target, options, context, &state);
                companions.extend(self.admission.charge(&attributes, self)?);
            }
            // What goes is told as it was stored.
            let kept = match gone {
                true if resource.sees_as_kept(existing) => Cow::Borrowed(&state),
                true => Cow::Owned(existing.tree()),
                false => resource.kept(&state).await?,
            };
            match self.commit(resource, place, &kept, expect, kind, companions).await? {
                Committed::Done(object) => Answer::Object(object),
                Committed::Conflict | Committed::Outrun => return Ok(None),
            }
        };
        let answer = if gone && !resource.strategy.delete_returns_object() {
            Answer::Status(Status::deleted(&resource.group_resource(), &target.name, &uid))
        } else {
            answer
        };
        // 202 only for those who said orphanDependents=false and must wait (STRAT-04).
        let accepted = !gone && options.orphan_dependents == Some(false);
        Ok(Some(Outcome { accepted, ..Outcome::ok(answer) }))
    }

    /// Leaves the finalizers by which the garbage collector learns what to do with dependents.
    fn set_collector_finalizers(
        &self,
        tree: &mut Value,
        options: &DeleteOptions,
        dependents: Dependents,
    ) {
        if !self.garbage_collection {
            return;
        }
        let current: Vec<String> = object::finalizers(tree).map(str::to_owned).collect();
        let has = |name: &str| current.iter().any(|f| f == name);
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
        let mut wanted: Vec<String> =
            current.iter().filter(|f| *f != ORPHAN && *f != FOREGROUND).cloned().collect();
        wanted.extend(orphan.then(|| ORPHAN.to_owned()));
        wanted.extend(foreground.then(|| FOREGROUND.to_owned()));
        if wanted.is_empty() {
            object::metadata_mut(tree).remove("finalizers");
        } else {
            object::metadata_mut(tree).insert("finalizers", wanted);
        }
    }
}

/// A deletion as admission sees it.
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
        dry_run: options.dry_run,
        options: Options::Delete(options),
    }
}

const ORPHAN: &str = "orphan";
const FOREGROUND: &str = "foregroundDeletion";

/// How long the object may live on: what the client says, else what the kind says.
const fn grace_seconds(period: GracePeriod, options: &DeleteOptions) -> i64 {
    match period {
        GracePeriod::Immediate => 0,
        GracePeriod::Seconds(default) => match options.grace_period_seconds {
            Some(said) => at_least_a_second(said),
            None => default,
        },
    }
}

/// Upstream takes a negative period for one second.
const fn at_least_a_second(said: i64) -> i64 {
    if said < 0 { 1 } else { said }
}

/// What a second DELETE does to an object that is on its way.
enum Shortened {
    /// Its time is not up, and the client does not shorten it.
    Pending,
    /// Its time is shorter now.
    Yes,
    /// It waits for nothing but finalizers.
    Over,
}

/// A grace period can only shrink (DEL-06).
fn shorten(tree: &mut Value, options: &DeleteOptions, now: i64) -> Shortened {
    let current = tree.at(&["metadata", "deletionGracePeriodSeconds"]).and_then(Value::as_int);
    let Some(current @ 1..) = current else { return Shortened::Over };
    let said = match options.grace_period_seconds.map(at_least_a_second) {
        Some(said) if said < current => said,
        _ => return Shortened::Pending,
    };
    if said == 0 {
        metadata::mark_deleting(tree, now, 0);
        return Shortened::Over;
    }
    let begun =
        time::parse(object::text(tree, "deletionTimestamp")).unwrap_or(now) - current * 1_000_000;
    let wanted = begun + said * 1_000_000;
    let (at, said) = if wanted < now { (now, 1) } else { (wanted, said) };
    metadata::mark_deleting(tree, at, said);
    Shortened::Yes
}

/// The options must make sense together (KCM-01).
fn check(options: &DeleteOptions) -> Result<(), Status> {
    if options.propagation.is_none() || options.orphan_dependents.is_none() {
        return Ok(());
    }
    let path = Path::new("propagationPolicy");
    let said = options.propagation.unwrap_or(Propagation::Background).name();
    let why = "orphanDependents and deletionPropagation cannot be both set";
    let error = field::Error::invalid(&path, &said.into(), why);
    Err(Status::invalid(&GroupKind::new("meta.k8s.io", "DeleteOptions"), "", &[error]))
}

/// The object must be the one that the client means (DEL-09).
fn check_preconditions(
    target: &Target,
    options: &DeleteOptions,
    tree: &Value,
) -> Result<(), Status> {
    let conflict = |what: &str, wanted: &str, stored: &str, hint: &str| {
        let why = format!(
            "the {what} in the precondition ({wanted}) does not match the {what} in record \
             ({stored}). {hint}"
        );
        // Upstream names the kind here, where every other conflict names the resource.
        let resource = &target.resource;
        let named = GroupResource::new(&*resource.resource.group, &*resource.kind);
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
