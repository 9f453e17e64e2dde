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
use crate::request::{Body, Encoding};

/// Reads what somebody made of a state.
type ReadBack<'a> = dyn Fn(Value, &Value) -> Result<Value, Status> + Send + Sync + 'a;

impl Write<'_> {
    /// Has a new state of the stored form changed, and refuses it where it grants rights that its writer
    /// does not have; gives warnings.
    pub(super) async fn mutate(
        &self,
        operation: Operation,
        name: &str,
        object: &mut Value,
        old: Option<&Value>,
    ) -> Result<Vec<String>, Status> {
        let read = |changed, object: &Value| self.read_back(changed, object, old);
        let warnings = self.mutate_by(operation, name, object, old, &read).await?;
        let (seen, before) = (self.seen(object), old.map(|old| self.seen(old)));
        let attributes = self.attributes(operation, name, Some(&seen), before.as_deref());
        self.registry.admission.authorize(&attributes, self.registry)?;
        Ok(warnings)
    }

    /// Likewise, where `read` tells how what comes back is read.
    pub(super) async fn mutate_by(
        &self,
        operation: Operation,
        name: &str,
        object: &mut Value,
        old: Option<&Value>,
        read: &ReadBack<'_>,
    ) -> Result<Vec<String>, Status> {
        let before = old.map(|old| self.seen(old));
        let before = before.as_deref();
        let asked = (operation, name, before);
        let mut memories = BTreeMap::new();
        let mut warnings = self.mutate_once(asked, object, read, &mut memories, false).await?;
        if memories.values().any(|memory| memory.changed) {
            {
                let seen = self.seen(object);
                let attributes = self.attributes(operation, name, Some(&seen), before);
                self.registry.admission.admit(&attributes, self.registry)?;
            }
            self.shape(operation, name, object, before)?;
            warnings.extend(self.mutate_once(asked, object, read, &mut memories, true).await?);
        }
        Ok(warnings)
    }

    async fn mutate_once(
        &self,
        (operation, name, before): (Operation, &str, Option<&Value>),
        object: &mut Value,
        read: &ReadBack<'_>,
        memories: &mut BTreeMap<usize, Memory>,
        again: bool,
    ) -> Result<Vec<String>, Status> {
        let mut warnings = Vec::new();
        for (place, mutator) in self.registry.admission.mutators().iter().enumerate() {
            let mut memory = memories.remove(&place).unwrap_or_default();
            if again {
                memory.begin_again(object);
            }
            let mutated = {
                let seen = self.seen(object);
                let attributes = self.attributes(operation, name, Some(&seen), before);
                match mutator.mutate(&attributes, self.registry, &mut memory) {
                    Some(mutated) => mutated.await?,
                    None => continue,
                }
            };
            warnings.extend(mutated.warnings);
            if let Some(changed) = mutated.object {
                *object = read(changed, object)?;
            }
            memory.leave(object);
            memories.insert(place, memory);
        }
        Ok(warnings)
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
        let Draft { mut tree, .. } = self.decode(&body)?;
        self.place(&mut tree)?;
        self.store_form(&mut tree, false);
        if let Some(old) = old {
            tree = self.confine(tree, old);
            metadata::carry_over(&mut tree, old);
        }
        Ok(tree)
    }
}
