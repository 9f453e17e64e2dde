//! Resources of the pod as a whole.

use std::collections::BTreeMap;

use pintle_meta::quantity::Quantity;

use super::{HUGE_PAGES, check_claims, check_requirements, parse, resource_name};
use crate::{
    field::{Errors, Field},
    pods::{total, validation::Spec},
};

/// Checks `resources` of the pod.
pub(in crate::pods::validation) fn check_pod(spec: &Spec<'_>, errors: &mut Errors) {
    let Some(resources) = spec.field.find("resources") else { return };
    if let Some(claims) = resources.find("claims") {
        errors.push(claims.forbidden("claims may not be set for Resources at pod-level"));
    }
    check_requirements(&resources, pod_name, spec.options, errors);
    check_claims(spec, &resources, errors);
    check_sums(spec.field, &resources, errors);
}

fn pod_name(field: &Field<'_>, name: &str, errors: &mut Errors) {
    let is_known = resource_name(field, name, errors);
    let is_supported = matches!(name, "cpu" | "memory") || name.starts_with(HUGE_PAGES);
    if is_known && !is_supported {
        let shown = name.into();
        errors.push(field.of(&shown).not_supported(&["cpu", HUGE_PAGES, "memory"]));
    }
}

/// Checks that a pod's requests are at least the sum of its containers' requests, and that no
/// container's limit exceeds the pod's.
fn check_sums(spec: &Field<'_>, resources: &Field<'_>, errors: &mut Errors) {
    let requests = resources.get("requests");
    for (name, sum) in total::of_containers(spec.value(), "requests") {
        let requested = requests.str(&name);
        if parse(requested).is_some_and(|requested| sum > requested) {
            let words =
                format!("must be greater than or equal to aggregate container requests of {sum}");
            errors.push(requests.key(&name).invalid_as(requested, words));
        }
    }
    // Amounts may be long texts, so those of the pod are parsed once.
    let most: BTreeMap<&str, (&str, Quantity)> = resources
        .map("limits")
        .iter()
        .filter_map(|(name, most)| Some((name.as_str(), most.as_str()?)))
        .filter_map(|(name, text)| Some((name, (text, parse(text)?))))
        .collect();
    for (i, container) in spec.items("containers").enumerate() {
        let limits = container.at(&["resources", "limits"]);
        for (name, limit) in limits.pairs() {
            let Some((text, most)) = most.get(name) else { continue };
            if parse(limit.text()).is_some_and(|limit| limit > *most) && !errors.is_full() {
                // This is upstream's path, although the container is not in `resources`.
                let path = resources.path().field("containers").index(i).key(name).field("limits");
                let words = format!("must be less than or equal to pod limits of {text}");
                errors.push(pintle_meta::field::Error::invalid(&path, limit.value(), words));
            }
        }
    }
}
