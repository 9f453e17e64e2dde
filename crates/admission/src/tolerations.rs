//! Tolerations that pods get by default: for nodes that are not ready or unreachable, and for
//! nodes reserved for extended resources (upstream: `DefaultTolerationSeconds`,
//! `ExtendedResourceToleration`).

use std::collections::BTreeSet;

use pintle_meta::Status;
use pintle_registry::Registry;
use pintle_registry::admission::{Admission, Attributes, Hook, Hooks, Operation};
use pintle_value::{Map, Str, Value};

use crate::is_of;
use crate::pods::items;

/// How long a pod tolerates the taints by default, in seconds.
const SECONDS: i64 = 300;

const TAINTS: [&str; 2] = ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"];

/// The plugin.
pub(crate) struct DefaultTolerationSeconds;

impl Admission for DefaultTolerationSeconds {
    fn hooks(&self) -> Hooks {
        Hooks::of(&[Hook::Mutate])
    }

    fn mutate(&self, write: &Attributes<'_>, pod: &mut Value, _: &Registry) -> Result<(), Status> {
        if is_of(write, "", "pods") && write.operation != Operation::Delete {
            TAINTS.into_iter().for_each(|taint| tolerate(pod, taint));
        }
        Ok(())
    }
}

/// The plugin that adds tolerations of taints that are named like the extended resources which a
/// pod requests.
pub(crate) struct ExtendedResourceToleration;

impl Admission for ExtendedResourceToleration {
    fn hooks(&self) -> Hooks {
        Hooks::of(&[Hook::Mutate])
    }

    fn mutate(&self, write: &Attributes<'_>, pod: &mut Value, _: &Registry) -> Result<(), Status> {
        if is_of(write, "", "pods") && write.operation != Operation::Delete {
            tolerate_resources(pod);
        }
        Ok(())
    }
}

/// Returns the extended resources that a pod's containers request.
fn extended_resources(pod: &Value) -> BTreeSet<Str> {
    let containers =
        ["containers", "initContainers"].into_iter().flat_map(|all| items(pod, &["spec", all]));
    let requests =
        containers.filter_map(|one| one.at(&["resources", "requests"]).and_then(Value::as_object));
    let names = requests.flat_map(Map::keys);
    let is_extended = |name: &&Str| {
        name.contains('/') && !name.contains("kubernetes.io/") && !name.starts_with("requests.")
    };
    names.filter(is_extended).cloned().collect()
}

/// Adds a toleration for each requested extended resource; an equal toleration of the pod is
/// replaced.
fn tolerate_resources(pod: &mut Value) {
    let mut names = extended_resources(pod);
    if names.is_empty() {
        return;
    }
    let tolerations =
        pod.object_entry("spec").entry_or("tolerations", || Vec::<Value>::new().into());
    let Some(tolerations) = tolerations.as_array_mut() else { return };
    let new =
        |name: &str| Value::from([("effect", "NoSchedule"), ("key", name), ("operator", "Exists")]);
    for other in tolerations.iter_mut() {
        let key = other.str_at(&["key"]).unwrap_or_default();
        let expected = new(key);
        let same = |part: &&str| other.get(part) == expected.get(part);
        if ["effect", "key", "operator", "value"].iter().all(same) && names.remove(key) {
            *other = expected;
        }
    }
    tolerations.extend(names.iter().map(|name| new(name)));
}

/// Adds a toleration for a limited time, unless the pod has a toleration that matches the taint.
fn tolerate(pod: &mut Value, taint: &str) {
    let tolerations =
        pod.object_entry("spec").entry_or("tolerations", || Vec::<Value>::new().into());
    let Some(tolerations) = tolerations.as_array_mut() else { return };
    let is = |toleration: &Value, member: &str, expected: &str| {
        let value = toleration.str_at(&[member]).unwrap_or_default();
        value.is_empty() || value == expected
    };
    if tolerations.iter().any(|t| is(t, "key", taint) && is(t, "effect", "NoExecute")) {
        return;
    }
    tolerations.push(Value::from([
        ("effect", Value::from("NoExecute")),
        ("key", taint.into()),
        ("operator", "Exists".into()),
        ("tolerationSeconds", SECONDS.into()),
    ]));
}

#[cfg(test)]
mod tests {
    use pintle_value::json;

    use super::*;

    fn check(tolerations: &str, expected: &str) {
        let mut pod =
            json::parse(format!(r#"{{"spec":{{"tolerations":{tolerations}}}}}"#).as_bytes())
                .unwrap();
        TAINTS.into_iter().for_each(|taint| tolerate(&mut pod, taint));
        assert_eq!(json::to_string(pod.at(&["spec", "tolerations"]).unwrap()), expected);
    }

    #[test]
    fn default_tolerations_do_not_replace_those_of_the_pod() {
        let added = |taint: &str| {
            format!(
                r#"{{"effect":"NoExecute","key":"node.kubernetes.io/{taint}","operator":"Exists","tolerationSeconds":300}}"#
            )
        };
        let (not_ready, unreachable) = (added("not-ready"), added("unreachable"));
        check("[]", &format!("[{not_ready},{unreachable}]"));
        check(r#"[{"operator":"Exists"}]"#, r#"[{"operator":"Exists"}]"#);
        let other = r#"{"effect":"NoSchedule","operator":"Exists"}"#;
        check(&format!("[{other}]"), &format!("[{other},{not_ready},{unreachable}]"));
        let own = r#"{"key":"node.kubernetes.io/not-ready","operator":"Exists"}"#;
        check(&format!("[{own}]"), &format!("[{own},{unreachable}]"));
    }

    #[test]
    fn extended_resources_are_tolerated() {
        let text = r#"{"spec":{"containers":[{"resources":{"requests":{"b.com/x":"1","cpu":"1",
            "kubernetes.io/y":"1"}}}],"initContainers":[{"resources":{"requests":{"a.com/x":"1"}}}]}}"#;
        let mut pod = json::parse(text.as_bytes()).unwrap();
        for _ in 0..2 {
            tolerate_resources(&mut pod);
        }
        let added =
            |name: &str| format!(r#"{{"effect":"NoSchedule","key":"{name}","operator":"Exists"}}"#);
        let expected = format!("[{},{}]", added("a.com/x"), added("b.com/x"));
        assert_eq!(json::to_string(pod.at(&["spec", "tolerations"]).unwrap()), expected);
    }
}
