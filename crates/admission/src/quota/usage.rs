//! The usage that quotas count for an object (upstream: the evaluators).

use std::fmt;

use pintle_meta::GroupResource;
use pintle_meta::quantity::{Format, Quantity};
use pintle_value::Value;

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

const CLASS: &str = ".storageclass.storage.k8s.io/";

/// The suffix of the name of a device class.
const DEVICES: &str = ".deviceclass.resource.k8s.io/devices";

/// The largest number of devices of one claim.
const DEVICES_MAX: usize = 32;

/// True if the name of a quota's limit counts objects of a resource.
pub fn measures(resource: &GroupResource, name: &str) -> bool {
    if let Some(counted) = name.strip_prefix("count/") {
        let plural_and_group = counted.split_once('.').unwrap_or((counted, ""));
        return plural_and_group == (resource.resource.as_str(), resource.group.as_str());
    }
    if is_device_claim(resource) {
        return name.ends_with(DEVICES);
    }
    if !resource.group.is_empty() {
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

fn is_device_claim(resource: &GroupResource) -> bool {
    resource.group == "resource.k8s.io" && resource.resource == "resourceclaims"
}

fn count_name(resource: &GroupResource) -> String {
    match resource.group.as_str() {
        "" => format!("count/{}", resource.resource),
        group => format!("count/{}.{group}", resource.resource),
    }
}

fn whole(number: usize) -> Quantity {
    Quantity::from_int(i64::try_from(number).unwrap_or(i64::MAX), Format::DecimalSi)
}

/// Returns the usage of an object.
pub fn of(resource: &GroupResource, object: &Value) -> Amounts {
    let mut usage = Amounts::from([(count_name(resource), whole(1))]);
    match (resource.group.as_str(), resource.resource.as_str()) {
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
        let more = overhead.get(name).and_then(|more| amount.checked_add(more));
        *amount = more.unwrap_or(*amount);
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

/// Returns the required names that containers of a pod do not set, with the containers:
/// `cpu for: a,b; memory for: a`. A pod with pod-level resources needs none.
pub fn missing(resource: &GroupResource, names: &[&String], pod: &Value) -> Option<String> {
    let is_pod = resource.group.is_empty() && resource.resource == "pods";
    if !is_pod || ["requests", "limits"].iter().any(|part| !pod_level(pod, part).is_empty()) {
        return None;
    }
    let containers: Vec<(&str, Amounts)> = ["containers", "initContainers"]
        .iter()
        .flat_map(|member| items(pod, &["spec", member]))
        .map(|container| {
            let part = |member| amounts(container.at(&["resources", member]));
            let mut set = Amounts::new();
            compute(&part("requests"), &part("limits"), &mut set);
            (container.str_at(&["name"]).unwrap_or_default(), set)
        })
        .collect();
    let required = names.iter().filter(|name| REQUIRED.contains(&name.as_str()));
    let parts = required.filter_map(|name| {
        let lacking = containers.iter().filter(|(_, set)| !set.contains_key(*name));
        let mut lacking: Vec<&str> = lacking.map(|(name, _)| *name).collect();
        lacking.sort_unstable();
        (!lacking.is_empty()).then(|| format!("{name} for: {}", lacking.join(",")))
    });
    let parts: Vec<String> = parts.collect();
    (!parts.is_empty()).then(|| parts.join("; "))
}

/// True if an object is in all scopes of a quota. Only pods and claims can be in a scope.
pub fn in_scope(resource: &GroupResource, quota: &Value, object: &Value) -> bool {
    requirements(quota).all(|requirement| requirement.holds(resource, object))
}

/// Returns the scopes of a quota.
pub fn requirements(quota: &Value) -> impl Iterator<Item = Requirement<'_>> {
    let plain = items(quota, &["spec", "scopes"]).iter().filter_map(Value::as_str);
    let plain = plain.map(|scope| Requirement { scope, operator: "Exists", values: &[] });
    let chosen = items(quota, &["spec", "scopeSelector", "matchExpressions"]);
    plain.chain(chosen.iter().map(Requirement::of))
}

/// A scope with its operator and values (upstream: `ScopedResourceSelectorRequirement`).
pub struct Requirement<'a> {
    /// The scope's name.
    pub scope: &'a str,
    operator: &'a str,
    values: &'a [Value],
}

impl<'a> Requirement<'a> {
    /// Reads a scope of a selector.
    pub fn of(requirement: &'a Value) -> Self {
        let text = |member: &str| requirement.str_at(&[member]).unwrap_or_default();
        let (scope, operator) = (text("scopeName"), text("operator"));
        Self { scope, operator, values: items(requirement, &["values"]) }
    }

    /// True if an object is in the scope.
    pub fn holds(&self, resource: &GroupResource, object: &Value) -> bool {
        match (resource.group.as_str(), resource.resource.as_str()) {
            ("", "pods") => pod_is_in(object, self),
            ("", "persistentvolumeclaims") => claim_is_in(object, self),
            _ => false,
        }
    }

    /// True if the operator and the values match a name; `""` stands for no name.
    fn matches(&self, name: &str) -> bool {
        let is_named = || self.values.iter().any(|value| value.as_str() == Some(name));
        match self.operator {
            "In" => !name.is_empty() && is_named(),
            "NotIn" => name.is_empty() || !is_named(),
            "DoesNotExist" => name.is_empty(),
            _ => !name.is_empty(),
        }
    }
}

/// Formats the requirement as Go prints the struct.
impl fmt::Display for Requirement<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let values: Vec<&str> = self.values.iter().filter_map(Value::as_str).collect();
        write!(f, "{{{} {} [{}]}}", self.scope, self.operator, values.join(" "))
    }
}

fn pod_is_in(pod: &Value, requirement: &Requirement<'_>) -> bool {
    let ends = || {
        let deadline = pod.at(&["spec", "activeDeadlineSeconds"]).and_then(Value::as_int);
        deadline.is_some_and(|seconds| seconds >= 0)
    };
    match requirement.scope {
        "Terminating" => ends(),
        "NotTerminating" => !ends(),
        "BestEffort" => is_best_effort(pod),
        "NotBestEffort" => !is_best_effort(pod),
        "PriorityClass" => {
            requirement.matches(pod.str_at(&["spec", "priorityClassName"]).unwrap_or_default())
        }
        "CrossNamespacePodAffinity" => crosses_namespaces(pod),
        _ => false,
    }
}

/// True if a class of the claim matches: its requested class, its current class, or the class to
/// which it is being modified.
fn claim_is_in(claim: &Value, requirement: &Requirement<'_>) -> bool {
    let classes = [
        &["spec", "volumeAttributesClassName"][..],
        &["status", "currentVolumeAttributesClassName"],
        &["status", "modifyVolumeStatus", "targetVolumeAttributesClassName"],
    ];
    let classes = classes.iter().filter_map(|path| claim.str_at(path));
    let classes: Vec<&str> = classes.filter(|class| !class.is_empty()).collect();
    requirement.scope == "VolumeAttributesClass"
        && match classes.as_slice() {
            [] => requirement.matches(""),
            classes => classes.iter().any(|class| requirement.matches(class)),
        }
}

fn is_best_effort(pod: &Value) -> bool {
    let asks = |part: &str| {
        let total = total(pod, part);
        ["cpu", "memory"]
            .iter()
            .any(|name| total.get(*name).is_some_and(|amount| !amount.is_zero()))
    };
    !asks("requests") && !asks("limits")
}

fn crosses_namespaces(pod: &Value) -> bool {
    let crosses = |term: &Value| {
        !items(term, &["namespaces"]).is_empty()
            || term.get("namespaceSelector").is_some_and(|selector| !selector.is_null())
    };
    ["podAffinity", "podAntiAffinity"].iter().any(|kind| {
        let terms = |member| items(pod, &["spec", "affinity", kind, member]);
        let weighted = terms("preferredDuringSchedulingIgnoredDuringExecution");
        terms("requiredDuringSchedulingIgnoredDuringExecution").iter().any(crosses)
            || weighted.iter().any(|one| one.get("podAffinityTerm").is_some_and(crosses))
    })
}
