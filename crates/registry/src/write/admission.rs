//! The calls of admission in the write path, in the order of a write. [`mutate`](super::mutate) has
//! the calls of webhooks and policies that may change the object.

use std::borrow::Cow;

use pintle_meta::Status;
use pintle_value::Value;

use super::Write;
use super::scale::SCALE;
use crate::admission::{Attributes, Operation, Options, Stored};
use crate::allocation::Companion;
use crate::definition::Subresource;
use crate::measures::Phase;

impl Write<'_> {
    /// Runs the admission plugins of the mutating phase: they may refuse the write, wait, and
    /// change the object.
    pub(super) async fn call_mutating_plugins(
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
        let before = old.map(|old| self.admission_view(old));
        let before = before.as_deref();
        {
            let seen = self.admission_view(object);
            let attributes = self.attributes(operation, name, Some(&seen), before);
            admission.before_mutation(&attributes, registry)?;
            if let Some(prerequisite) = admission.await_prerequisite(&attributes, registry) {
                prerequisite.await?;
            }
        }
        self.mutate_by_plugins(operation, name, object, before)
    }

    /// Runs the plugins' `mutate` on the object, unless admission sees a Scale in its place.
    pub(super) fn mutate_by_plugins(
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
        self.registry.admission.mutate(&attributes, object, self.registry)
    }

    /// Returns the changes that admission plugins want to commit with the write.
    pub(super) fn admission_companions(
        &self,
        operation: Operation,
        name: &str,
        object: Option<&Value>,
        old: Option<&Value>,
    ) -> Result<Vec<Companion>, Status> {
        let attributes = self.attributes(operation, name, object, old);
        self.registry.admission.before_commit(&attributes, self.registry)
    }

    /// Runs the validating phase. A stored kind's object has passed the kind's validation before.
    pub(super) async fn call_validating(
        &self,
        operation: Operation,
        name: &str,
        object: &Value,
        old: Option<&Value>,
    ) -> Result<(), Status> {
        let (seen, old) = (self.admission_view(object), old.map(|old| self.admission_view(old)));
        let attributes = self.attributes(operation, name, Some(&seen), old.as_deref());
        let reviewed = async {
            self.registry.admission.validate(&attributes, self.registry)?;
            if let Some(reviewed) =
                self.registry.admission.validate_registered(&attributes, self.registry)
            {
                let reviewed = reviewed.await;
                reviewed.inspect_err(|_| self.make_refusal_final(old.is_none()))?;
            }
            Ok(())
        };
        let phase = (Phase::Validate, operation);
        self.registry.admission_phases.measured(phase, &self.context.timing, reviewed).await
    }

    /// Makes the refusal of a create by a webhook or policy final. Both see only the object that
    /// the client sent, so a newer state would not change the refusal; and upstream calls each only
    /// once.
    pub(super) fn make_refusal_final(&self, is_creation: bool) {
        if is_creation {
            self.context.refusal.make_final();
        }
    }

    /// Returns the object as admission sees it: a Scale for the subresource `scale`.
    pub(super) fn admission_view<'o>(&self, object: &'o Value) -> Cow<'o, Value> {
        match self.scale {
            Some(paths) => Cow::Owned(paths.scale(object)),
            None => Cow::Borrowed(object),
        }
    }

    /// Returns the write as admission sees it.
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
            old: old.map(|old| old as &dyn Stored),
            user: &self.context.user,
            verb: self.context.verb,
            now: self.context.now,
            timing: &self.context.timing,
            recorder: self.context.recorder.as_deref(),
            warnings: &self.context.warnings,
            dry_run: self.options.dry_run,
            options: match operation {
                Operation::Connect => Options::None,
                _ => Options::Write(self.options),
            },
        }
    }
}
