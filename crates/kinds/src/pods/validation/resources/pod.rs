//! Resources of the pod as a whole.

use std::collections::BTreeMap;

use pintle_meta::quantity::Quantity;

use super::{HUGE_PAGES, check_requirements, parse, resource_name};
use crate::{
    place::{Errors, Place},
    pods::validation::{Spec, containers::is_sidecar},
};

/// Amounts by name.
type Amounts<'a> = BTreeMap<&'a str, Quantity>;

/// Checks `resources` of the pod.
pub(in crate::pods::validation) fn check_pod(spec: &Spec<'_>, errors: &mut Errors) {
    let Some(resources) = spec.place.find("resources") else { return };
    if let Some(claims) = resources.find("claims") {
        errors.push(claims.forbidden("claims cannot be set for Resources at pod-level"));
    }
    check_requirements(&resources, pod_name, spec.options, errors);
    check_sums(spec.place, &resources, errors);
}

fn pod_name(place: &Place<'_>, name: &str, errors: &mut Errors) {
    let is_known = resource_name(place, name, errors);
    let is_supported = matches!(name, "cpu" | "memory") || name.starts_with(HUGE_PAGES);
    if is_known && !is_supported {
        let shown = name.into();
        errors.push(place.of(&shown).not_supported(&["cpu", HUGE_PAGES, "memory"]));
    }
}

/// A pod must request what its containers request together, and none may have more than the pod.
fn check_sums(spec: &Place<'_>, resources: &Place<'_>, errors: &mut Errors) {
    let requests = resources.get("requests");
    for (name, sum) in container_requests(spec) {
        let asked = requests.str(name);
        let asked = if asked.is_empty() { "0" } else { asked };
        if parse(asked).is_some_and(|asked| sum > asked) {
            let words =
                format!("must be greater than or equal to aggregate container requests of {sum}");
            errors.push(requests.key(name).invalid_as(asked, words));
        }
    }
    for (i, container) in spec.items("containers").enumerate() {
        let limits = container.at(&["resources", "limits"]);
        for (name, limit) in limits.pairs() {
            let most = resources.map("limits").get(name).and_then(|most| most.as_str());
            let Some(most) = most else { continue };
            if parse(limit.text()).zip(parse(most)).is_some_and(|(limit, most)| limit > most) {
                // Upstream's path is this.
                let path = resources.path().field("containers").index(i).key(name).field("limits");
                let words = format!("must be less than or equal to pod limits of {most}");
                errors.push(pintle_meta::field::Error::invalid(&path, limit.value(), words));
            }
        }
    }
}

/// What the containers request together: those that run at once add up, and init containers, which
/// run before, need as much as the largest of them.
fn container_requests<'a>(spec: &'a Place<'_>) -> Amounts<'a> {
    let mut running = Amounts::new();
    for container in spec.items("containers") {
        add(&mut running, &requests(&container));
    }
    let (mut sidecars, mut starting) = (Amounts::new(), Amounts::new());
    for container in spec.items("initContainers") {
        let mut needed = requests(&container);
        if is_sidecar(container.value()) {
            add(&mut running, &needed);
            add(&mut sidecars, &needed);
            needed = sidecars.clone();
        } else {
            add(&mut needed, &sidecars);
        }
        raise(&mut starting, needed);
    }
    raise(&mut running, starting);
    running
}

fn requests<'a>(container: &Place<'a>) -> Amounts<'a> {
    let requests = container.value().at(&["resources", "requests"]);
    let members = requests.and_then(|requests| requests.as_object()).into_iter();
    let amounts = members.flat_map(|members| members.iter());
    amounts.filter_map(|(name, amount)| Some((name.as_str(), parse(amount.as_str()?)?))).collect()
}

fn add<'a>(sums: &mut Amounts<'a>, amounts: &Amounts<'a>) {
    for (name, amount) in amounts {
        let sum = sums.entry(name).or_insert(Quantity::ZERO);
        *sum = sum.checked_add(amount).unwrap_or(*sum);
    }
}

fn raise<'a>(most: &mut Amounts<'a>, amounts: Amounts<'a>) {
    for (name, amount) in amounts {
        let entry = most.entry(name).or_insert(amount);
        *entry = (*entry).max(amount);
    }
}
