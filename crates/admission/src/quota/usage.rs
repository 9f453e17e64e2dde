//! What objects take of a quota (upstream: the evaluators).

use std::fmt;

use pintle_meta::GroupResource;
use pintle_meta::quantity::{Format, Quantity};
use pintle_value::Value;

use crate::pods::{Amounts, add, amounts, grow, items, of_whole, read, total};

/// What containers must say where a quota counts it.
const REQUIRED: [&str; 6] =
    ["cpu", "memory", "requests.cpu", "requests.memory", "limits.cpu", "limits.memory"];

/// What else is counted of containers under these names.
const STORAGE: [&str; 3] =
    ["ephemeral-storage", "requests.ephemeral-storage", "limits.ephemeral-storage"];

/// What a quota counts under its own name, besides `count/…`.
const COUNTED: [&str; 4] = ["configmaps", "secrets", "resourcequotas", "replicationcontrollers"];

const CLASS: &str = ".storageclass.storage.k8s.io/";

/// What a quota counts of the devices that claims ask for, after the name of their class.
const DEVICES: &str = ".deviceclass.resource.k8s.io/devices";

/// As many devices can one claim be given.
const DEVICES_MAX: usize = 32;

/// Whether a quota's item of that name is about a resource.
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

/// Whether a name is that of a resource that nodes have besides Kubernetes' own.
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

/// What an object takes.
pub fn of(resource: &GroupResource, object: &Value) -> Amounts {
    let mut taken = Amounts::from([(count_name(resource), whole(1))]);
    match (resource.group.as_str(), resource.resource.as_str()) {
        ("", "pods") => of_pod(object, &mut taken),
        ("", "services") => of_service(object, &mut taken),
        ("", "persistentvolumeclaims") => of_claim(object, &mut taken),
        _ if is_device_claim(resource) => of_device_claim(object, &mut taken),
        ("", plural) if COUNTED.contains(&plural) => {
            taken.insert(plural.to_owned(), whole(1));
        }
        _ => {}
    }
    taken
}

/// A pod that has ended takes nothing but its place in the store.
fn of_pod(pod: &Value, taken: &mut Amounts) {
    if matches!(pod.str_at(&["status", "phase"]), Some("Failed" | "Succeeded")) {
        return;
    }
    taken.insert("pods".to_owned(), whole(1));
    let overhead = amounts(pod.at(&["spec", "overhead"]));
    let mut requests = total(pod, "requests");
    add(&mut requests, &overhead);
    let mut limits = total(pod, "limits");
    for (name, amount) in &mut limits {
        let more = overhead.get(name).and_then(|more| amount.checked_add(more));
        *amount = more.unwrap_or(*amount);
    }
    compute(&requests, &limits, taken);
}

fn compute(requests: &Amounts, limits: &Amounts, taken: &mut Amounts) {
    for (name, amount) in requests {
        let is_basic = matches!(name.as_str(), "cpu" | "memory" | "ephemeral-storage");
        if is_basic || name.starts_with("hugepages-") {
            taken.insert(name.clone(), *amount);
        }
        taken.insert(format!("requests.{name}"), *amount);
    }
    for (name, amount) in limits {
        taken.insert(format!("limits.{name}"), *amount);
    }
}

fn of_service(service: &Value, taken: &mut Amounts) {
    let ports = items(service, &["spec", "ports"]);
    let given = || ports.iter().filter(|port| port.get("nodePort").is_some()).count();
    let allocates = service.at(&["spec", "allocateLoadBalancerNodePorts"]).and_then(Value::as_bool);
    let (node_ports, balancers) = match service.str_at(&["spec", "type"]) {
        Some("NodePort") => (ports.len(), 0),
        Some("LoadBalancer") if allocates == Some(false) => (given(), 1),
        Some("LoadBalancer") => (ports.len(), 1),
        _ => (0, 0),
    };
    taken.insert("services".to_owned(), whole(1));
    taken.insert("services.nodeports".to_owned(), whole(node_ports));
    taken.insert("services.loadbalancers".to_owned(), whole(balancers));
}

fn of_claim(claim: &Value, taken: &mut Amounts) {
    const OLD: &str = "volume.beta.kubernetes.io/storage-class";
    let class = claim.str_at(&["metadata", "annotations", OLD]);
    let class = class.or_else(|| claim.str_at(&["spec", "storageClassName"])).unwrap_or_default();
    taken.insert("persistentvolumeclaims".to_owned(), whole(1));
    if !class.is_empty() {
        taken.insert(format!("{class}{CLASS}persistentvolumeclaims"), whole(1));
    }
    if let Some(size) = claimed(claim) {
        taken.insert("requests.storage".to_owned(), size);
        if !class.is_empty() {
            taken.insert(format!("{class}{CLASS}requests.storage"), size);
        }
    }
}

/// A claim's bytes, whole ones: what is asked for, or what was already given if that is more.
fn claimed(claim: &Value) -> Option<Quantity> {
    let asked = claim.at(&["spec", "resources", "requests", "storage"]).and_then(read)?;
    let given = claim.at(&["status", "allocatedResources", "storage"]).and_then(read);
    let size = given.map_or(asked, |given| asked.max(given));
    Some(size.to_int().map_or_else(|| Quantity::from_int(size.value(), size.format()), |_| size))
}

/// The devices of each class that a claim may be given. Of alternatives only one comes, so that the
/// largest counts; who asks for all devices may be given as many as a claim can hold.
fn of_device_claim(claim: &Value, taken: &mut Amounts) {
    let class = |asked: &Value| {
        format!("{}{DEVICES}", asked.str_at(&["deviceClassName"]).unwrap_or_default())
    };
    for request in items(claim, &["spec", "devices", "requests"]) {
        let mut most = Amounts::new();
        for asked in request.get("exactly").into_iter().chain(items(request, &["firstAvailable"])) {
            grow(&mut most, &Amounts::from([(class(asked), devices(asked))]));
        }
        add(taken, &most);
    }
}

fn devices(asked: &Value) -> Quantity {
    match asked.str_at(&["allocationMode"]) {
        Some("ExactCount") => asked.get("count").and_then(read).unwrap_or(Quantity::ZERO),
        Some("All") => whole(DEVICES_MAX),
        // A mode of a later version does not count.
        _ => Quantity::ZERO,
    }
}

/// What containers of a pod do not say, though a quota counts it: `cpu for: a,b; memory for: a`. Where
/// the pod as a whole says something, they need not.
pub fn missing(resource: &GroupResource, names: &[&String], pod: &Value) -> Option<String> {
    let is_pod = resource.group.is_empty() && resource.resource == "pods";
    if !is_pod || ["requests", "limits"].iter().any(|part| !of_whole(pod, part).is_empty()) {
        return None;
    }
    let containers: Vec<(&str, Amounts)> = ["containers", "initContainers"]
        .iter()
        .flat_map(|member| items(pod, &["spec", member]))
        .map(|container| {
            let part = |member| amounts(container.at(&["resources", member]));
            let mut said = Amounts::new();
            compute(&part("requests"), &part("limits"), &mut said);
            (container.str_at(&["name"]).unwrap_or_default(), said)
        })
        .collect();
    let required = names.iter().filter(|name| REQUIRED.contains(&name.as_str()));
    let parts = required.filter_map(|name| {
        let silent = containers.iter().filter(|(_, said)| !said.contains_key(*name));
        let mut silent: Vec<&str> = silent.map(|(name, _)| *name).collect();
        silent.sort_unstable();
        (!silent.is_empty()).then(|| format!("{name} for: {}", silent.join(",")))
    });
    let parts: Vec<String> = parts.collect();
    (!parts.is_empty()).then(|| parts.join("; "))
}

/// Whether an object is of those that a quota is about. Only pods and claims are told apart.
pub fn in_scope(resource: &GroupResource, quota: &Value, object: &Value) -> bool {
    requirements(quota).all(|requirement| requirement.holds(resource, object))
}

/// What a quota demands of the objects that it is about.
pub fn requirements(quota: &Value) -> impl Iterator<Item = Requirement<'_>> {
    let plain = items(quota, &["spec", "scopes"]).iter().filter_map(Value::as_str);
    let plain = plain.map(|scope| Requirement { scope, operator: "Exists", values: &[] });
    let chosen = items(quota, &["spec", "scopeSelector", "matchExpressions"]);
    plain.chain(chosen.iter().map(Requirement::of))
}

/// What an object must be to be within a scope (upstream: `ScopedResourceSelectorRequirement`).
pub struct Requirement<'a> {
    /// The scope's name.
    pub scope: &'a str,
    operator: &'a str,
    values: &'a [Value],
}

impl<'a> Requirement<'a> {
    /// Reads one.
    pub fn of(said: &'a Value) -> Self {
        let text = |member: &str| said.str_at(&[member]).unwrap_or_default();
        let (scope, operator) = (text("scopeName"), text("operator"));
        Self { scope, operator, values: items(said, &["values"]) }
    }

    /// Whether an object is within the scope.
    pub fn holds(&self, resource: &GroupResource, object: &Value) -> bool {
        match (resource.group.as_str(), resource.resource.as_str()) {
            ("", "pods") => pod_is_in(object, self),
            ("", "persistentvolumeclaims") => claim_is_in(object, self),
            _ => false,
        }
    }

    /// Whether a name is one of those that are meant; `""` is no name.
    fn means(&self, name: &str) -> bool {
        let is_named = || self.values.iter().any(|value| value.as_str() == Some(name));
        match self.operator {
            "In" => !name.is_empty() && is_named(),
            "NotIn" => name.is_empty() || !is_named(),
            "DoesNotExist" => name.is_empty(),
            _ => !name.is_empty(),
        }
    }
}

/// As Go prints the struct.
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
            requirement.means(pod.str_at(&["spec", "priorityClassName"]).unwrap_or_default())
        }
        "CrossNamespacePodAffinity" => crosses_namespaces(pod),
        _ => false,
    }
}

/// A claim has the class that it asks for, the one that it has, and the one that it is on its way to.
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
            [] => requirement.means(""),
            classes => classes.iter().any(|class| requirement.means(class)),
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
