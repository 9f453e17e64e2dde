//! The namespaces, the priority classes, and the service of the API server.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use pintle_value::{Map, Value};

use super::{BootstrapObject, Reconcile, Settings, object};

const NAMESPACES: [&str; 4] = ["kube-system", "kube-public", "default", "kube-node-lease"];

pub(super) fn namespaces() -> Vec<BootstrapObject> {
    let made = NAMESPACES.map(|name| {
        let namespace = Value::Object(object("v1", "Namespace", "", name));
        BootstrapObject::new(["", "v1", "namespaces"], namespace, Reconcile::CreateOnly)
    });
    made.into()
}

pub(super) fn priority_classes() -> Vec<BootstrapObject> {
    let rows = [
        (
            "system-node-critical",
            2_000_001_000,
            "Used for system critical pods that must not be moved from their current node.",
        ),
        (
            "system-cluster-critical",
            2_000_000_000,
            "Used for system critical pods that must run in the cluster, but can be moved to another \
             node if necessary.",
        ),
    ];
    let made = rows.map(|(name, value, description)| {
        let mut class = object("scheduling.k8s.io/v1", "PriorityClass", "", name);
        class.insert("value", value);
        class.insert("description", description);
        let resource = ["scheduling.k8s.io", "v1", "priorityclasses"];
        BootstrapObject::new(resource, Value::Object(class), Reconcile::CreateOnly)
    });
    made.into()
}

/// The service `kubernetes` for the API server, with its ServiceCIDR and endpoints.
pub(super) fn service(settings: &Settings<'_>) -> Vec<BootstrapObject> {
    let mut made = Vec::new();
    if !settings.service_ranges.is_empty() {
        made.push(service_cidr(settings));
    }
    if let Some(address) = settings.service_ranges.first().and_then(|range| first_address(range)) {
        made.push(kubernetes(settings, address));
    }
    if let Some(address) = settings.advertise_address {
        made.extend(endpoints(&[address], settings.secure_port));
    }
    made
}

/// The endpoints of the service `kubernetes` with these addresses.
pub fn endpoints(addresses: &[IpAddr], secure_port: u16) -> Vec<BootstrapObject> {
    vec![endpoints_object(addresses, secure_port), endpoint_slice(addresses, secure_port)]
}

fn service_cidr(settings: &Settings<'_>) -> BootstrapObject {
    let ready = Value::from([
        ("type", "Ready"),
        ("status", "True"),
        ("message", "Kubernetes default Service CIDR is ready"),
    ]);
    let mut range = object("networking.k8s.io/v1", "ServiceCIDR", "", "kubernetes");
    range.entry_object("spec").insert("cidrs", settings.service_ranges.to_vec());
    range.entry_object("status").insert("conditions", vec![ready]);
    let resource = ["networking.k8s.io", "v1", "servicecidrs"];
    BootstrapObject::new(resource, Value::Object(range), Reconcile::CreateOnly)
}

fn kubernetes(settings: &Settings<'_>, address: IpAddr) -> BootstrapObject {
    let mut port = https_port(443);
    port.insert("targetPort", i64::from(settings.secure_port));
    let mut spec = Map::new();
    spec.insert("type", "ClusterIP");
    spec.insert("clusterIP", address.to_string());
    spec.insert("ipFamilyPolicy", "SingleStack");
    spec.insert("sessionAffinity", "None");
    spec.insert("ports", vec![Value::Object(port)]);
    let mut service = object("v1", "Service", "default", "kubernetes");
    let labels = Value::from([("component", "apiserver"), ("provider", "kubernetes")]);
    service.entry_object("metadata").insert("labels", labels);
    service.insert("spec", spec);
    BootstrapObject::new(["", "v1", "services"], Value::Object(service), Reconcile::CreateOnly)
}

fn endpoints_object(addresses: &[IpAddr], secure_port: u16) -> BootstrapObject {
    let address = |address: &IpAddr| Value::from([("ip", address.to_string())]);
    let port = https_port(secure_port);
    let mut subset = Map::new();
    subset.insert("addresses", addresses.iter().map(address).collect::<Vec<_>>());
    subset.insert("ports", vec![Value::Object(port)]);
    let subsets = if addresses.is_empty() { vec![] } else { vec![Value::Object(subset)] };
    let mut endpoints = object("v1", "Endpoints", "default", "kubernetes");
    let label = Value::from([("endpointslice.kubernetes.io/skip-mirror", "true")]);
    endpoints.entry_object("metadata").insert("labels", label);
    endpoints.insert("subsets", subsets);
    let endpoints = Value::Object(endpoints);
    BootstrapObject::new(["", "v1", "endpoints"], endpoints, Reconcile::WithMembers(&["subsets"]))
}

fn endpoint_slice(addresses: &[IpAddr], secure_port: u16) -> BootstrapObject {
    let endpoint = |address: &IpAddr| {
        let mut endpoint = Map::new();
        endpoint.insert("addresses", vec![address.to_string()]);
        endpoint.insert("conditions", Value::from([("ready", true)]));
        Value::Object(endpoint)
    };
    let mut slice = object("discovery.k8s.io/v1", "EndpointSlice", "default", "kubernetes");
    let label = Value::from([("kubernetes.io/service-name", "kubernetes")]);
    slice.entry_object("metadata").insert("labels", label);
    slice.insert("addressType", addresses.first().map_or("IPv4", |address| family(*address)));
    slice.insert("endpoints", addresses.iter().map(endpoint).collect::<Vec<_>>());
    slice.insert("ports", vec![Value::Object(https_port(secure_port))]);
    let resource = ["discovery.k8s.io", "v1", "endpointslices"];
    let reconcile = Reconcile::WithMembers(&["endpoints", "ports"]);
    BootstrapObject::new(resource, Value::Object(slice), reconcile)
}

fn https_port(number: u16) -> Map {
    let mut port = Map::new();
    port.insert("name", "https");
    port.insert("protocol", "TCP");
    port.insert("port", i64::from(number));
    port
}

const fn family(address: IpAddr) -> &'static str {
    match address {
        IpAddr::V4(_) => "IPv4",
        IpAddr::V6(_) => "IPv6",
    }
}

/// The first address of a range that a service can have: the one after the range's base address.
pub fn first_address(range: &str) -> Option<IpAddr> {
    let (base, length) = range.split_once('/')?;
    let length: u32 = length.parse().ok()?;
    Some(match base.parse().ok()? {
        IpAddr::V4(base) => {
            let mask = u32::MAX.checked_shl(32_u32.checked_sub(length)?).unwrap_or(0);
            Ipv4Addr::from_bits((base.to_bits() & mask).checked_add(1)?).into()
        }
        IpAddr::V6(base) => {
            let mask = u128::MAX.checked_shl(128_u32.checked_sub(length)?).unwrap_or(0);
            Ipv6Addr::from_bits((base.to_bits() & mask).checked_add(1)?).into()
        }
    })
}
