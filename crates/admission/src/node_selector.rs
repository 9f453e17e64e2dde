//! PodNodeSelector: restricts pods to their namespace's nodes, which an annotation selects (as
//! upstream's plugin without a configuration file).

use pintle_meta::labels::Selector;
use pintle_meta::{GroupVersionResource, Status, object};
use pintle_registry::Registry;
use pintle_registry::admission::{Admission, Attributes, Hook, Hooks};
use pintle_value::{Map, Str, Value};

use crate::{creates, forbidden};

const ANNOTATION: &str = "scheduler.alpha.kubernetes.io/node-selector";

/// The plugin.
pub(crate) struct PodNodeSelector;

impl Admission for PodNodeSelector {
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
        let required = required_selector(write, registry)?;
        check(write, pod, &required)?;
        if required.is_empty() {
            return Ok(()); // An empty `nodeSelector` would make the next update change the pod.
        }
        let selector = pod.object_entry("spec").entry_object("nodeSelector");
        for (key, value) in required {
            selector.insert(key, value);
        }
        Ok(())
    }

    fn validate(&self, write: &Attributes<'_>, registry: &Registry) -> Result<(), Status> {
        if let Some(pod) = write.object.filter(|_| creates(write, "", "pods")) {
            check(write, pod, &required_selector(write, registry)?)?;
        }
        Ok(())
    }
}

/// The node labels of a write's namespace.
fn required_selector(write: &Attributes<'_>, registry: &Registry) -> Result<Map, Status> {
    let namespaces = registry.resource(&GroupVersionResource::new("", "v1", "namespaces"));
    let namespace = namespaces.and_then(|all| registry.peek(&all, "", write.namespace));
    let Some(namespace) = namespace else { return Ok(Map::new()) };
    let namespace = namespace.excerpt(&[&["metadata", "annotations", ANNOTATION]])?;
    labels(&namespace).map_err(Status::internal)
}

/// Refuses a pod whose node selector conflicts with its namespace's.
fn check(write: &Attributes<'_>, pod: &Value, required: &Map) -> Result<(), Status> {
    let selector = pod.at(&["spec", "nodeSelector"]).and_then(Value::as_object);
    let conflicts = |(key, value): (&Str, &Value)| {
        selector.and_then(|selector| selector.get(key)).is_some_and(|other| other != value)
    };
    if required.iter().any(conflicts) {
        let why = "pod node label selector conflicts with its namespace node label selector";
        return Err(forbidden(write, pod, why));
    }
    Ok(())
}

/// The node labels of a namespace.
fn labels(namespace: &Value) -> Result<Map, String> {
    let annotation = object::annotations(namespace).and_then(|all| all.get(ANNOTATION));
    let Some(text) = annotation.and_then(Value::as_str) else { return Ok(Map::new()) };
    let pairs = text.split(',').map(str::trim).filter(|pair| !pair.is_empty());
    let pairs = pairs.map(|pair| {
        let wrong = || format!("invalid selector: {pair}");
        let (key, value) = pair.split_once('=').ok_or_else(wrong)?;
        // Labels are validated as a selector.
        Selector::parse(pair).map_err(|why| why.to_string())?;
        Ok((key.trim().into(), Value::from(value.trim())))
    });
    pairs.collect()
}

#[cfg(test)]
mod tests {
    use pintle_value::json;

    use super::*;

    #[test]
    fn annotations_are_read() {
        for (text, expected) in [
            ("", Ok("{}")),
            ("a=b, c = d", Ok(r#"{"a":"b","c":"d"}"#)),
            ("a", Err("invalid selector: a")),
        ] {
            let mut namespace = Value::object();
            let annotations = object::metadata_mut(&mut namespace).entry_object("annotations");
            annotations.insert(ANNOTATION, text);
            let found = labels(&namespace).map(|found| json::to_string(&found.into()));
            let expected = expected.map(str::to_owned).map_err(str::to_owned);
            assert_eq!(found, expected, "{text}");
        }
    }
}
