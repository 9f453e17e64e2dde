//! Requests and limits of pods, and writes that change the spec of a pod on a node.

use std::collections::BTreeMap;

use pintle_meta::quantity::Quantity;
use pintle_meta::{Status, object};
use pintle_registry::Registry;
use pintle_registry::admission::{Attributes, Operation};
use pintle_value::{Map, Value};

use crate::{find, forbidden};

/// Amounts of resources by their names.
pub(crate) type Amounts = BTreeMap<String, Quantity>;

/// Reads a map of quantities; entries that are not quantities are left out.
pub(crate) fn amounts(map: Option<&Value>) -> Amounts {
    let members = map.and_then(Value::as_object).into_iter().flat_map(Map::iter);
    members.filter_map(|(name, amount)| Some((name.to_string(), read(amount)?))).collect()
}

/// Reads a quantity from a string or an integer.
pub(crate) fn read(amount: &Value) -> Option<Quantity> {
    match amount {
        Value::String(text) => text.parse().ok(),
        Value::Int(number) => number.to_string().parse().ok(),
        _ => None,
    }
}

/// Adds the amounts of `more` to those of `to`.
pub(crate) fn add(to: &mut Amounts, more: &Amounts) {
    for (name, amount) in more {
        add_one(to, name, *amount);
    }
}

/// Adds an amount, and returns the sum.
fn add_one(to: &mut Amounts, name: &str, amount: Quantity) -> Quantity {
    match to.get_mut(name) {
        Some(sum) => {
            *sum = *sum + amount;
            *sum
        }
        None => *to.entry(name.to_owned()).or_insert(amount),
    }
}

/// Raises each amount to that of `other` if it is smaller.
pub(crate) fn raise_to(to: &mut Amounts, other: &Amounts) {
    for (name, amount) in other {
        raise_one(to, name, *amount);
    }
}

fn raise_one(to: &mut Amounts, name: &str, amount: Quantity) {
    match to.get_mut(name) {
        Some(known) if *known < amount => *known = amount,
        Some(_) => {}
        None => _ = to.insert(name.to_owned(), amount),
    }
}

/// Returns the total `requests` or `limits` of a pod without its overhead: its pod-level amounts,
/// and for other resources the sum of its containers and restartable init containers, but at least
/// what any init container needs together with the restartable ones before it (upstream:
/// `PodRequests`, `PodLimits`).
pub(crate) fn total(pod: &Value, member: &str) -> Amounts {
    let of = |container: &Value| amounts(container.at(&["resources", member]));
    let mut sum = Amounts::new();
    for container in items(pod, &["spec", "containers"]) {
        add(&mut sum, &of(container));
    }
    let (mut restartable, mut largest) = (Amounts::new(), Amounts::new());
    for container in items(pod, &["spec", "initContainers"]) {
        let is_restartable = container.str_at(&["restartPolicy"]) == Some("Always");
        // Sums of other resources than the container's own were raised when they changed.
        for (name, amount) in of(container) {
            let needed = if is_restartable {
                add_one(&mut sum, &name, amount);
                add_one(&mut restartable, &name, amount)
            } else {
                restartable.get(&name).map_or(amount, |beside| *beside + amount)
            };
            raise_one(&mut largest, &name, needed);
        }
    }
    raise_to(&mut sum, &largest);
    // Pod-level amounts replace the sums of the containers.
    sum.extend(pod_level(pod, member));
    sum
}

/// Returns the pod-level `requests` or `limits` of the resources that can have them.
pub(crate) fn pod_level(pod: &Value, member: &str) -> Amounts {
    let mut pod_level = amounts(pod.at(&["spec", "resources", member]));
    pod_level.retain(|name, _| {
        matches!(name.as_str(), "cpu" | "memory") || name.starts_with("hugepages-")
    });
    pod_level
}

/// Returns the items of a list at a path; none if it is absent.
pub(crate) fn items<'a>(object: &'a Value, path: &[&str]) -> &'a [Value] {
    object.at(path).and_then(Value::as_array).unwrap_or_default()
}

/// An update that changes the spec of a pod on a node.
pub(crate) struct SpecChange<'a> {
    write: &'a Attributes<'a>,
    pub(crate) new: &'a Value,
    pub(crate) old: &'a Value,
    pub(crate) node_name: &'a str,
}

impl<'a> SpecChange<'a> {
    /// Returns the change of a write through one of these subresources; `""` is the pod itself.
    pub(crate) fn of(write: &'a Attributes<'a>, subresources: &[&str]) -> Option<Self> {
        let of = &write.resource.resource;
        let is_pod_update = write.operation == Operation::Update
            && of.resource == "pods"
            && of.group.is_empty()
            && subresources.contains(&write.subresource);
        let (new, old) = (write.object.filter(|_| is_pod_update)?, write.old()?);
        let node_name = new.str_at(&["spec", "nodeName"]).filter(|name| !name.is_empty())?;
        // Each change of the spec increments the generation.
        (object::generation(new) != object::generation(old)).then_some(Self {
            write,
            new,
            old,
            node_name,
        })
    }

    /// Returns the pod's node. A missing node is a refusal.
    pub(crate) fn node(&self, registry: &Registry) -> Result<Value, Status> {
        let name = self.node_name;
        let found = find(registry, ("", "nodes"), "", name)?;
        found.ok_or_else(|| self.refusal(&format!("node {name:?} not found")))
    }

    /// Refuses the change for this reason.
    pub(crate) fn refusal(&self, why: &str) -> Status {
        forbidden(self.write, self.new, why)
    }
}

#[cfg(test)]
mod tests {
    use pintle_value::json;

    use super::*;

    /// Amounts as `name=amount`.
    fn requests(pod: &str) -> Vec<String> {
        let pod = json::parse(pod.as_bytes()).expect(pod);
        total(&pod, "requests").iter().map(|(name, sum)| format!("{name}={sum}")).collect()
    }

    fn container(requests: &str, policy: &str) -> String {
        format!(r#"{{"restartPolicy":"{policy}","resources":{{"requests":{requests}}}}}"#)
    }

    #[test]
    fn init_containers_need_what_runs_beside_them() {
        let of = |containers: &[String], starting: &[String]| {
            let (containers, starting) = (containers.join(","), starting.join(","));
            requests(&format!(
                r#"{{"spec":{{"containers":[{containers}],"initContainers":[{starting}]}}}}"#
            ))
        };
        let (one, sidecar) = (|amounts| container(amounts, ""), |a| container(a, "Always"));
        for (containers, starting, expected) in [
            (vec![one(r#"{"cpu":"1"}"#); 2], vec![one(r#"{"cpu":"3"}"#)], "cpu=3"),
            (vec![one(r#"{"cpu":"1"}"#)], vec![sidecar(r#"{"cpu":"3"}"#)], "cpu=4"),
            // The sidecar runs beside the second init container, but not beside the first.
            (
                vec![one(r#"{"cpu":"1"}"#)],
                vec![one(r#"{"cpu":"5"}"#), sidecar(r#"{"cpu":"3"}"#), one(r#"{"cpu":"3"}"#)],
                "cpu=6",
            ),
            (
                vec![one(r#"{"cpu":"1"}"#)],
                vec![sidecar(r#"{"memory":"3"}"#), sidecar(r#"{"cpu":"1"}"#)],
                "cpu=2 memory=3",
            ),
        ] {
            assert_eq!(of(&containers, &starting).join(" "), expected, "{starting:?}");
        }
    }

    /// 30,000 sidecars with 30,000 resources are 900 million amounts.
    #[test]
    fn sums_of_sidecars_are_not_copied_for_each() {
        let sidecar = |n| container(&format!(r#"{{"example.com/r{n}":"1"}}"#), "Always");
        let starting: Vec<String> = (0..30_000).map(sidecar).collect();
        let pod = format!(r#"{{"spec":{{"initContainers":[{}]}}}}"#, starting.join(","));
        assert_eq!(requests(&pod).len(), 30_000);
    }
}
