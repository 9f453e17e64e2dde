//! Creation of objects: POST, and PUT or apply to a missing object.

use pintle_meta::{Reason, Status, names, object, uid};
use pintle_store::{Expect, Kind, Revision};
use pintle_value::{Str, Value};

use super::commit::Committed;
use super::update::copy_members;
use super::{Draft, Write, metadata};
use crate::admission::Operation;
use crate::request::{Body, Now, Target};
use crate::results::{Outcome, ResponseBody};
use crate::revision;
use crate::{Origin, Registry, Resource, work};

/// How many generated names are tried (META-30; upstream: maxNameGenerationCreateAttempts).
const NAME_ATTEMPTS_MAX: usize = 8;

/// How many retries after an allocation conflict: another object took the assigned value.
const ALLOCATION_CONFLICTS_MAX: usize = 100;

/// How many attempts while other writers change what the write depends on: its namespace, its
/// resource's definition, its quotas.
const COMPANION_CONFLICTS_MAX: usize = 1000;

/// The outcome of the creation of a decoded object.
enum Created {
    /// The object was created, or would be in a dry run.
    Done(Outcome),
    /// The name exists already.
    Taken {
        /// The error for a client.
        refusal: Status,
        /// Whether another name can be generated.
        is_generated: bool,
    },
}

/// The outcome of an attempt to commit a new object.
enum Attempt {
    /// The response.
    Done(ResponseBody),
    /// The name exists already.
    Taken,
    /// Another object took a value that was assigned to this one, or another companion of an object
    /// with assigned values conflicted.
    AllocationConflict,
}

impl Write<'_> {
    /// Handles POST to a collection.
    pub(crate) async fn create(&self, body: &Body) -> Result<Outcome, Status> {
        let mut attempts = NAME_ATTEMPTS_MAX;
        loop {
            work::ahead(self.target.resource.work(body.bytes.len())).await;
            match self.create_once(self.decode_new(body)?).await? {
                Created::Done(outcome) => return Ok(outcome),
                // Two generated names are hardly ever equal: a copy of each object would cost more
                // than to decode the body again, and to run admission again.
                Created::Taken { is_generated: true, .. } if attempts > 1 => attempts -= 1,
                Created::Taken { refusal, .. } => return Err(refusal),
            }
        }
    }

    /// Decodes a body with a new object.
    fn decode_new(&self, body: &Body) -> Result<Draft, Status> {
        let mut draft = self.decode(body)?;
        self.audit_object(&draft.tree);
        self.set_namespace(&mut draft.tree)?;
        self.check_no_version(&draft.tree)?;
        Ok(draft)
    }

    /// Refuses a new object with a resource version. In upstream the storage does, and a dry run
    /// does not reach the storage. Zero and what is not a number do not count as a version there
    /// (upstream: etcd3 store, `Create`).
    pub(super) fn check_no_version(&self, new: &Value) -> Result<(), Status> {
        let version = revision::parse(object::resource_version(new));
        let is_set = matches!(version, Ok(Some(revision)) if revision != Revision(0));
        if !is_set || self.options.dry_run {
            return Ok(());
        }
        let why = "resourceVersion should not be set on objects to be created";
        Err(Status::failure(Reason::Unknown, why))
    }

    /// Creates the object that the URL names: for PUT or apply to a missing object.
    pub(super) async fn create_draft(&self, draft: Draft) -> Result<Outcome, Status> {
        match self.create_once(draft).await? {
            Created::Done(outcome) => Ok(outcome),
            Created::Taken { refusal, .. } => Err(refusal),
        }
    }

    /// Creates a decoded object under its name, or under a generated one.
    async fn create_once(&self, draft: Draft) -> Result<Created, Status> {
        let resource = &self.target.resource;
        let mut tree = self.admitted(draft).await?;
        let base: Str = object::text(&tree, "generateName").into();
        // Admission may have named the object.
        let is_named_by_server = object::name(&tree).is_empty() && !base.is_empty();
        let is_generated = is_named_by_server && resource.strategy.generates_names();
        if is_named_by_server {
            let name = if is_generated { self.unused_name(&base) } else { base };
            object::set_text(&mut tree, "name", name);
        }
        // As in upstream, whose storages of subresources have no allocator, a create by a write of
        // the status assigns nothing. What the client itself names is allocated or refused.
        let assigns = self.target.subresource.is_empty() && resource.allocator.is_some();
        let mut conflicts = 0;
        loop {
            // Only a conflict about an assigned value is tried again here.
            let mut tree = if assigns { tree.clone() } else { std::mem::take(&mut tree) };
            if assigns {
                self.assign(&mut tree, None)?;
            }
            self.context.warnings.extend(resource.strategy.early_warnings(&tree));
            resource.strategy.prepare_create(&mut tree);
            resource.strategy.set_timestamps(&mut tree, None, self.context.now);
            self.validate(&tree, None)?;
            self.context.warnings.extend(resource.strategy.warnings(&tree, None));
            let name = object::name(&tree);
            self.call_validating(Operation::Create, name, &tree, None).await?;
            pintle_schema::drop_empty(&resource.schema, resource.stored_type(), &mut tree);
            match self.try_create(&tree).await? {
                Attempt::Done(body) => {
                    let committed = !self.options.dry_run;
                    let outcome = Outcome { created: true, committed, ..Outcome::ok(body) };
                    return Ok(Created::Done(outcome));
                }
                Attempt::Taken => {
                    let refusal = self.taken(&tree);
                    return Ok(Created::Taken { refusal, is_generated });
                }
                Attempt::AllocationConflict
                    if !assigns || conflicts == ALLOCATION_CONFLICTS_MAX =>
                {
                    return Err(self.stale());
                }
                Attempt::AllocationConflict => {
                    conflicts += 1;
                    self.registry.catch_up().await?;
                }
            }
        }
    }

    /// Returns a new object with its defaults, its owners, what admission changed, and the metadata
    /// that the server sets, except a generated name.
    async fn admitted(&self, draft: Draft) -> Result<Value, Status> {
        let Draft { mut tree, tracked, is_body } = draft;
        let resource = &self.target.resource;
        let given: Str = object::name(&tree).into();
        let is_labelled = object::labels(&tree).is_some_and(|labels| !labels.is_empty());
        self.store_form(&mut tree, tracked);
        self.context.warnings.extend(metadata::deduplicate_owners(&mut tree, is_body));
        // Fields that admission or the server sets have no owner.
        if !tracked {
            metadata::remove_system_fields(&mut tree);
            self.track(None, &mut tree).await;
        }
        self.mutate(Operation::Create, &given, &mut tree, None).await?;
        metadata::initialize(
            &mut tree,
            resource.strategy.generation(),
            self.registry.new_uid(),
            self.context.now,
        );
        let reset = resource.strategy.reset_fields();
        if !reset.is_empty() {
            let unset = pintle_schema::zero(&resource.schema, resource.stored_type());
            copy_members(&mut tree, &unset, reset);
        }
        let origin = Origin { author: &self.context.user, is_labelled };
        resource.strategy.record_origin(&mut tree, origin);
        Ok(tree)
    }

    /// Generates a name that no object has, if one of a few attempts finds it.
    fn unused_name(&self, base: &str) -> Str {
        let Target { resource, namespace, .. } = self.target;
        let mut name = names::generate(base, self.random_u64());
        for _ in 1..NAME_ATTEMPTS_MAX {
            if self.registry.peek(resource, namespace, &name).is_none() {
                break;
            }
            name = names::generate(base, self.random_u64());
        }
        name.into()
    }

    /// Lets the kind's allocator assign shared values to an object.
    pub(super) fn assign(&self, new: &mut Value, old: Option<&Value>) -> Result<(), Status> {
        match &self.target.resource.allocator {
            Some(allocator) => allocator.assign(self.registry, new, old, self.options.dry_run),
            None => Ok(()),
        }
    }

    /// Commits a new object.
    async fn try_create(&self, tree: &Value) -> Result<Attempt, Status> {
        let resource = &self.target.resource;
        let (namespace, name) = (self.target.namespace.as_str(), object::name(tree));
        if self.options.dry_run {
            let companions =
                self.admission_companions(Operation::Create, name, Some(tree), None)?;
            self.registry.dry_run_postings(&companions)?;
            if self.registry.peek(resource, namespace, name).is_some() {
                return Ok(Attempt::Taken);
            }
            return Ok(Attempt::Done(self.uncommitted(resource.read_back(tree.clone()).await?)));
        }
        let stored = resource.to_storage(tree).await?;
        for _ in 0..COMPANION_CONFLICTS_MAX {
            let mut companions =
                self.registry.companions(resource, None, Some(tree), self.context.now)?;
            companions.extend(self.admission_companions(
                Operation::Create,
                name,
                Some(tree),
                None,
            )?);
            companions.extend(self.registry.definer_precondition(resource, name)?);
            let (expect, kind) = (Expect::Absent, Kind::Created);
            match self.commit(name, &stored, expect, kind, companions).await? {
                Committed::Done(object) => return Ok(Attempt::Done(ResponseBody::Object(object))),
                Committed::Conflict => return Ok(Attempt::Taken),
                Committed::CompanionConflict if resource.allocator.is_some() => {
                    return Ok(Attempt::AllocationConflict);
                }
                // Nothing in the object depends on the companions, so only the commit is retried.
                Committed::CompanionConflict => self.registry.catch_up().await?,
            }
        }
        Err(self.stale())
    }

    /// Returns the error for an object whose name exists already (META-30, META-31, DEL-13). As in
    /// upstream, an object with a `generateName` counts as one whose name was generated.
    fn taken(&self, tree: &Value) -> Status {
        let resource = &self.target.resource;
        let (mut taken, name) = (resource.group_resource(), object::name(tree));
        let mut status = if object::text(tree, "generateName").is_empty() {
            Status::already_exists(&taken, name)
        } else {
            // Upstream names the group of the stored kind, which differs for one kind: Event.
            taken.group = resource.storage_kind.group.clone();
            Status::generate_name_conflict(&taken, name, 1)
        };
        let existing = self.registry.peek(resource, &self.target.namespace, name);
        let existing = existing.and_then(|existing| existing.tree().ok());
        if existing.is_some_and(|existing| object::is_terminating(&existing)) {
            status.message = format!("object is being deleted: {}", status.message);
        }
        status
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

/// Sets the metadata of a new object that the server itself creates.
pub(super) fn initialize(registry: &Registry, resource: &Resource, tree: &mut Value, now: Now) {
    resource.stamp(tree);
    metadata::initialize(tree, resource.strategy.generation(), registry.new_uid(), now);
}
