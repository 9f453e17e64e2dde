//! The sum of the resources of a pod's containers, and the defaults of pod-level resources.

use std::collections::BTreeMap;

use pintle_meta::quantity::Quantity;
use pintle_value::{Map, Value};

use super::validation::is_sidecar;
use crate::{
    checks::{items, members},
    defaults::{add_absent, is_filled},
};

/// Amounts by name.
type Amounts = BTreeMap<String, Quantity>;

const HUGE_PAGES: &str = "hugepages-";

/// Sets defaults of pod-level resources, if the pod has any: limits of huge pages are the sum of
/// the containers' limits; if there are limits, requests of CPU and memory are the sum of the
/// containers' requests, and requests that are still absent equal the limits (upstream:
/// `defaultHugePagePodLimits`, `defaultPodRequests`).
pub(super) fn set_defaults(spec: &mut Map) {
    let is_partial =
        |resources: &Map| ["limits", "requests"].iter().any(|l| is_filled(resources, l));
    let resources = spec.get("resources").and_then(Value::as_object);
    let Some(resources) = resources.filter(|resources| is_partial(resources)) else { return };
    let resources = Value::from(resources.clone());
    let (mut limits, mut requests) =
        (members(&resources, &["limits"]).clone(), members(&resources, &["requests"]).clone());
    let mut huge_pages = Map::new();
    for (name, sum) in
        together(items_of(spec, "containers"), items_of(spec, "initContainers"), "limits")
    {
        if name.starts_with(HUGE_PAGES) && !requests.contains_key(&name) {
            huge_pages.insert(name, sum.to_string());
        }
    }
    add_absent(&mut limits, &huge_pages);
    if !limits.is_empty() {
        let sums =
            together(items_of(spec, "containers"), items_of(spec, "initContainers"), "requests");
        let sums = sums.into_iter().filter(|(name, _)| matches!(name.as_str(), "cpu" | "memory"));
        for (name, sum) in sums {
            requests.entry_or(&name, || sum.to_string().into());
        }
        let mut supported = limits.clone();
        supported.retain(|name, _| is_supported(name));
        add_absent(&mut requests, &supported);
    }
    let resources = spec.entry_object("resources");
    for (list, amounts) in [("limits", limits), ("requests", requests)] {
        if !amounts.is_empty() {
            resources.insert(list, amounts);
        }
    }
}

fn is_supported(name: &str) -> bool {
    matches!(name, "cpu" | "memory") || name.starts_with(HUGE_PAGES)
}

fn items_of<'a>(spec: &'a Map, list: &str) -> &'a [Value] {
    spec.get(list).and_then(Value::as_array).unwrap_or_default()
}

/// The sum of the containers' requests or limits; `list` names which.
pub(super) fn of_containers(spec: &Value, list: &str) -> Amounts {
    together(items(spec, &["containers"]), items(spec, &["initContainers"]), list)
}

/// Adds the containers and the sidecars, which run concurrently. The other init containers run one
/// by one before the containers, so only the largest of them counts, with the sidecars that run
/// beside it.
fn together(containers: &[Value], starting: &[Value], list: &str) -> Amounts {
    let mut running = Amounts::new();
    for container in containers {
        for (name, amount) in amounts(container, list) {
            add_one(&mut running, &name, amount);
        }
    }
    let (mut sidecars, mut most) = (Amounts::new(), Amounts::new());
    for container in starting {
        // Sums of other resources than the container's own were raised when they changed.
        for (name, amount) in amounts(container, list) {
            let mut needed = amount;
            if is_sidecar(container) {
                add_one(&mut running, &name, amount);
                needed = add_one(&mut sidecars, &name, amount);
            } else if let Some(beside) = sidecars.get(&name) {
                needed = amount + *beside;
            }
            raise(&mut most, name, needed);
        }
    }
    most.into_iter().for_each(|(name, amount)| raise(&mut running, name, amount));
    running
}

fn amounts(container: &Value, list: &str) -> Amounts {
    let amounts = members(container, &["resources", list]).iter();
    let read = |amount: &Value| amount.as_str()?.parse().ok();
    amounts.filter_map(|(name, amount)| Some((name.to_string(), read(amount)?))).collect()
}

/// Adds an amount, and returns the sum.
fn add_one(sums: &mut Amounts, name: &str, amount: Quantity) -> Quantity {
    match sums.get_mut(name) {
        Some(sum) => {
            *sum = *sum + amount;
            *sum
        }
        None => *sums.entry(name.to_owned()).or_insert(amount),
    }
}

fn raise(most: &mut Amounts, name: String, amount: Quantity) {
    let entry = most.entry(name).or_insert(amount);
    *entry = (*entry).max(amount);
}

#[cfg(test)]
mod tests {
    use pintle_value::json;

    use super::*;

    #[test]
    fn sidecars_run_beside_containers_and_later_init_containers() {
        for (starting, expected) in [
            ("[]", "a:2"),
            (r#"[{"a":"1"}]"#, "a:2"),
            (r#"[{"a":"5","b":"1"}]"#, "a:5 b:1"),
            (r#"[{"sidecar":"","a":"3"}]"#, "a:5"),
            (r#"[{"a":"4"},{"sidecar":"","a":"1"}]"#, "a:4"),
            (r#"[{"sidecar":"","a":"1"},{"a":"4"}]"#, "a:5"),
            (r#"[{"sidecar":"","a":"1"},{"b":"1"},{"sidecar":"","b":"2"},{"b":"3"}]"#, "a:3 b:5"),
            (r#"[{"sidecar":"","a":"-1"},{"sidecar":"","a":"-1"},{"a":"1"}]"#, "a:0"),
        ] {
            let starting = json::parse(starting.as_bytes()).expect("JSON");
            let starting = starting.as_array().expect("a list").iter().cloned();
            let containers = starting.map(|mut amounts| {
                let is_sidecar = amounts.make_object().remove("sidecar").is_some();
                let policy = if is_sidecar { "Always" } else { "" };
                let resources = Value::from([("limits", amounts)]);
                Value::from([("restartPolicy", policy.into()), ("resources", resources)])
            });
            let two = Value::from([("limits", Value::from([("a", "2")]))]);
            let running = [Value::from([("resources", two)])];
            let sums = together(&running, &containers.collect::<Vec<_>>(), "limits");
            let sums: Vec<_> = sums.iter().map(|(name, sum)| format!("{name}:{sum}")).collect();
            assert_eq!(sums.join(" "), expected);
        }
    }
}
