//! The interface of admission: plugins that may change or refuse a write after it is authorized.
//! [`Admission`] has one hook for each step of a write, in their order.

use std::collections::BTreeSet;
use std::sync::Arc;

use pintle_meta::{GroupVersionKind, Status, User, field::Errors};
use pintle_trace::Timing;
use pintle_value::Value;

use crate::allocation::Companion;
pub use crate::operation::Operation;
use crate::request::{DeleteOptions, Now, Recorder, Warnings, WriteOptions};
pub use crate::results::Waited;
use crate::{Registry, Resource, Verb};

/// A write as admission sees it.
pub struct Attributes<'a> {
    /// The operation.
    pub operation: Operation,
    /// The resource.
    pub resource: &'a Resource,
    /// The namespace, `""` for cluster-scoped resources.
    pub namespace: &'a str,
    /// The object's name; `""` before it is generated.
    pub name: &'a str,
    /// The subresource, or `""`.
    pub subresource: &'a str,
    /// The kind of the written object, if it is not the resource's own: a Scale, or the object of
    /// an action.
    pub kind: Option<&'a GroupVersionKind>,
    /// The new object in its stored form, or a Scale, the object of an action, or the options of a
    /// connection; `None` in deletions and in [`Admission::mutate`].
    pub object: Option<&'a Value>,
    pub(crate) old: Option<&'a dyn Stored>,
    /// The user who writes.
    pub user: &'a User,
    /// The verb of the request; `None` for the server's own writes.
    pub verb: Option<Verb>,
    /// The time of the write.
    pub now: Now,
    /// How long the request spends in each layer.
    pub timing: &'a Timing,
    /// Records the request, if it is audited.
    pub recorder: Option<&'a dyn Recorder>,
    /// Takes texts for `Warning` headers. The client gets them also if the write is refused.
    pub warnings: &'a Warnings,
    /// Whether the write is not committed.
    pub dry_run: bool,
    /// The options of the request.
    pub options: Options<'a>,
}

impl<'a> Attributes<'a> {
    /// Returns the stored object, in updates and deletions. A deletion decodes it at the first call,
    /// so code that does not need it should not ask for it.
    pub fn old(&self) -> Option<&'a Value> {
        self.old.map(Stored::tree)
    }

    /// Whether there is a stored object: in updates and deletions.
    pub const fn has_old(&self) -> bool {
        self.old.is_some()
    }
}

/// A stored object that can be asked for its tree.
pub(crate) trait Stored: Sync {
    /// Returns all of the object.
    fn tree(&self) -> &Value;
}

impl Stored for Value {
    fn tree(&self) -> &Value {
        self
    }
}

/// The options of a write, as the client gave them.
#[derive(Clone, Copy)]
pub enum Options<'a> {
    /// Of a create, an update or a patch.
    Write(&'a WriteOptions),
    /// Of a deletion.
    Delete(&'a DeleteOptions),
    /// None: a connection has no options of a write.
    None,
}

/// The state of one [`Admission::mutate_registered`] over its two rounds in a write. The second
/// round happens if any webhook or policy changed the object in the first. It calls only webhooks
/// and policies that ask for reinvocation and have not seen the last change (upstream:
/// `ReinvocationContext`).
#[derive(Debug, Default)]
pub struct Memory {
    /// Whether this is the second round.
    pub again: bool,
    /// Whether a webhook or policy changed the object.
    pub changed: bool,
    /// The object after the first round.
    left: Option<Value>,
    /// The keys of the webhooks and policies that were called and ask for reinvocation.
    reinvocable: BTreeSet<String>,
    /// The keys of the webhooks and policies that are called in the second round.
    due: BTreeSet<String>,
}

impl Memory {
    /// Records a change of the object, so the webhooks and policies that were called before and ask
    /// for reinvocation are called again.
    pub fn wake(&mut self) {
        self.changed = true;
        self.due.append(&mut self.reinvocable);
    }

    /// Records a call of a webhook or policy that asks for reinvocation.
    pub fn note(&mut self, key: String) {
        self.reinvocable.insert(key);
    }

    /// Whether a webhook or policy is called in this round.
    pub fn is_due(&self, key: &str) -> bool {
        !self.again || self.due.contains(key)
    }

    /// Begins the second round, with an object that other plugins may have changed since the first.
    pub(crate) fn begin_again(&mut self, object: &Value) {
        self.again = true;
        if self.left.as_ref() != Some(object) {
            self.due.append(&mut self.reinvocable);
        }
    }

    /// Ends a round with this object.
    pub(crate) fn end_round(&mut self, object: &Value) {
        // The copy is needed only if a webhook or policy asks for reinvocation.
        self.left = (!self.reinvocable.is_empty()).then(|| object.clone());
    }
}

/// The hooks of [`Admission`], in the order in which a write calls them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hook {
    /// [`Admission::before_mutation`].
    BeforeMutation,
    /// [`Admission::await_prerequisite`].
    AwaitPrerequisite,
    /// [`Admission::mutate`].
    Mutate,
    /// [`Admission::mutate_registered`].
    MutateRegistered,
    /// [`Admission::after_mutation`].
    AfterMutation,
    /// [`Admission::validate_fields`].
    ValidateFields,
    /// [`Admission::validate`].
    Validate,
    /// [`Admission::validate_registered`].
    ValidateRegistered,
    /// [`Admission::before_commit`].
    BeforeCommit,
}

impl Hook {
    /// All hooks.
    pub const ALL: [Self; 9] = [
        Self::BeforeMutation,
        Self::AwaitPrerequisite,
        Self::Mutate,
        Self::MutateRegistered,
        Self::AfterMutation,
        Self::ValidateFields,
        Self::Validate,
        Self::ValidateRegistered,
        Self::BeforeCommit,
    ];
}

/// A set of hooks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hooks(u16);

impl Hooks {
    /// The set of these hooks.
    pub const fn of(hooks: &[Hook]) -> Self {
        let (mut set, mut index) = (0, 0);
        while index < hooks.len() {
            set |= 1 << hooks[index] as u16;
            index += 1;
        }
        Self(set)
    }

    /// This set and another hook.
    #[must_use]
    pub const fn with(self, hook: Hook) -> Self {
        Self(self.0 | 1 << hook as u16)
    }

    /// Whether the set contains a hook.
    pub const fn has(self, hook: Hook) -> bool {
        self.0 & 1 << hook as u16 != 0
    }
}

/// The hooks of admission, in the order in which a write calls them.
pub trait Admission: Send + Sync {
    /// The hooks that the plugin implements. A [`Chain`] calls no other hooks of the plugin.
    fn hooks(&self) -> Hooks;

    /// Refuses a write, or lets it pass. Called for the object as the client sent it, and again
    /// after a webhook or policy changed it.
    fn before_mutation(&self, _: &Attributes<'_>, _: &Registry) -> Result<(), Status> {
        Ok(())
    }

    /// Waits for a prerequisite of the mutation, such as the default ServiceAccount.
    fn await_prerequisite<'a>(
        &'a self,
        _: &'a Attributes<'a>,
        _: &'a Registry,
    ) -> Option<Waited<'a, ()>> {
        None
    }

    /// Changes the object, or refuses the write. The object is the second argument: in the
    /// attributes, [`Attributes::object`] is `None`. Fields that are set here have no owner.
    fn mutate(&self, _: &Attributes<'_>, _: &mut Value, _: &Registry) -> Result<(), Status> {
        Ok(())
    }

    /// Calls the webhooks and policies that users registered to change the object; `None` if none
    /// matches. Returns the changed object in the version of the write's resource, or `None` if it
    /// is unchanged. The write path reads it against its schema and sets defaults.
    fn mutate_registered<'a>(
        &'a self,
        _: &'a Attributes<'a>,
        _: &'a Registry,
        _: &'a mut Memory,
    ) -> Option<Waited<'a, Option<Value>>> {
        None
    }

    /// The members of a chain whose [`Admission::mutate_registered`] a write calls, one after the
    /// other.
    fn mutators(&self) -> &[Arc<dyn Admission>] {
        &[]
    }

    /// Refuses an object if it grants rights that its writer does not have; `None` if the object
    /// grants no rights. Called after the last change and before validation (upstream: the storage
    /// of roles and bindings).
    fn after_mutation<'a>(
        &'a self,
        _: &'a Attributes<'a>,
        _: &'a Registry,
    ) -> Option<Waited<'a, ()>> {
        None
    }

    /// Adds errors that the validation of the object's kind cannot find.
    fn validate_fields(&self, _: &Attributes<'_>, _: &mut Errors) {}

    /// Refuses a valid object, or lets it pass.
    fn validate(&self, _: &Attributes<'_>, _: &Registry) -> Result<(), Status> {
        Ok(())
    }

    /// Calls the webhooks and policies that users registered to validate the object; `None` if none
    /// matches.
    fn validate_registered<'a>(
        &'a self,
        _: &'a Attributes<'a>,
        _: &'a Registry,
    ) -> Option<Waited<'a, ()>> {
        None
    }

    /// The changes that must be committed together with the write.
    fn before_commit(&self, _: &Attributes<'_>, _: &Registry) -> Result<Vec<Companion>, Status> {
        Ok(Vec::new())
    }
}

/// The admission chain: each hook calls the members that implement it, in order. The exception is
/// [`Admission::mutate_registered`]: the write calls it for each of [`Admission::mutators`].
pub struct Chain {
    /// The members that implement each hook.
    members: [Vec<Arc<dyn Admission>>; Hook::ALL.len()],
}

impl Chain {
    /// A chain of these members.
    pub fn new(members: impl IntoIterator<Item = Box<dyn Admission>>) -> Self {
        let mut chain = Self { members: Default::default() };
        for member in members.into_iter().map(Arc::from) {
            let member: Arc<dyn Admission> = member;
            for hook in Hook::ALL.into_iter().filter(|hook| member.hooks().has(*hook)) {
                chain.members[hook as usize].push(member.clone());
            }
        }
        chain
    }

    /// The members that implement a hook.
    fn with(&self, hook: Hook) -> &[Arc<dyn Admission>] {
        &self.members[hook as usize]
    }
}

impl Admission for Chain {
    fn hooks(&self) -> Hooks {
        Hooks::of(&Hook::ALL)
    }

    fn before_mutation(
        &self,
        attributes: &Attributes<'_>,
        registry: &Registry,
    ) -> Result<(), Status> {
        let mut members = self.with(Hook::BeforeMutation).iter();
        members.try_for_each(|one| one.before_mutation(attributes, registry))
    }

    fn mutate(
        &self,
        attributes: &Attributes<'_>,
        object: &mut Value,
        registry: &Registry,
    ) -> Result<(), Status> {
        let mut members = self.with(Hook::Mutate).iter();
        members.try_for_each(|one| one.mutate(attributes, object, registry))
    }

    fn await_prerequisite<'a>(
        &'a self,
        attributes: &'a Attributes<'a>,
        registry: &'a Registry,
    ) -> Option<Waited<'a, ()>> {
        let members = self.with(Hook::AwaitPrerequisite).iter();
        in_order(members.filter_map(|one| one.await_prerequisite(attributes, registry)))
    }

    fn mutators(&self) -> &[Arc<dyn Admission>] {
        self.with(Hook::MutateRegistered)
    }

    fn after_mutation<'a>(
        &'a self,
        attributes: &'a Attributes<'a>,
        registry: &'a Registry,
    ) -> Option<Waited<'a, ()>> {
        let members = self.with(Hook::AfterMutation).iter();
        in_order(members.filter_map(|one| one.after_mutation(attributes, registry)))
    }

    fn validate_fields(&self, attributes: &Attributes<'_>, errors: &mut Errors) {
        for one in self.with(Hook::ValidateFields) {
            one.validate_fields(attributes, errors);
        }
    }

    fn validate(&self, attributes: &Attributes<'_>, registry: &Registry) -> Result<(), Status> {
        let mut members = self.with(Hook::Validate).iter();
        members.try_for_each(|one| one.validate(attributes, registry))
    }

    fn validate_registered<'a>(
        &'a self,
        attributes: &'a Attributes<'a>,
        registry: &'a Registry,
    ) -> Option<Waited<'a, ()>> {
        let members = self.with(Hook::ValidateRegistered).iter();
        in_order(members.filter_map(|one| one.validate_registered(attributes, registry)))
    }

    fn before_commit(
        &self,
        attributes: &Attributes<'_>,
        registry: &Registry,
    ) -> Result<Vec<Companion>, Status> {
        let mut companions = Vec::new();
        for one in self.with(Hook::BeforeCommit) {
            companions.extend(one.before_commit(attributes, registry)?);
        }
        Ok(companions)
    }
}

/// Waits for the members that wait, in order. The first error ends it.
fn in_order<'a>(mut waits: impl Iterator<Item = Waited<'a, ()>>) -> Option<Waited<'a, ()>> {
    let first = waits.next()?;
    let others: Vec<_> = waits.collect();
    if others.is_empty() {
        return Some(first);
    }
    Some(Box::pin(async move {
        first.await?;
        for wait in others {
            wait.await?;
        }
        Ok(())
    }))
}

/// Admits every write.
pub struct AdmitAll;

impl Admission for AdmitAll {
    fn hooks(&self) -> Hooks {
        Hooks::default()
    }
}
