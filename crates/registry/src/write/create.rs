//! POST: a new object.

use std::borrow::Cow;

use pintle_meta::{Reason, Status, names, object, uid};
use pintle_store::{Expect, Kind};
use pintle_value::{Str, Value};

use super::commit::Committed;
use super::scale::SCALE;
use super::update::copy_members;
use super::{Draft, Write, metadata};
use crate::admission::{Attributes, Operation, Options};
use crate::allocation::Companion;
use crate::answer::{Answer, Outcome};
use crate::definition::Subresource;
use crate::measures::Phase;
use crate::request::{Body, Now};
use crate::{Origin, Registry, Resource, work};

/// How often a generated name is tried again (META-30; upstream: maxNameGenerationCreateAttempts).
const NAME_ATTEMPTS_MAX: usize = 8;

/// Retries after losing an allocation race: each time, another object was given what this one was assigned.
const ALLOCATION_CONFLICTS_MAX: usize = 100;

/// Retries while other writers change what the write depends on: its namespace, its resource's definition,
/// its quotas.
const COMPANION_CONFLICTS_MAX: usize = 1000;

/// The outcome of an attempt to create an object.
enum Tried {
    /// The answer.
    Done(Answer),
    /// The name is taken.
    Taken,
    /// Another object was given what was assigned to this one.
    AllocationConflict,
}

impl Write<'_> {
    /// POST to the collection.
    pub(crate) async fn create(&self, body: &Body) -> Result<Outcome, Status> {
        work::ahead(self.target.resource.work(body.bytes.len())).await;
        let mut draft = self.decode(body)?;
        self.record(&draft.tree);
        self.set_namespace(&mut draft.tree)?;
        // It is upstream's storage that refuses, and a dry run ends before it: what is said stays.
        if !object::resource_version(&draft.tree).is_empty() && !self.options.dry_run {
            return Err(Status::failure(
                Reason::Unknown,
                "resourceVersion should not be set on objects to be created",
            ));
        }
        self.create_draft(draft).await
    }

    /// Creates what a body holds: POST, and PUT to a free name where the kind allows that.
    pub(super) async fn create_draft(&self, draft: Draft) -> Result<Outcome, Status> {
        let Draft { mut tree, tracked, .. } = draft;
        let resource = &self.target.resource;
        let given: Str = object::name(&tree).into();
        let is_labelled = object::labels(&tree).is_some_and(|labels| !labels.is_empty());
        self.store_form(&mut tree, tracked);
        self.context.warnings.extend(metadata::unite_owners(&mut tree));
        // What admission makes of an object belongs to nobody, and neither does what the server sets.
        if !tracked {
            metadata::forget_system(&mut tree);
            self.track(None, &mut tree).await;
        }
        self.change(Operation::Create, &given, &mut tree, None).await?;
        metadata::begin(
            &mut tree,
            resource.strategy.generation(),
            self.registry.new_uid(),
            self.context.now,
        );
        let unset = pintle_schema::zero(&resource.schema, resource.stored_type());
        copy_members(&mut tree, &unset, resource.strategy.reset_fields());

        let origin = Origin { author: &self.context.user, is_labelled };
        resource.strategy.note_origin(&mut tree, origin);

        let base: Str = object::text(&tree, "generateName").into();
        let generated = given.is_empty() && !base.is_empty();
        let mut attempts = if generated { NAME_ATTEMPTS_MAX } else { 1 };
        let mut conflicts = 0;
        loop {
            // A single attempt needs no copy of the tree.
            let only = attempts == 1 && resource.allocator.is_none();
            let mut tree = if only { std::mem::take(&mut tree) } else { tree.clone() };
            if generated {
                let name = match resource.strategy.generates_names() {
                    true => names::generate(&base, self.random_u64()).into(),
                    false => base.clone(),
                };
                object::set_text(&mut tree, "name", name);
            }
            self.assign(&mut tree, None)?;
            resource.strategy.prepare_create(&mut tree);
            resource.strategy.note_time(&mut tree, None, self.context.now);
            self.validate(&tree, None)?;
            self.context.warnings.extend(resource.strategy.warnings(&tree, None));
            let name = object::name(&tree);
            self.review(Operation::Create, name, &tree, None).await?;
            pintle_schema::forget_empty(&resource.schema, resource.stored_type(), &mut tree);
            match self.try_create(&tree).await? {
                Tried::Done(answer) => {
                    let committed = !self.options.dry_run;
                    return Ok(Outcome { created: true, committed, ..Outcome::ok(answer) });
                }
                Tried::Taken if attempts == 1 => {
                    return Err(self.taken(object::name(&tree), generated));
                }
                Tried::Taken => attempts -= 1,
                Tried::AllocationConflict if conflicts == ALLOCATION_CONFLICTS_MAX => {
                    return Err(self.stale());
                }
                Tried::AllocationConflict => {
                    conflicts += 1;
                    self.registry.catch_up().await?;
                }
            }
        }
    }

    /// Lets the kind's allocator give an object what it lacks.
    pub(super) fn assign(&self, new: &mut Value, old: Option<&Value>) -> Result<(), Status> {
        match &self.target.resource.allocator {
            Some(allocator) => allocator.assign(self.registry, new, old, self.options.dry_run),
            None => Ok(()),
        }
    }

    /// Commits a new object.
    async fn try_create(&self, tree: &Value) -> Result<Tried, Status> {
        let resource = &self.target.resource;
        let (namespace, name) = (self.target.namespace.as_str(), object::name(tree));
        if self.options.dry_run {
            let companions = self.charge(Operation::Create, name, Some(tree), None)?;
            self.registry.rehearse(&companions)?;
            if self.registry.peek(resource, namespace, name).is_some() {
                return Ok(Tried::Taken);
            }
            return Ok(Tried::Done(self.uncommitted(resource.read_back(tree.clone()).await?)));
        }
        let stored = resource.to_storage(tree).await?;
        for _ in 0..COMPANION_CONFLICTS_MAX {
            let mut companions =
                self.registry.companions(resource, None, Some(tree), self.context.now)?;
            companions.extend(self.charge(Operation::Create, name, Some(tree), None)?);
            companions.extend(self.registry.definer(resource, name)?);
            let (expect, kind) = (Expect::Absent, Kind::Created);
            match self.commit(name, &stored, expect, kind, companions).await? {
                Committed::Done(object) => return Ok(Tried::Done(Answer::Object(object))),
                Committed::Conflict => return Ok(Tried::Taken),
                Committed::CompanionConflict if resource.allocator.is_some() => {
                    return Ok(Tried::AllocationConflict);
                }
                // The object itself does not depend on the companions that changed.
                Committed::CompanionConflict => self.registry.catch_up().await?,
            }
        }
        Err(self.stale())
    }

    /// The refusal of a name that is taken (META-30, META-31, DEL-13).
    fn taken(&self, name: &str, generated: bool) -> Status {
        let resource = &self.target.resource;
        let mut status = Status::already_exists(&resource.group_resource(), name);
        let existing = self.registry.peek(resource, &self.target.namespace, name);
        if generated {
            status.details.get_or_insert_default().retry_after_seconds = Some(1);
        } else if existing
            .and_then(|existing| existing.tree().ok())
            .is_some_and(|existing| object::is_terminating(&existing))
        {
            status.message = format!("object is being deleted: {}", status.message);
        }
        status
    }

    /// Asks the server's own plugins, which may change the new state.
    pub(super) async fn admit(
        &self,
        operation: Operation,
        name: &str,
        object: &mut Value,
        old: Option<&Value>,
    ) -> Result<(), Status> {
        let refused = self.target.resource.strategy.refuse_create();
        if let Some(why) = refused.filter(|_| operation == Operation::Create) {
            return Err(Status::forbidden(&self.target.resource.group_resource(), name, why));
        }
        let (admission, registry) = (&self.registry.admission, self.registry);
        let before = old.map(|old| self.seen(old));
        let before = before.as_deref();
        {
            let seen = self.seen(object);
            let attributes = self.attributes(operation, name, Some(&seen), before);
            admission.admit(&attributes, registry)?;
            if let Some(awaited) = admission.awaited(&attributes, registry) {
                awaited.await?;
            }
        }
        self.shape(operation, name, object, before)
    }

    /// Lets the admission chain change the new state.
    pub(super) fn shape(
        &self,
        operation: Operation,
        name: &str,
        object: &mut Value,
        seen_before: Option<&Value>,
    ) -> Result<(), Status> {
        if self.scale.is_some() {
            return Ok(());
        }
        let attributes = self.attributes(operation, name, None, seen_before);
        self.registry.admission.shape(&attributes, object, self.registry)
    }

    /// What the admission chain wants to be committed with a write.
    pub(super) fn charge(
        &self,
        operation: Operation,
        name: &str,
        object: Option<&Value>,
        old: Option<&Value>,
    ) -> Result<Vec<Companion>, Status> {
        let attributes = self.attributes(operation, name, object, old);
        self.registry.admission.charge(&attributes, self.registry)
    }

    /// Asks whether a valid new state may be.
    pub(super) async fn review(
        &self,
        operation: Operation,
        name: &str,
        object: &Value,
        old: Option<&Value>,
    ) -> Result<(), Status> {
        let (seen, old) = (self.seen(object), old.map(|old| self.seen(old)));
        let attributes = self.attributes(operation, name, Some(&seen), old.as_deref());
        let reviewed = async {
            let warnings = &self.context.warnings;
            warnings.extend(self.registry.admission.judge(&attributes, self.registry)?);
            if let Some(reviewed) = self.registry.admission.review(&attributes, self.registry) {
                let reviewed = reviewed.await;
                warnings.extend(reviewed.inspect_err(|_| self.refuse_for_good(old.is_none()))?);
            }
            Ok(())
        };
        self.registry.admission_phases.measured(Phase::Validate, operation, reviewed).await
    }

    /// Notes that webhooks or policies refused a write. Of a creation they saw what the client sent, which no
    /// fresher state changes, and upstream asks them once.
    pub(super) fn refuse_for_good(&self, is_creation: bool) {
        if is_creation {
            self.context.refusal.note();
        }
    }

    /// What admission sees of an object.
    pub(super) fn seen<'o>(&self, object: &'o Value) -> Cow<'o, Value> {
        match self.scale {
            Some(paths) => Cow::Owned(paths.scale(object)),
            None => Cow::Borrowed(object),
        }
    }

    pub(super) fn attributes<'t>(
        &'t self,
        operation: Operation,
        name: &'t str,
        object: Option<&'t Value>,
        old: Option<&'t Value>,
    ) -> Attributes<'t> {
        let resource = &self.target.resource;
        let subresource = match self.scale {
            Some(_) => SCALE,
            None => &self.target.subresource,
        };
        Attributes {
            operation,
            resource,
            namespace: &self.target.namespace,
            name,
            subresource,
            kind: resource.subresource(subresource).and_then(Subresource::own_kind),
            object,
            old,
            user: &self.context.user,
            now: self.context.now,
            waited: &self.context.waited,
            recorder: self.context.recorder.as_deref(),
            dry_run: self.options.dry_run,
            options: match operation {
                Operation::Connect => Options::None,
                _ => Options::Write(self.options),
            },
        }
    }

    fn random_u64(&self) -> u64 {
        let mut bytes = [0; 8];
        (self.registry.entropy)(&mut bytes);
        u64::from_le_bytes(bytes)
    }
}

impl Registry {
    fn new_uid(&self) -> Str {
        let mut bytes = [0; 16];
        (self.entropy)(&mut bytes);
        uid::format(bytes).into()
    }
}

/// Gives a tree what every new object has, without asking anyone: for what the server itself makes.
pub(crate) fn begin(registry: &Registry, resource: &Resource, tree: &mut Value, now: Now) {
    resource.stamp(tree);
    metadata::begin(tree, resource.strategy.generation(), registry.new_uid(), now);
}
