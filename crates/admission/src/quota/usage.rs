//! The usage that quotas count for an object (upstream: the evaluators).

use std::collections::BTreeMap;

use pintle_meta::GroupResource;
use pintle_meta::quantity::{Format, Quantity};
use pintle_value::Value;

pub use super::grace::{ChargedUntil, GRACE, end_of_grace};
pub use super::scopes::in_scope;
use crate::pods::{Amounts, add, amounts, items, pod_level, raise_to, read, total};

/// The names that every container must set if a quota counts them.
const REQUIRED: [&str; 6] =
    ["cpu", "memory", "requests.cpu", "requests.memory", "limits.cpu", "limits.memory"];

/// Other names that are counted for containers.
const STORAGE: [&str; 3] =
    ["ephemeral-storage", "requests.ephemeral-storage", "limits.ephemeral-storage"];

/// The core resources whose objects are counted under the resource's name, besides `count/…`, and
/// of which nothing else is counted.
const COUNTED: [&str; 4] = ["configmaps", "secrets", "resourcequotas", "replicationcontrollers"];

/// The members of pods on which their usage and scopes depend.
const POD: &[&[&str]] = &[
    GRACE[0],
    GRACE[1],
    &["spec", "activeDeadlineSeconds"],
    &["spec", "affinity"],
    &["spec", "containers"],
    &["spec", "initContainers"],
    &["spec", "overhead"],
    &["spec", "priorityClassName"],
    &["spec", "resources"],
    &["status", "phase"],
];

/// The same of services.
const SERVICE: &[&[&str]] =
    &[&["spec", "allocateLoadBalancerNodePorts"], &["spec", "ports"], &["spec", "type"]];

/// The same of claims.
const CLAIM: &[&[&str]] = &[
    &["metadata", "annotations"],
    &["spec", "resources"],
    &["spec", "storageClassName"],
    &["spec", "volumeAttributesClassName"],
    &["status"],
];

const CLASS: &str = ".storageclass.storage.k8s.io/";

/// The suffix of the name of a device class.
const DEVICES: &str = ".deviceclass.resource.k8s.io/devices";

/// The largest number of devices of one claim.
const DEVICES_MAX: usize = 32;

/// Whether the name of a quota's limit counts objects of a resource.
pub fn measures(resource: &GroupResource, name: &str) -> bool {
    if let Some(counted) = name.strip_prefix("count/") {
        let plural_and_group = counted.split_once('.').unwrap_or((counted, ""));
        return plural_and_group == (resource.resource.as_str(), resource.group.as_str());
    }
    if is_device_claim(resource) {
        return name.ends_with(DEVICES);
    }
    if !has_own_names(resource) {
        return false;
    }
    match resource.resource.as_str() {
        "pods" => {
            name == "pods"
                || REQUIRED.contains(&name)
                || STORAGE.contains(&name)
                || name.starts_with("hugepages-")
                || name.starts_with("requests.hugepages-")
                || name.strip_prefix("requests.").is_some_and(is_extended)
        }
        "services" => matches!(name, "services" | "services.nodeports" | "services.loadbalancers"),
        "persistentvolumeclaims" => {
            let of_class = name.split_once(CLASS).map(|(_, of_class)| of_class);
            matches!(of_class.unwrap_or(name), "persistentvolumeclaims" | "requests.storage")
        }
        plural => plural == name && COUNTED.contains(&plural),
    }
}

/// True for the name of an extended resource of nodes.
fn is_extended(name: &str) -> bool {
    name.contains('/') && !name.contains("kubernetes.io/")
}

/// Returns the members of an object on which its usage and its scopes depend; none if these are the
/// same for all objects of the resource.
pub fn members(resource: &GroupResource) -> &'static [&'static [&'static str]] {
    match (resource.group.as_str(), resource.resource.as_str()) {
        ("", "pods") => POD,
        ("", "services") => SERVICE,
        ("", "persistentvolumeclaims") => CLAIM,
        _ if is_device_claim(resource) => &[&["spec", "devices"]],
        _ => &[],
    }
}

fn is_device_claim(resource: &GroupResource) -> bool {
    resource.group == "resource.k8s.io" && resource.resource == "resourceclaims"
}

/// Whether quotas count a resource by other names, besides `count/…`.
pub fn has_own_names(resource: &GroupResource) -> bool {
    resource.group.is_empty() || is_device_claim(resource)
}

/// Returns the name by which quotas count the objects of a resource: `count/deployments.apps`.
pub fn count_name(resource: &GroupResource) -> String {
    match resource.group.as_str() {
        "" => format!("count/{}", resource.resource),
        group => format!("count/{}.{group}", resource.resource),
    }
}

fn whole(number: usize) -> Quantity {
    Quantity::from_int(i64::try_from(number).unwrap_or(i64::MAX), Format::DecimalSi)
}

/// Returns the usage of an object.
pub fn of(resource: &GroupResource, object: &Value, until: ChargedUntil) -> Amounts {
    let mut usage = Amounts::from([(count_name(resource), whole(1))]);
    match (resource.group.as_str(), resource.resource.as_str()) {
        ("", "pods") if until.releases(object) => {}
        ("", "pods") => of_pod(object, &mut usage),
        ("", "services") => of_service(object, &mut usage),
        ("", "persistentvolumeclaims") => of_claim(object, &mut usage),
        _ if is_device_claim(resource) => of_device_claim(object, &mut usage),
        ("", plural) if COUNTED.contains(&plural) => {
            usage.insert(plural.to_owned(), whole(1));
        }
        _ => {}
    }
    usage
}

/// A pod that has ended counts only as an object.
fn of_pod(pod: &Value, usage: &mut Amounts) {
    if matches!(pod.str_at(&["status", "phase"]), Some("Failed" | "Succeeded")) {
        return;
    }
    usage.insert("pods".to_owned(), whole(1));
    let overhead = amounts(pod.at(&["spec", "overhead"]));
    let mut requests = total(pod, "requests");
    add(&mut requests, &overhead);
    let mut limits = total(pod, "limits");
    for (name, amount) in &mut limits {
        if let Some(more) = overhead.get(name) {
            *amount = *amount + *more;
        }
    }
    compute(&requests, &limits, usage);
}

fn compute(requests: &Amounts, limits: &Amounts, usage: &mut Amounts) {
    for (name, amount) in requests {
        let is_basic = matches!(name.as_str(), "cpu" | "memory" | "ephemeral-storage");
        if is_basic || name.starts_with("hugepages-") {
            usage.insert(name.clone(), *amount);
        }
        usage.insert(format!("requests.{name}"), *amount);
    }
    for (name, amount) in limits {
        usage.insert(format!("limits.{name}"), *amount);
    }
}

fn of_service(service: &Value, usage: &mut Amounts) {
    let ports = items(service, &["spec", "ports"]);
    let allocated = || ports.iter().filter(|port| port.get("nodePort").is_some()).count();
    let allocates = service.at(&["spec", "allocateLoadBalancerNodePorts"]).and_then(Value::as_bool);
    let (node_ports, balancers) = match service.str_at(&["spec", "type"]) {
        Some("NodePort") => (ports.len(), 0),
        Some("LoadBalancer") if allocates == Some(false) => (allocated(), 1),
        Some("LoadBalancer") => (ports.len(), 1),
        _ => (0, 0),
    };
    usage.insert("services".to_owned(), whole(1));
    usage.insert("services.nodeports".to_owned(), whole(node_ports));
    usage.insert("services.loadbalancers".to_owned(), whole(balancers));
}

fn of_claim(claim: &Value, usage: &mut Amounts) {
    const OLD: &str = "volume.beta.kubernetes.io/storage-class";
    let class = claim.str_at(&["metadata", "annotations", OLD]);
    let class = class.or_else(|| claim.str_at(&["spec", "storageClassName"])).unwrap_or_default();
    usage.insert("persistentvolumeclaims".to_owned(), whole(1));
    if !class.is_empty() {
        usage.insert(format!("{class}{CLASS}persistentvolumeclaims"), whole(1));
    }
    if let Some(size) = claimed(claim) {
        usage.insert("requests.storage".to_owned(), size);
        if !class.is_empty() {
            usage.insert(format!("{class}{CLASS}requests.storage"), size);
        }
    }
}

/// Returns the size of a claim in whole bytes: the larger of the requested and the allocated size.
fn claimed(claim: &Value) -> Option<Quantity> {
    let requested = claim.at(&["spec", "resources", "requests", "storage"]).and_then(read)?;
    let allocated = claim.at(&["status", "allocatedResources", "storage"]).and_then(read);
    let size = allocated.map_or(requested, |allocated| requested.max(allocated));
    Some(size.to_int().map_or_else(|| Quantity::from_int(size.value(), size.format()), |_| size))
}

/// Counts the devices of each class that a claim may get. If a request has alternatives, the
/// largest number of each class counts. A request for all devices counts as the largest number of
/// devices of a claim.
fn of_device_claim(claim: &Value, usage: &mut Amounts) {
    let class = |requested: &Value| {
        format!("{}{DEVICES}", requested.str_at(&["deviceClassName"]).unwrap_or_default())
    };
    for request in items(claim, &["spec", "devices", "requests"]) {
        let mut largest = Amounts::new();
        for requested in
            request.get("exactly").into_iter().chain(items(request, &["firstAvailable"]))
        {
            raise_to(&mut largest, &Amounts::from([(class(requested), devices(requested))]));
        }
        add(usage, &largest);
    }
}

fn devices(requested: &Value) -> Quantity {
    match requested.str_at(&["allocationMode"]) {
        Some("ExactCount") => requested.get("count").and_then(read).unwrap_or(Quantity::ZERO),
        Some("All") => whole(DEVICES_MAX),
        // A request with a mode that this version does not know counts as no device.
        _ => Quantity::ZERO,
    }
}

/// The names of [`REQUIRED`] that containers of an object do not set, each with the containers:
/// `cpu for: a,b`. Only pods without pod-level resources need them.
pub(super) fn lacking(resource: &GroupResource, object: &Value) -> BTreeMap<&'static str, String> {
    let is_pod = resource.group.is_empty() && resource.resource == "pods";
    if !is_pod || ["requests", "limits"].iter().any(|part| !pod_level(object, part).is_empty()) {
        return BTreeMap::new();
    }
    let lists = ["containers", "initContainers"].iter();
    let containers: Vec<&Value> = lists.flat_map(|list| items(object, &["spec", list])).collect();
    let parts = REQUIRED.into_iter().filter_map(|required| {
        let (part, name) = required.split_once('.').unwrap_or(("requests", required));
        let sets = |container: &Value| container.at(&["resources", part, name]).and_then(read);
        let lacking = containers.iter().filter(|container| sets(container).is_none());
        let mut lacking: Vec<&str> =
            lacking.map(|one| one.str_at(&["name"]).unwrap_or_default()).collect();
        lacking.sort_unstable();
        (!lacking.is_empty()).then(|| (required, format!("{required} for: {}", lacking.join(","))))
    });
    parts.collect()
}
