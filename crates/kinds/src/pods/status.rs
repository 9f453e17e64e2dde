//! The status of pods, as kubelets write it.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::IpAddr,
};

use pintle_meta::{field::Error, names};
use pintle_value::Value;

use super::{
    update::check_annotation_changes,
    validation::{Options, is_sidecar},
};
use crate::{
    checks::IMMUTABLE,
    field::{Errors, Field},
    formats,
    formats::within,
    rules::required,
};

/// Restores the members that kubelets must not change, and those that old kubelets omit.
pub(crate) fn confine_status(new: &mut Value, old: &Value) {
    restore(new, old, &["metadata"], "ownerReferences");
    let unset = |status: &Value, member: &str| status.at(&["status", member]).is_none();
    for member in ["qosClass", "observedGeneration"] {
        if unset(new, member) {
            restore(new, old, &["status"], member);
        }
    }
    keep_generations(new, old);
}

fn restore(new: &mut Value, old: &Value, parents: &[&str], member: &str) {
    let parent = parents.iter().fold(new.make_object(), |map, key| map.entry_object(key));
    match old.at(parents).and_then(|parent| parent.get(member)) {
        Some(value) => parent.insert(member, value.clone()),
        None => parent.remove(member),
    };
}

/// A condition without a generation gets that of the condition that it replaces.
fn keep_generations(new: &mut Value, old: &Value) {
    let old = Field::root(old);
    let status = old.get("status");
    let mut known: BTreeMap<&str, Vec<&Value>> = BTreeMap::new();
    for one in status.items("conditions").rev() {
        known.entry(one.str("type")).or_default().push(one.value());
    }
    let conditions = new.get_mut("status").and_then(|status| status.get_mut("conditions"));
    for condition in conditions.and_then(Value::as_array_mut).into_iter().flatten() {
        let kind = condition.str_at(&["type"]).unwrap_or_default();
        let Some(before) = known.get_mut(kind).and_then(Vec::pop) else { continue };
        if let Some(generation) = before.get("observedGeneration")
            && condition.get("observedGeneration").is_none()
        {
            condition.make_object().insert("observedGeneration", generation.clone());
        }
    }
}

/// Validates an update of a pod's status.
pub(crate) fn validate_status(new: &Value, old: &Value) -> Errors {
    let pod = Field::root(new);
    let (spec, status) = (pod.get("spec"), pod.get("status"));
    let mut errors = Errors::new();
    check_annotation_changes(&pod, old, Options::of_pod(old), &mut errors);
    check_conditions(&status, &mut errors);
    let node = status.get("nominatedNodeName");
    if !node.is_empty() && Some(node.value()) != old.at(&["status", "nominatedNodeName"]) {
        node.all_invalid(names::dns1123_subdomain(node.text()), &mut errors);
        if !old.str_at(&["spec", "nodeName"]).unwrap_or_default().is_empty() {
            errors.push(node.forbidden("may not be set on pods that are already bound to a node"));
        }
    }
    let observed = status.get("observedGeneration");
    if observed.int().is_some_and(|generation| generation < 0) {
        errors.push(observed.invalid("must be a non-negative integer"));
    }
    let quality = status.get("qosClass");
    if quality.text() != old.str_at(&["status", "qosClass"]).unwrap_or_default() {
        errors.push(quality.invalid_as(quality.text(), IMMUTABLE));
    }
    let old = Field::root(old);
    check_transitions(&status, &old, &mut errors);
    check_claims(&status, &spec, &mut errors);
    if let Some(extended) = status.find("extendedResourceClaimStatus") {
        check_extended_claim(&extended, &spec, &mut errors);
    }
    let old_status = old.get("status");
    check_ips(&status, &old_status, "podIPs", &mut errors);
    check_host_ips(&status, &old_status, &mut errors);
    for list in STATUSES {
        check_users(&status, &spec, list, &mut errors);
    }
    check_allocations(&status, &spec, &mut errors);
    errors
}

const STATUSES: [&str; 3] =
    ["containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses"];

/// Checks the generations of conditions, and the types of those that are not Kubernetes' own. As in
/// upstream, the path of a type has a capital letter.
fn check_conditions(status: &Field<'_>, errors: &mut Errors) {
    for condition in status.items("conditions") {
        let generation = condition.get("observedGeneration");
        if generation.int().is_some_and(|generation| generation < 0) {
            errors.push(generation.invalid("must be a non-negative integer"));
        }
        let kind = condition.get("type");
        if !OWN_CONDITIONS.contains(&kind.text()) {
            let shown = kind.called("Type");
            shown.all_invalid_as(kind.text(), names::qualified_name(kind.text()), errors);
        }
    }
}

/// The types of conditions that Kubernetes itself sets.
const OWN_CONDITIONS: &[&str] = &["PodScheduled", "Ready", "Initialized"];

/// Checks that a container that has terminated and is not restarted stays terminated.
fn check_transitions(status: &Field<'_>, old: &Field<'_>, errors: &mut Errors) {
    let (old_spec, old_status) = (old.get("spec"), old.get("status"));
    let policy = old_spec.str("restartPolicy");
    for list in STATUSES {
        let policy = if list == "ephemeralContainerStatuses" { "Never" } else { policy };
        if policy == "Always" {
            continue;
        }
        let (running, containers) = (running(status, list), first_named(&old_spec, list));
        for (i, before) in old_status.items(list).enumerate() {
            let ended = before.at(&["state", "terminated"]);
            let has_failed = ended.get("exitCode").int().unwrap_or(0) != 0;
            let name = before.str("name");
            let restarts = (has_failed && policy == "OnFailure")
                || containers.get(name).is_some_and(|one| restarts_alone(one, has_failed));
            if !ended.is_set() || restarts {
                continue;
            }
            let count = running.get(name).copied().unwrap_or_default();
            let path = status.get(list).path().index(i).field("state");
            let words = "may not be transitioned to non-terminated state";
            errors.extend((0..count).map(|_| Error::forbidden(&path, words)));
        }
    }
}

/// The number of statuses of each container that have not terminated.
fn running<'a>(status: &'a Field<'a>, list: &'a str) -> BTreeMap<&'a str, usize> {
    let mut running = BTreeMap::new();
    for now in status.items(list).filter(|now| !now.at(&["state", "terminated"]).is_set()) {
        *running.entry(now.str("name")).or_default() += 1;
    }
    running
}

/// The containers of a list of statuses by name; the first one of each name.
fn first_named<'a>(spec: &'a Field<'a>, list: &str) -> BTreeMap<&'a str, Field<'a>> {
    let containers = match list {
        "containerStatuses" => "containers",
        "initContainerStatuses" => "initContainers",
        _ => return BTreeMap::new(),
    };
    spec.items(containers).rev().map(|container| (container.str("name"), container)).collect()
}

/// Whether a container has a policy of its own by which it may be restarted.
fn restarts_alone(container: &Field<'_>, has_failed: bool) -> bool {
    is_sidecar(container.value())
        || (container.str("restartPolicy") == "OnFailure" && has_failed)
        || !container.get("restartPolicyRules").is_empty()
}

fn check_claims(status: &Field<'_>, spec: &Field<'_>, errors: &mut Errors) {
    let mut seen = BTreeSet::new();
    let known: BTreeSet<&str> = spec.items("resourceClaims").map(|one| one.str("name")).collect();
    for claim in status.items("resourceClaimStatuses") {
        let name = claim.get("name");
        if !known.contains(name.text()) {
            let words = "must match the name of an entry in `spec.resourceClaims`";
            errors.push(name.invalid_as(name.text(), words));
        }
        if !seen.insert(claim.str("name")) {
            errors.push(name.duplicate());
        }
        let made = claim.str("resourceClaimName");
        if claim.has("resourceClaimName") {
            let made_name = claim.get("resourceClaimName");
            made_name.all_invalid_as(made, names::dns1123_subdomain(made), errors);
        }
    }
}

/// Checks the claim for the extended resources of a pod's containers.
fn check_extended_claim(extended: &Field<'_>, spec: &Field<'_>, errors: &mut Errors) {
    let mappings = extended.get("requestMappings");
    required(&mappings, "at least one request mapping is required", errors);
    let containers: BTreeMap<&str, Field<'_>> = ["initContainers", "containers"]
        .into_iter()
        .flat_map(|list| spec.items(list))
        .map(|container| (container.str("name"), container))
        .collect();
    let mut seen = BTreeSet::new();
    for mapping in extended.items("requestMappings") {
        let parts = ["containerName", "resourceName", "requestName"];
        let [container, resource, request] = parts.map(|member| mapping.get(member));
        match containers.get(container.text()) {
            None => errors.push(container.invalid_as(container.text(), UNKNOWN_CONTAINER)),
            Some(known)
                if !known.get("resources").map("requests").contains_key(resource.text()) =>
            {
                errors.push(resource.invalid_as(resource.text(), UNKNOWN_RESOURCE));
            }
            Some(_) => {}
        }
        // As in upstream, this error has no index.
        let wrong = names::dns1123_label(request.text());
        extended.get("requestName").all_invalid_as(request.text(), wrong, errors);
        if !seen.insert(parts.map(|member| mapping.str(member).to_owned())) {
            errors.extend([container, resource, request].map(|field| field.duplicate()));
        }
    }
    let claim = extended.get("resourceClaimName");
    required(&claim, "", errors);
    if !claim.is_empty() {
        claim.all_invalid(names::dns1123_subdomain(claim.text()), errors);
    }
}

const UNKNOWN_CONTAINER: &str =
    "must match the name of an entry in spec.initContainers.name or spec.containers.name";
const UNKNOWN_RESOURCE: &str = "must match the extended resource name of an entry in \
                                spec.initContainers.resources.requests or \
                                spec.containers.resources.requests";

fn check_host_ips(status: &Field<'_>, old: &Field<'_>, errors: &mut Errors) {
    if let Some(first) = status.items("hostIPs").next() {
        let ip = first.get("ip");
        if ip.text() != status.str("hostIP") {
            errors.push(ip.invalid_as(ip.text(), "must be equal to `hostIP`"));
        }
    }
    check_ips(status, old, "hostIPs", errors);
}

/// Checks that addresses are valid or stored, and that each family has at most one. As in upstream,
/// an error about an address has the path of its item.
fn check_ips(status: &Field<'_>, old: &Field<'_>, list: &str, errors: &mut Errors) {
    let known: BTreeSet<&str> = old.items(list).map(|item| item.str("ip")).collect();
    let ips: Vec<&str> = status.items(list).map(|item| item.str("ip")).collect();
    for (item, ip) in status.items(list).zip(&ips).filter(|(_, ip)| !known.contains(*ip)) {
        item.all_invalid_as(ip, formats::ip(ip), errors);
    }
    if ips.len() < 2 {
        return;
    }
    let is_v6 = |ip: &&str| formats::parse_ip(ip).map(|ip| matches!(ip, IpAddr::V6(_)));
    let families: Vec<Option<bool>> = ips.iter().map(is_v6).collect();
    if let Some(i) = families.iter().position(Option::is_none) {
        let why = format!("failed to check for dual stack with error:invalid IP[{i}]: {}", ips[i]);
        errors.push(Error::internal(&status.get(list).path(), why));
    }
    if !matches!(*families, [Some(a), Some(b)] if a != b) {
        let words = "may specify no more than one IP for each IP family";
        errors.push(status.get(list).invalid(words));
    }
}

/// Checks the users of containers.
fn check_users(status: &Field<'_>, spec: &Field<'_>, list: &str, errors: &mut Errors) {
    const ID_MAX: i64 = i32::MAX as i64;
    let is_windows = spec.at(&["os", "name"]).text() == "windows";
    for one in status.items(list) {
        let user = one.get("user");
        let user = user.get("linux");
        if !user.is_set() {
            continue;
        }
        if is_windows {
            errors.push(user.forbidden("cannot be set for a windows pod"));
            continue;
        }
        for id in [user.get("uid"), user.get("gid")] {
            let number = id.int().unwrap_or(0);
            if !(0..=ID_MAX).contains(&number) {
                errors.push(id.invalid(within(0, ID_MAX)));
            }
        }
        for group in user.items("supplementalGroups") {
            if group.int().is_some_and(|id| !(0..=ID_MAX).contains(&id)) {
                errors.push(group.invalid(within(0, ID_MAX)));
            }
        }
    }
}

const CLAIM: &str = "claim:";

/// Checks that the resources with a reported health are resources that the container requested.
fn check_allocations(status: &Field<'_>, spec: &Field<'_>, errors: &mut Errors) {
    for list in ["containerStatuses", "initContainerStatuses"] {
        let containers = first_named(spec, list);
        let mut claimed: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
        for one in status.items(list) {
            let name = one.str("name");
            let container = containers.get(name);
            for allocated in one.items("allocatedResourcesStatus") {
                if let Some(container) = container {
                    let claimed = claimed.entry(name).or_insert_with(|| claimed_names(container));
                    check_allocated_name(&allocated, container, claimed, errors);
                }
                check_health(&allocated, errors);
            }
        }
    }
    for one in status.items("ephemeralContainerStatuses") {
        let allocated = one.get("allocatedResourcesStatus");
        if !allocated.is_empty() {
            errors.push(allocated.forbidden("must not be specified in container status"));
        }
    }
}

/// The claims of a container, each with its request, as names of allocated resources have them.
fn claimed_names(container: &Field<'_>) -> BTreeSet<String> {
    let resources = container.get("resources");
    let name = |claim: Field<'_>| match claim.str("request") {
        "" => claim.str("name").to_owned(),
        request => format!("{}/{request}", claim.str("name")),
    };
    resources.items("claims").map(name).collect()
}

fn check_allocated_name(
    allocated: &Field<'_>,
    container: &Field<'_>,
    claimed: &BTreeSet<String>,
    errors: &mut Errors,
) {
    let name = allocated.get("name");
    let resources = container.get("resources");
    let (is_known, words) = match name.text().strip_prefix(CLAIM) {
        Some(wanted) => {
            let words = "must match one of the container's resource claims in a format \
                         'claim:<claimName>/<request>' or 'claim:<claimName>' if request is empty";
            (claimed.contains(wanted), words)
        }
        None => {
            let words = "must match one of the container's resource requests";
            (resources.map("requests").contains_key(name.text()), words)
        }
    };
    if !is_known {
        errors.push(name.invalid_as(name.text(), words));
    }
}

fn check_health(allocated: &Field<'_>, errors: &mut Errors) {
    const HEALTHS: &[&str] = &["Healthy", "Unhealthy", "Unknown"];
    const MESSAGE_LENGTH_MAX: usize = 1024;
    let mut seen = BTreeSet::new();
    for resource in allocated.items("resources") {
        let health = resource.get("health");
        if !HEALTHS.contains(&health.text()) {
            errors.push(health.not_supported(HEALTHS));
        }
        let message = resource.get("message");
        if message.is_set() && message.is_empty() {
            errors.push(message.required("must be non-empty if specified"));
        } else if message.text().len() > MESSAGE_LENGTH_MAX {
            errors.push(Error::too_long(&message.path(), MESSAGE_LENGTH_MAX));
        }
        if !seen.insert(resource.str("resourceID")) {
            errors.push(resource.get("resourceID").duplicate());
        }
    }
}

/// Warns of addresses that are not in canonical form.
pub(crate) fn warn_of_status(status: &Value) -> Vec<String> {
    let pod = Field::root(status);
    let status = pod.get("status");
    let mut warnings = Vec::new();
    for list in ["podIPs", "hostIPs"] {
        for item in status.items(list) {
            let ip = item.get("ip");
            warnings
                .extend(formats::odd_ip(ip.text()).map(|words| format!("{}: {words}", ip.path())));
        }
    }
    warnings
}
