//! Pods of a runtime class get its overhead, and go where it runs (upstream: `RuntimeClass`).

use std::collections::BTreeSet;

use pintle_meta::{Quantity, Status};
use pintle_registry::Registry;
use pintle_registry::admission::{Admission, Attributes};
use pintle_value::{Map, Value, order::Ordered};

use crate::{creates, find, forbidden};

const MISMATCH: &str = "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead";

/// The plugin.
pub(crate) struct RuntimeClass;

impl Admission for RuntimeClass {
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
        let shaped = set_overhead(pod, &class).and_then(|()| set_scheduling(pod, &class));
        shaped.map_err(|why| forbidden(write, pod, &why))
    }

    fn validate(&self, write: &Attributes<'_>, registry: &Registry) -> Result<Vec<String>, Status> {
        let Some(pod) = write.object.filter(|_| creates(write, "", "pods")) else {
            return Ok(Vec::new());
        };
        let class = class(write, pod, registry)?;
        match (class.as_ref().and_then(overhead), own_overhead(pod)) {
            (None, None) => Ok(Vec::new()),
            (Some(wanted), Some(said)) if same_amounts(wanted, said) => Ok(Vec::new()),
            (Some(_), _) => Err(forbidden(write, pod, MISMATCH)),
            (None, Some(_)) => {
                let why = "pod rejected: Pod Overhead set without corresponding RuntimeClass defined \
                           Overhead";
                Err(forbidden(write, pod, why))
            }
        }
    }
}

/// The class that a pod names, which must be there.
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
    let Some(wanted) = overhead(class) else { return Ok(()) };
    if own_overhead(pod).is_some_and(|said| !same_amounts(wanted, said)) {
        return Err(MISMATCH.to_owned());
    }
    pod.object_entry("spec").insert("overhead", Value::Object(wanted.clone()));
    Ok(())
}

/// Whether the same resources are meant, in the same amounts.
fn same_amounts(a: &Map, b: &Map) -> bool {
    let amount = |value: &Value| value.as_str().and_then(|text| text.parse::<Quantity>().ok());
    a.len() == b.len()
        && a.iter().all(|(name, value)| b.get(name).is_some_and(|b| amount(b) == amount(value)))
}

fn set_scheduling(pod: &mut Value, class: &Value) -> Result<(), String> {
    let of_class = |member| class.at(&["scheduling", member]);
    let spec = pod.object_entry("spec");
    if let Some(wanted) = of_class("nodeSelector").and_then(Value::as_object) {
        let selector = spec.entry_object("nodeSelector");
        for (key, wanted) in wanted.iter() {
            if let Some(said) = selector.get(key).filter(|said| *said != wanted) {
                let [wanted, said] = [wanted, said].map(|v| v.as_str().unwrap_or_default());
                return Err(format!(
                    "conflict: runtimeClass.scheduling.nodeSelector[{key}] = {wanted}; \
                     pod.spec.nodeSelector[{key}] = {said}"
                ));
            }
            selector.insert(key.clone(), wanted.clone());
        }
    }
    let wanted = of_class("tolerations").and_then(Value::as_array).unwrap_or_default();
    if !wanted.is_empty() {
        let tolerations = spec.entry_or("tolerations", || Vec::<Value>::new().into());
        if let Some(tolerations) = tolerations.as_array_mut() {
            let known: BTreeSet<Ordered<&Value>> = tolerations.iter().map(Ordered).collect();
            let new: Vec<_> =
                wanted.iter().filter(|new| !known.contains(&Ordered(*new))).cloned().collect();
            tolerations.extend(new);
        }
    }
    Ok(())
}
