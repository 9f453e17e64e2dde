//! Names and amounts of resources, in LimitRanges, ResourceQuotas, Nodes and other objects.

use std::cmp::Ordering;

use pintle_meta::{names, quantity::Quantity};

use crate::{
    checks::NOT_NEGATIVE,
    field::{Errors, Field},
};

const OF_CONTAINERS: &[&str] = &["cpu", "memory", "ephemeral-storage"];

/// Resources that a quota can count.
const COUNTED: &[&str] = &[
    "pods",
    "resourcequotas",
    "services",
    "replicationcontrollers",
    "secrets",
    "configmaps",
    "persistentvolumeclaims",
    "services.nodeports",
    "services.loadbalancers",
];

const COMPUTED: &[&str] = &[
    "cpu",
    "memory",
    "ephemeral-storage",
    "requests.cpu",
    "requests.memory",
    "requests.ephemeral-storage",
    "limits.cpu",
    "limits.memory",
    "limits.ephemeral-storage",
];

const HUGE_PAGES: &str = "hugepages-";
const QUOTA_HUGE_PAGES: &str = "requests.hugepages-";

fn is_huge(name: &str) -> bool {
    name.starts_with(HUGE_PAGES)
}

/// Whether the name is a standard resource of quotas.
pub(crate) fn is_quota_name(name: &str) -> bool {
    let lists = [COUNTED, COMPUTED];
    lists.iter().any(|known| known.contains(&name))
        || name == "requests.storage"
        || is_quota_huge(name)
}

fn is_quota_huge(name: &str) -> bool {
    is_huge(name) || name.starts_with(QUOTA_HUGE_PAGES)
}

/// Whether the name is a compute resource that scopes of running pods can limit.
pub(crate) fn is_scoped(name: &str) -> bool {
    COMPUTED.contains(&name) && !name.ends_with("ephemeral-storage")
}

/// The rule for any resource: a standard name or one with a domain.
pub(crate) fn any_name(field: &Field<'_>, name: &str, errors: &mut Errors) -> bool {
    let wrong = names::qualified_name(name);
    let is_right = wrong.is_empty();
    field.all_invalid_as(name, wrong, errors);
    if is_right && !name.contains('/') && !is_quota_name(name) && name != "storage" {
        let words = "must be a standard resource type or fully qualified";
        errors.push(field.invalid_as(name, words));
        return false;
    }
    is_right
}

/// The rule for resources that a quota can limit.
pub(crate) fn quota_name(field: &Field<'_>, name: &str, errors: &mut Errors) {
    any_name(field, name, errors);
    if !name.contains('/') && !is_quota_name(name) {
        errors.push(field.invalid_as(name, "must be a standard resource for quota"));
    }
}

/// The rule for resources that containers request.
pub(crate) fn container_name(field: &Field<'_>, name: &str, errors: &mut Errors) {
    any_name(field, name, errors);
    if !name.contains('/') {
        if !OF_CONTAINERS.contains(&name) && !is_huge(name) {
            errors.push(field.invalid_as(name, "must be a standard resource for containers"));
        }
    } else if !is_native(name) && !is_extended(name) {
        errors.push(field.invalid_as(name, "doesn't follow extended resource name standard"));
    }
}

fn is_native(name: &str) -> bool {
    !name.contains('/') || name.contains("kubernetes.io/")
}

/// Whether the name is an extended resource, which has a domain outside Kubernetes.
pub(crate) fn is_extended(name: &str) -> bool {
    let quota = format!("requests.{name}");
    !is_native(name) && !name.starts_with("requests.") && names::qualified_name(&quota).is_empty()
}

/// Whether the resource may be overcommitted.
pub(crate) fn is_shareable(name: &str) -> bool {
    is_native(name) && !is_huge(name)
}

/// The amount may not be negative, and for some resources it must be a whole number.
pub(crate) fn amount(field: &Field<'_>, name: &str, errors: &mut Errors) {
    let Some(quantity) = parse(field) else { return };
    if quantity.signum() < 0 {
        errors.push(field.invalid(NOT_NEGATIVE));
    }
    let is_counted = COUNTED.contains(&name) || is_extended(name);
    if is_counted && !quantity.is_whole() {
        errors.push(field.invalid("must be an integer"));
    }
}

/// The amount, or `None` if the text is not a quantity.
pub(crate) fn parse(field: &Field<'_>) -> Option<Quantity> {
    field.text().parse().ok()
}

/// Compares two amounts, if both are present.
pub(crate) fn compare(a: &Field<'_>, b: &Field<'_>) -> Option<Ordering> {
    Some(parse(a)?.cmp(&parse(b)?))
}
