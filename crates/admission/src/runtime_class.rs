//! RuntimeClass: sets the overhead, node selector and tolerations of pods from their RuntimeClass
//! (upstream: `RuntimeClass`).

use std::collections::BTreeSet;

use pintle_meta::{Quantity, Status};
use pintle_registry::Registry;
use pintle_registry::admission::{Admission, Attributes, Hook, Hooks};
use pintle_value::{Map, Value, order::Ordered};

use crate::{creates, find, forbidden};

const MISMATCH: &str = "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead";

/// The plugin.
pub(crate) struct RuntimeClass;

impl Admission for RuntimeClass {
    fn hooks(&self) -> Hooks {
        Hooks::of(&[Hook::Mutate, Hook::Validate])
    }

    fn mutate(
        &self,
        write: &Attributes<'_>,
        pod: &mut Value,
        registry: &Registry,
    ) -> Result<(), Status> {
        if !creates(write, "", "pods") {
            return Ok(());
        }
        let Some(class) = class(write, pod, registry)? else { return Ok(()) };
        let result = set_overhead(pod, &class).and_then(|()| set_scheduling(pod, &class));
        result.map_err(|why| forbidden(write, pod, &why))
    }

    fn validate(&self, write: &Attributes<'_>, registry: &Registry) -> Result<(), Status> {
        let Some(pod) = write.object.filter(|_| creates(write, "", "pods")) else {
            return Ok(());
        };
        let class = class(write, pod, registry)?;
        match (class.as_ref().and_then(overhead), own_overhead(pod)) {
            (None, None) => Ok(()),
            (Some(expected), Some(given)) if same_amounts(expected, given) => Ok(()),
            (Some(_), _) => Err(forbidden(write, pod, MISMATCH)),
            (None, Some(_)) => {
                let why = "pod rejected: Pod Overhead set without corresponding RuntimeClass defined \
                           Overhead";
                Err(forbidden(write, pod, why))
            }
        }
    }
}

/// Returns the class that a pod names. A missing class is a refusal.
fn class(
    write: &Attributes<'_>,
    pod: &Value,
    registry: &Registry,
) -> Result<Option<Value>, Status> {
    let Some(name) = pod.str_at(&["spec", "runtimeClassName"]) else { return Ok(None) };
    let class = find(registry, ("node.k8s.io", "runtimeclasses"), "", name)?;
    let missing = || {
        let name = pintle_meta::quote::quote(name);
        forbidden(write, pod, &format!("pod rejected: RuntimeClass {name} not found"))
    };
    class.ok_or_else(missing).map(Some)
}

fn overhead(class: &Value) -> Option<&Map> {
    class.at(&["overhead", "podFixed"]).and_then(Value::as_object)
}

fn own_overhead(pod: &Value) -> Option<&Map> {
    pod.at(&["spec", "overhead"]).and_then(Value::as_object)
}

fn set_overhead(pod: &mut Value, class: &Value) -> Result<(), String> {
    let Some(expected) = overhead(class) else { return Ok(()) };
    if own_overhead(pod).is_some_and(|given| !same_amounts(expected, given)) {
        return Err(MISMATCH.to_owned());
    }
    pod.object_entry("spec").insert("overhead", Value::Object(expected.clone()));
    Ok(())
}

/// Whether both have the same resources in equal amounts.
fn same_amounts(a: &Map, b: &Map) -> bool {
    let amount = |value: &Value| value.as_str().and_then(|text| text.parse::<Quantity>().ok());
    a.len() == b.len()
        && a.iter().all(|(name, value)| b.get(name).is_some_and(|b| amount(b) == amount(value)))
}

fn set_scheduling(pod: &mut Value, class: &Value) -> Result<(), String> {
    let of_class = |member| class.at(&["scheduling", member]);
    let spec = pod.object_entry("spec");
    if let Some(expected) = of_class("nodeSelector").and_then(Value::as_object) {
        let selector = spec.entry_object("nodeSelector");
        for (key, expected) in expected.iter() {
            if let Some(given) = selector.get(key).filter(|given| *given != expected) {
                let [expected, given] = [expected, given].map(|v| v.as_str().unwrap_or_default());
                return Err(format!(
                    "conflict: runtimeClass.scheduling.nodeSelector[{key}] = {expected}; \
                     pod.spec.nodeSelector[{key}] = {given}"
                ));
            }
            selector.insert(key.clone(), expected.clone());
        }
    }
    let expected = of_class("tolerations").and_then(Value::as_array).unwrap_or_default();
    if !expected.is_empty() {
        let tolerations = spec.entry_or("tolerations", || Vec::<Value>::new().into());
        if let Some(tolerations) = tolerations.as_array_mut() {
            let known: BTreeSet<Ordered<&Value>> = tolerations.iter().map(Ordered).collect();
            let new: Vec<_> =
                expected.iter().filter(|new| !known.contains(&Ordered(*new))).cloned().collect();
            tolerations.extend(new);
        }
    }
    Ok(())
}
