//! What pods bear: for a while that their node is not ready or cannot be reached, and that it is kept for
//! those who ask for what it has (upstream: `DefaultTolerationSeconds`, `ExtendedResourceToleration`).

use std::collections::BTreeSet;

use pintle_meta::Status;
use pintle_registry::Registry;
use pintle_registry::admission::{Admission, Attributes, Operation};
use pintle_value::{Map, Str, Value};

use crate::is_of;
use crate::pods::items;

/// How long a pod that says nothing stays on a node that is not ready, or cannot be reached.
const SECONDS: i64 = 300;

const TAINTS: [&str; 2] = ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"];

/// The plugin.
pub(crate) struct DefaultTolerationSeconds;

impl Admission for DefaultTolerationSeconds {
    fn mutate(&self, write: &Attributes<'_>, pod: &mut Value, _: &Registry) -> Result<(), Status> {
        if is_of(write, "", "pods") && write.operation != Operation::Delete {
            TAINTS.into_iter().for_each(|taint| tolerate(pod, taint));
        }
        Ok(())
    }
}

/// The plugin that has pods bear taints named as the resources that they ask for.
pub(crate) struct ExtendedResourceToleration;

impl Admission for ExtendedResourceToleration {
    fn mutate(&self, write: &Attributes<'_>, pod: &mut Value, _: &Registry) -> Result<(), Status> {
        if is_of(write, "", "pods") && write.operation != Operation::Delete {
            tolerate_resources(pod);
        }
        Ok(())
    }
}

/// The resources besides Kubernetes' own that a pod's containers ask for.
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

/// Has a pod bear that nodes are kept for who asks for the resources that it asks for; what it says of that
/// itself is replaced.
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
        let wanted = new(key);
        let same = |part: &&str| other.get(part) == wanted.get(part);
        if ["effect", "key", "operator", "value"].iter().all(same) && names.remove(key) {
            *other = wanted;
        }
    }
    tolerations.extend(names.iter().map(|name| new(name)));
}

/// Has a pod bear a taint for a while, unless it says itself what to do about it.
fn tolerate(pod: &mut Value, taint: &str) {
    let tolerations =
        pod.object_entry("spec").entry_or("tolerations", || Vec::<Value>::new().into());
    let Some(tolerations) = tolerations.as_array_mut() else { return };
    let is = |toleration: &Value, member: &str, wanted: &str| {
        let said = toleration.str_at(&[member]).unwrap_or_default();
        said.is_empty() || said == wanted
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
    fn what_is_said_counts() {
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
    fn who_asks_for_a_resource_bears_its_taint() {
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
