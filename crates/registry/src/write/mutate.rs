//! What those whom users registered make of a new state: admission policies, webhooks.
//!
//! Each sees what the one before it left. If anybody changed the state, the plugins of the server are asked
//! once more what to make of it, for there may be containers now that were not there before; and then those
//! who want to be asked again (upstream: `plugin/webhook/.../reinvocationcontext.go`). After the last of them
//! it is decided whether the writer may grant what the state grants.

use std::collections::BTreeMap;

use pintle_meta::Status;
use pintle_value::{Value, json};

use super::{Draft, Write, metadata};
use crate::admission::{Memory, Operation};
use crate::measures::Phase;
use crate::request::{Body, Encoding, FieldValidation, WriteOptions};

/// Reads what somebody made of a state.
type ReadBack<'a> = dyn Fn(Value, &Value) -> Result<Value, Status> + Send + Sync + 'a;

impl Write<'_> {
    /// Has a new state of the stored form changed, by the server's own plugins and by those whom users
    /// registered, and refuses it where it grants rights that its writer does not have.
    pub(super) async fn change(
        &self,
        operation: Operation,
        name: &str,
        object: &mut Value,
        old: Option<&Value>,
    ) -> Result<(), Status> {
        let read = |changed, object: &Value| self.read_back(changed, object, old);
        self.change_by(operation, name, object, old, &read).await?;
        let (seen, before) = (self.seen(object), old.map(|old| self.seen(old)));
        let attributes = self.attributes(operation, name, Some(&seen), before.as_deref());
        match self.registry.admission.authorize(&attributes, self.registry) {
            Some(authorized) => authorized.await,
            None => Ok(()),
        }
    }

    /// Likewise, where `read` tells how what comes back is read, and nothing is granted.
    pub(super) async fn change_by(
        &self,
        operation: Operation,
        name: &str,
        object: &mut Value,
        old: Option<&Value>,
        read: &ReadBack<'_>,
    ) -> Result<(), Status> {
        let changed = async {
            self.admit(operation, name, object, old).await?;
            self.mutate(operation, name, object, old, read).await
        };
        self.registry.admission_phases.measured(Phase::Admit, operation, changed).await
    }

    async fn mutate(
        &self,
        operation: Operation,
        name: &str,
        object: &mut Value,
        old: Option<&Value>,
        read: &ReadBack<'_>,
    ) -> Result<(), Status> {
        let before = old.map(|old| self.seen(old));
        let before = before.as_deref();
        let asked = (operation, name, before);
        let mut memories = BTreeMap::new();
        self.mutate_once(asked, object, read, &mut memories, false).await?;
        if memories.values().any(|memory| memory.changed) {
            {
                let seen = self.seen(object);
                let attributes = self.attributes(operation, name, Some(&seen), before);
                self.registry.admission.admit(&attributes, self.registry)?;
            }
            self.shape(operation, name, object, before)?;
            self.mutate_once(asked, object, read, &mut memories, true).await?;
        }
        Ok(())
    }

    async fn mutate_once(
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
                let seen = self.seen(object);
                let attributes = self.attributes(operation, name, Some(&seen), before);
                match mutator.mutate(&attributes, self.registry, &mut memory) {
                    Some(mutated) => {
                        let mutated = mutated.await;
                        mutated.inspect_err(|_| self.refuse_for_good(before.is_none()))?
                    }
                    None => continue,
                }
            };
            self.context.warnings.extend(mutated.warnings);
            if let Some(changed) = mutated.object {
                *object = read(changed, object)?;
            }
            memory.leave(object);
            memories.insert(index, memory);
        }
        Ok(())
    }

    /// What somebody made of a state, read like what a client sends: checked against the schema, with
    /// its defaults set.
    fn read_back(
        &self,
        changed: Value,
        object: &Value,
        old: Option<&Value>,
    ) -> Result<Value, Status> {
        if let Some(paths) = self.scale {
            let mut tree = object.clone();
            paths.set(&mut tree, paths.wanted(&changed));
            return Ok(tree);
        }
        let body = Body { bytes: json::to_string(&changed).into(), encoding: Encoding::Json };
        // Nobody is told of what the schema does not have: it is not the client who said it.
        let options = WriteOptions {
            field_validation: Some(FieldValidation::Ignore),
            ..self.options.clone()
        };
        let Draft { mut tree, .. } = Write { options: &options, ..*self }.decode(&body)?;
        self.set_namespace(&mut tree)?;
        self.store_form(&mut tree, false);
        if let Some(old) = old {
            tree = self.confine(tree, old);
            metadata::carry_over(&mut tree, old);
        }
        Ok(tree)
    }
}
