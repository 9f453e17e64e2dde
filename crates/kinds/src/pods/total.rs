//! The sum of the resources of a pod's containers, and the defaults of pod-level resources.

use std::collections::BTreeMap;

use pintle_meta::quantity::Quantity;
use pintle_value::{Map, Value};

use super::validation::is_sidecar;
use crate::{
    checks::{items, members},
    defaults::is_filled,
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
    for (name, sum) in
        together(items_of(spec, "containers"), items_of(spec, "initContainers"), "limits")
    {
        let is_set = requests.contains_key(&name) || limits.contains_key(&name);
        if name.starts_with(HUGE_PAGES) && !is_set {
            limits.insert(name, sum.to_string());
        }
    }
    if !limits.is_empty() {
        let sums =
            together(items_of(spec, "containers"), items_of(spec, "initContainers"), "requests");
        let sums = sums.into_iter().filter(|(name, _)| matches!(name.as_str(), "cpu" | "memory"));
        for (name, sum) in sums {
            requests.entry_or(&name, || sum.to_string().into());
        }
        for (name, limit) in limits.iter().filter(|(name, _)| is_supported(name)) {
            requests.entry_or(name, || limit.clone());
        }
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
        add(&mut running, &amounts(container, list));
    }
    let (mut sidecars, mut most) = (Amounts::new(), Amounts::new());
    for container in starting {
        let mut needed = amounts(container, list);
        if is_sidecar(container) {
            add(&mut running, &needed);
            add(&mut sidecars, &needed);
            needed = sidecars.clone();
        } else {
            add(&mut needed, &sidecars);
        }
        raise(&mut most, needed);
    }
    raise(&mut running, most);
    running
}

fn amounts(container: &Value, list: &str) -> Amounts {
    let amounts = members(container, &["resources", list]).iter();
    let read = |amount: &Value| amount.as_str()?.parse().ok();
    amounts.filter_map(|(name, amount)| Some((name.to_string(), read(amount)?))).collect()
}

fn add(sums: &mut Amounts, amounts: &Amounts) {
    for (name, amount) in amounts {
        let sum = sums.get(name).map_or(Some(*amount), |sum| sum.checked_add(amount));
        if let Some(sum) = sum {
            sums.insert(name.clone(), sum);
        }
    }
}

fn raise(most: &mut Amounts, amounts: Amounts) {
    for (name, amount) in amounts {
        let entry = most.entry(name).or_insert(amount);
        *entry = (*entry).max(amount);
    }
}
