//! TaintNodesByCondition: taints new nodes as not ready.

use pintle_meta::Status;
use pintle_registry::Registry;
use pintle_registry::admission::{Admission, Attributes, Hook, Hooks};
use pintle_value::Value;

use crate::creates;

/// The plugin.
pub(crate) struct TaintNodesByCondition;

impl Admission for TaintNodesByCondition {
    fn hooks(&self) -> Hooks {
        Hooks::of(&[Hook::Mutate])
    }

    fn mutate(&self, write: &Attributes<'_>, node: &mut Value, _: &Registry) -> Result<(), Status> {
        if creates(write, "", "nodes") {
            taint(node);
        }
        Ok(())
    }
}

fn taint(node: &mut Value) {
    let [key, effect] = ["node.kubernetes.io/not-ready", "NoSchedule"];
    let taints = node.object_entry("spec").entry_or("taints", || Vec::<Value>::new().into());
    let Some(taints) = taints.as_array_mut() else { return };
    let is_it = |taint: &Value| {
        taint.str_at(&["key"]) == Some(key) && taint.str_at(&["effect"]) == Some(effect)
    };
    if !taints.iter().any(is_it) {
        taints.push(Value::from([("effect", effect), ("key", key)]));
    }
}
