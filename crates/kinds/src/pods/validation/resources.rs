//! Requests and limits of containers and pods.

mod pod;

use std::collections::{BTreeMap, BTreeSet};

use pintle_meta::{
    field::{self, Error},
    names,
    quantity::Quantity,
};

use super::{Options, Spec};
use crate::{
    checks::NOT_NEGATIVE,
    field::{Errors, Field},
};

pub(super) use pod::check_pod;

/// A rule for names of resources.
type NameRule = fn(&Field<'_>, &str, &mut Errors);

/// Checks a container's `resources`.
pub(super) fn check_container(spec: &Spec<'_>, container: &Field<'_>, errors: &mut Errors) {
    if let Some(resources) = container.find("resources") {
        check_requirements(&resources, container_name, spec.options, errors);
        check_claims(spec, &resources, errors);
    }
}

/// Checks the overhead of the pod.
pub(super) fn check_overhead(spec: &Spec<'_>, errors: &mut Errors) {
    if let Some(overhead) = spec.field.find("overhead") {
        let mut kinds = Kinds::default();
        check_list(&overhead.under("limits"), container_name, spec.options, &mut kinds, errors);
        kinds.check(&overhead, errors);
    }
}

/// Checks the overhead of a class of pods. Upstream checks it as limits.
pub(crate) fn check_fixed_overhead(overhead: &Field<'_>, errors: &mut Errors) {
    let (fixed, mut kinds) = (overhead.get("podFixed"), Kinds::default());
    check_list(&fixed.called("limits"), container_name, Options::default(), &mut kinds, errors);
    kinds.check(overhead, errors);
}

/// Checks requests and limits, and that requests are within limits.
fn check_requirements(
    resources: &Field<'_>,
    rule: NameRule,
    options: Options,
    errors: &mut Errors,
) {
    let (limits, requests) = (resources.get("limits"), resources.get("requests"));
    let mut kinds = Kinds::default();
    check_list(&limits, rule, options, &mut kinds, errors);
    for (name, request) in requests.pairs() {
        check_amount(name, &request, rule, errors);
        let limit = resources.map("limits").get(name).and_then(|limit| limit.as_str());
        check_within(name, &request, limit, [&requests, &limits], errors);
        check_huge_page(name, &request, options, errors);
        kinds.add(name);
    }
    kinds.check(resources, errors);
}

fn check_list(
    list: &Field<'_>,
    rule: NameRule,
    options: Options,
    kinds: &mut Kinds,
    errors: &mut Errors,
) {
    for (name, amount) in list.pairs() {
        check_amount(name, &amount, rule, errors);
        check_huge_page(name, &amount, options, errors);
        kinds.add(name);
    }
}

fn check_amount(name: &str, amount: &Field<'_>, rule: NameRule, errors: &mut Errors) {
    rule(amount, name, errors);
    let Some(quantity) = parse(amount.text()) else { return };
    if quantity.signum() < 0 {
        errors.push(amount.invalid(NOT_NEGATIVE));
    }
    if is_counted(name) && !quantity.is_whole() {
        errors.push(amount.invalid("must be an integer"));
    }
}

/// Checks that a request does not exceed its limit, and equals it for resources that cannot be
/// overcommitted.
fn check_within(
    name: &str,
    request: &Field<'_>,
    limit: Option<&str>,
    [requests, limits]: [&Field<'_>; 2],
    errors: &mut Errors,
) {
    let Some(limit) = limit else {
        if !is_shareable(name) {
            errors.push(limits.required("Limit must be set for non overcommitable resources"));
        }
        return;
    };
    let Some((requested, most)) = parse(request.text()).zip(parse(limit)) else { return };
    let relation = match requested.cmp(&most) {
        std::cmp::Ordering::Equal => return,
        _ if !is_shareable(name) => "equal to",
        std::cmp::Ordering::Greater => "less than or equal to",
        std::cmp::Ordering::Less => return,
    };
    let words = format!("must be {relation} {name} limit of {limit}");
    errors.push(requests.invalid_as(request.text(), words));
}

fn check_huge_page(name: &str, amount: &Field<'_>, options: Options, errors: &mut Errors) {
    let Some(size) = name.strip_prefix(HUGE_PAGES) else { return };
    let is_multiple = parse(size).zip(parse(amount.text())).is_some_and(|(size, amount)| {
        size.signum() > 0 && size.is_whole() && amount.value().checked_rem(size.value()) == Some(0)
    });
    if !is_multiple && !options.indivisible_huge_pages {
        let words = format!("{} is not positive integer multiple of {name}", amount.text());
        errors.push(amount.invalid(words));
    }
}

/// Whether a list of resources has huge pages, and CPU or memory, without which huge pages are
/// refused.
#[derive(Default)]
struct Kinds {
    has_basic: bool,
    has_huge_pages: bool,
}

impl Kinds {
    fn add(&mut self, name: &str) {
        self.has_basic |= matches!(name, "cpu" | "memory");
        self.has_huge_pages |= name.starts_with(HUGE_PAGES);
    }

    fn check(&self, resources: &Field<'_>, errors: &mut Errors) {
        if self.has_huge_pages && !self.has_basic {
            errors.push(resources.forbidden("HugePages require cpu or memory"));
        }
    }
}

/// Checks that a container refers only to claims of its pod, and to each at most once.
fn check_claims(spec: &Spec<'_>, resources: &Field<'_>, errors: &mut Errors) {
    let mut seen: BTreeSet<String> = BTreeSet::new();
    // How many requests of a claim were named.
    let mut requests: BTreeMap<&str, usize> = BTreeMap::new();
    for claim in resources.items("claims") {
        let (name, request) = (claim.str("name"), claim.get("request"));
        if name.is_empty() {
            errors.push(claim.required(""));
            continue;
        }
        let duplicate = |text: &str| Error::duplicate(&claim.path(), &text.into());
        if seen.contains(name) {
            errors.push(duplicate(name));
        } else {
            let mut key = name.to_owned();
            if !request.is_empty() {
                request.all_invalid(names::dns1123_label(request.text()), errors);
                key = format!("{name}/{}", request.text());
            }
            if seen.contains(&key) {
                errors.push(duplicate(&key));
            } else if request.is_empty() {
                let overlaps = requests.get(name).copied().unwrap_or_default();
                errors.extend((0..overlaps).map(|_| duplicate(name)));
            } else {
                *requests.entry(name).or_default() += 1;
            }
            seen.insert(key);
        }
        // The error lists all claims of the pod, so it is not made in vain.
        if !spec.claims.contains(name) && !errors.is_full() {
            let listed = match field::listed(spec.claims.iter()) {
                none if spec.claims.is_empty() => format!("{none} which is empty"),
                known => format!(": {known}"),
            };
            let detail = format!("must be one of the names in pod.spec.resourceClaims{listed}");
            errors.push(Error { detail, ..Error::not_found(&claim.path(), &name.into()) });
        }
    }
}

/// Checks which changes of resources restart a container. As in upstream, errors name the list.
pub(super) fn check_resize_policy(spec: &Spec<'_>, container: &Field<'_>, errors: &mut Errors) {
    const RESOURCES: &[&str] = &["cpu", "memory"];
    const POLICIES: &[&str] = &["NotRequired", "RestartContainer"];
    let list = container.get("resizePolicy");
    let mut seen = BTreeSet::new();
    for policy in container.items("resizePolicy") {
        let (name, restart) = (policy.get("resourceName"), policy.get("restartPolicy"));
        if !seen.insert(policy.str("resourceName")) {
            errors.push(policy.of(name.value()).duplicate());
        }
        for (value, allowed) in [(&name, RESOURCES), (&restart, POLICIES)] {
            if value.is_empty() {
                errors.push(list.required(""));
            } else if !allowed.contains(&value.text()) {
                errors.push(list.of(value.value()).not_supported(allowed));
            }
        }
        if spec.field.str("restartPolicy") == "Never" && restart.text() != "NotRequired" {
            let words = "must be 'NotRequired' when pod `restartPolicy` is 'Never'";
            errors.push(list.invalid_as(restart.text(), words));
        }
    }
}

/// Checks which changes of resources restart an init container that is not a sidecar: none.
pub(super) fn check_init_resize_policy(
    spec: &Spec<'_>,
    container: &Field<'_>,
    errors: &mut Errors,
) {
    if spec.options.restarting_init_containers {
        return;
    }
    for policy in container.items("resizePolicy") {
        let restart = policy.get("restartPolicy");
        if restart.text() == "RestartContainer" {
            let words = "must not be set to 'RestartContainer' for non-sidecar initContainers";
            errors.push(restart.invalid(words));
        }
    }
}

const HUGE_PAGES: &str = "hugepages-";

/// The resources without a domain that the API knows, including those of quotas.
const STANDARD: &[&str] = &[
    "configmaps",
    "cpu",
    "ephemeral-storage",
    "limits.cpu",
    "limits.ephemeral-storage",
    "limits.memory",
    "memory",
    "persistentvolumeclaims",
    "pods",
    "replicationcontrollers",
    "requests.cpu",
    "requests.ephemeral-storage",
    "requests.memory",
    "requests.storage",
    "resourcequotas",
    "secrets",
    "services",
    "services.loadbalancers",
    "services.nodeports",
    "storage",
];

/// The standard resources that are counted in whole numbers, as all extended resources are.
const COUNTED: &[&str] = &[
    "configmaps",
    "persistentvolumeclaims",
    "pods",
    "replicationcontrollers",
    "resourcequotas",
    "secrets",
    "services",
    "services.loadbalancers",
    "services.nodeports",
];

/// Adds the errors of a resource's name; returns whether it is valid.
fn resource_name(field: &Field<'_>, name: &str, errors: &mut Errors) -> bool {
    if STANDARD.contains(&name) {
        return true;
    }
    let wrong = names::qualified_name(name);
    let is_known = name.contains('/')
        || name.starts_with(HUGE_PAGES)
        || name.starts_with("requests.hugepages-");
    if !wrong.is_empty() {
        field.all_invalid_as(name, wrong, errors);
    } else if !is_known {
        let words = "must be a standard resource type or fully qualified";
        errors.push(field.invalid_as(name, words));
    } else {
        return true;
    }
    false
}

fn container_name(field: &Field<'_>, name: &str, errors: &mut Errors) {
    resource_name(field, name, errors);
    if !name.contains('/') {
        let is_basic = matches!(name, "cpu" | "memory" | "ephemeral-storage");
        if !is_basic && !name.starts_with(HUGE_PAGES) {
            errors.push(field.invalid_as(name, "must be a standard resource for containers"));
        }
    } else if !is_native(name) && !is_extended(name) {
        errors.push(field.invalid_as(name, "doesn't follow extended resource name standard"));
    }
}

fn is_native(name: &str) -> bool {
    !name.contains('/') || name.contains("kubernetes.io/")
}

fn is_extended(name: &str) -> bool {
    !is_native(name)
        && !name.starts_with("requests.")
        && names::qualified_name(&format!("requests.{name}")).is_empty()
}

fn is_shareable(name: &str) -> bool {
    is_native(name) && !name.starts_with(HUGE_PAGES)
}

fn is_counted(name: &str) -> bool {
    COUNTED.contains(&name) || is_extended(name)
}

fn parse(text: &str) -> Option<Quantity> {
    text.parse().ok()
}
