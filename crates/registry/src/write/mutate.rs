//! The mutating phase: plugins, then the admission policies and webhooks that users registered.
//!
//! Each of them sees the object as the one before left it. If a policy or webhook changed the
//! object, the write path calls the plugins once more, for instance for added containers, and then
//! the policies and webhooks that ask for reinvocation (upstream:
//! `plugin/webhook/.../reinvocationcontext.go`). After the last change, admission refuses an object
//! that grants rights which its writer does not have.

use std::collections::BTreeMap;

use pintle_meta::Status;
use pintle_value::{Value, json};

use super::{Draft, Write, metadata};
use crate::admission::{Memory, Operation};
use crate::measures::Phase;
use crate::request::{Body, Encoding, FieldValidation, WriteOptions};

/// Decodes an object that a webhook or policy returned.
type ReadBack<'a> = dyn Fn(Value, &Value) -> Result<Value, Status> + Send + Sync + 'a;

impl Write<'_> {
    /// Runs the mutating phase on an object in the stored form, and refuses the result if it grants
    /// rights that its writer does not have.
    pub(super) async fn mutate(
        &self,
        operation: Operation,
        name: &str,
        object: &mut Value,
        old: Option<&Value>,
    ) -> Result<(), Status> {
        let read = |changed, object: &Value| self.read_back(changed, object, old);
        self.mutate_with(operation, name, object, old, &read).await?;
        let (seen, before) = (self.admission_view(object), old.map(|old| self.admission_view(old)));
        let attributes = self.attributes(operation, name, Some(&seen), before.as_deref());
        match self.registry.admission.after_mutation(&attributes, self.registry) {
            Some(checked) => checked.await,
            None => Ok(()),
        }
    }

    /// Runs the mutating phase without the check of rights that the object grants; `read` decodes
    /// the results of webhooks and policies.
    pub(super) async fn mutate_with(
        &self,
        operation: Operation,
        name: &str,
        object: &mut Value,
        old: Option<&Value>,
        read: &ReadBack<'_>,
    ) -> Result<(), Status> {
        let changed = async {
            self.call_mutating_plugins(operation, name, object, old).await?;
            self.mutate_by_registered(operation, name, object, old, read).await
        };
        let phase = (Phase::Admit, operation);
        self.registry.admission_phases.measured(phase, &self.context.timing, changed).await
    }

    /// Calls the webhooks and policies that users registered. If any of them changed the object,
    /// calls the plugins and those webhooks and policies again that ask for reinvocation.
    async fn mutate_by_registered(
        &self,
        operation: Operation,
        name: &str,
        object: &mut Value,
        old: Option<&Value>,
        read: &ReadBack<'_>,
    ) -> Result<(), Status> {
        let before = old.map(|old| self.admission_view(old));
        let before = before.as_deref();
        let call = (operation, name, before);
        let mut memories = BTreeMap::new();
        self.call_registered(call, object, read, &mut memories, false).await?;
        if memories.values().any(|memory| memory.changed) {
            {
                let seen = self.admission_view(object);
                let attributes = self.attributes(operation, name, Some(&seen), before);
                self.registry.admission.before_mutation(&attributes, self.registry)?;
            }
            self.mutate_by_plugins(operation, name, object, before)?;
            self.call_registered(call, object, read, &mut memories, true).await?;
        }
        Ok(())
    }

    async fn call_registered(
        &self,
        (operation, name, before): (Operation, &str, Option<&Value>),
        object: &mut Value,
        read: &ReadBack<'_>,
        memories: &mut BTreeMap<usize, Memory>,
        again: bool,
    ) -> Result<(), Status> {
        for (index, mutator) in self.registry.admission.mutators().iter().enumerate() {
            let mut memory = memories.remove(&index).unwrap_or_default();
            if again {
                memory.begin_again(object);
            }
            let mutated = {
                let seen = self.admission_view(object);
                let attributes = self.attributes(operation, name, Some(&seen), before);
                match mutator.mutate_registered(&attributes, self.registry, &mut memory) {
                    Some(mutated) => {
                        let mutated = mutated.await;
                        mutated.inspect_err(|_| self.make_refusal_final(before.is_none()))?
                    }
                    None => continue,
                }
            };
            if let Some(changed) = mutated {
                *object = read(changed, object)?;
            }
            memory.end_round(object);
            memories.insert(index, memory);
        }
        Ok(())
    }

    /// Decodes an object that a webhook or policy returned, as a client's body: against the schema,
    /// with defaults.
    fn read_back(
        &self,
        changed: Value,
        object: &Value,
        old: Option<&Value>,
    ) -> Result<Value, Status> {
        if let Some(paths) = self.scale {
            let mut tree = object.clone();
            paths.set(&mut tree, paths.replicas(&changed));
            return Ok(tree);
        }
        let body = Body { bytes: json::to_string(&changed).into(), encoding: Encoding::Json };
        // No warnings about unknown fields: the client did not send them.
        let options = WriteOptions {
            field_validation: Some(FieldValidation::Ignore),
            ..self.options.clone()
        };
        let Draft { mut tree, .. } = Write { options: &options, ..*self }.decode(&body)?;
        self.set_namespace(&mut tree)?;
        self.context.warnings.extend(metadata::deduplicate_owners(&mut tree, false));
        if old.is_none() {
            self.check_no_version(&tree)?;
        }
        self.store_form(&mut tree, false);
        if let Some(old) = old {
            tree = self.confine(tree, old);
            metadata::keep_immutable(&mut tree, old);
        }
        Ok(tree)
    }
}
