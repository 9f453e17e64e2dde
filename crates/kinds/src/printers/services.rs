//! Services, Endpoints and EndpointSlices.

use pintle_value::Value;

use super::column::Cell::{By, Labels, Text};
use super::column::Description::Field;
use super::column::{AGE, NAME, string};
use super::read::{at, int_at, items_at, str_at};
use super::text::{SHOWN_MAX, filled, first_few, joined, load_balancer, with_more};
use super::{Columns, Kind};

pub(super) const KINDS: &[Kind] = &[
    Kind::new("", "Service", SERVICE),
    Kind::new("", "Endpoints", ENDPOINTS),
    Kind::new("discovery.k8s.io", "EndpointSlice", ENDPOINT_SLICE),
];

const SERVICE: Columns = &[
    NAME,
    string("Type", Text("spec.type"), Field("core.v1.ServiceSpec", "type")),
    string("Cluster-IP", By(cluster_ip), Field("core.v1.ServiceSpec", "clusterIP")),
    string("External-IP", By(external_ip), Field("core.v1.ServiceSpec", "externalIPs")),
    string("Port(s)", By(ports), Field("core.v1.ServiceSpec", "ports")),
    AGE,
    string("Selector", Labels("spec.selector"), Field("core.v1.ServiceSpec", "selector")).wide(),
];

const ENDPOINTS: Columns =
    &[NAME, string("Endpoints", By(endpoints), Field("core.v1.Endpoints", "subsets")), AGE];

const ENDPOINT_SLICE: Columns = &[
    NAME,
    string("AddressType", Text("addressType"), Field("discovery.v1.EndpointSlice", "addressType")),
    string("Ports", By(slice_ports), Field("discovery.v1.EndpointSlice", "ports")),
    string("Endpoints", By(slice_endpoints), Field("discovery.v1.EndpointSlice", "endpoints")),
    AGE,
];

fn cluster_ip(service: &Value) -> Value {
    match items_at(service, "spec.clusterIPs").first().and_then(Value::as_str) {
        Some(ip) => ip.into(),
        None => filled(str_at(service, "spec.clusterIP"), "<none>").into(),
    }
}

fn external_ip(service: &Value) -> Value {
    let external = joined(items_at(service, "spec.externalIPs").iter().filter_map(Value::as_str));
    match str_at(service, "spec.type") {
        "ClusterIP" | "NodePort" => filled(&external, "<none>").into(),
        "LoadBalancer" => {
            let all = [load_balancer(service), external];
            filled(&joined(all.iter().filter(|ips| !ips.is_empty())), "<pending>").into()
        }
        "ExternalName" => str_at(service, "spec.externalName").into(),
        _ => "<unknown>".into(),
    }
}

fn ports(service: &Value) -> Value {
    let texts = items_at(service, "spec.ports").iter().map(|port| {
        let protocol = str_at(port, "protocol");
        match (int_at(port, "port"), int_at(port, "nodePort")) {
            (port, node_port @ 1..) => format!("{port}:{node_port}/{protocol}"),
            (port, _) => format!("{port}/{protocol}"),
        }
    });
    filled(&joined(texts), "<none>").into()
}

/// Each ready address with each port of its subset, or alone if there are no ports.
fn endpoints(endpoints: &Value) -> Value {
    let subsets = items_at(endpoints, "subsets");
    if subsets.is_empty() {
        return "<none>".into();
    }
    let mut texts = subsets.iter().flat_map(|subset| {
        let addresses = items_at(subset, "addresses").iter().map(|address| str_at(address, "ip"));
        let ports = items_at(subset, "ports").iter().map(|port| Some(int_at(port, "port")));
        let none = items_at(subset, "ports").is_empty().then_some(None);
        ports.chain(none).flat_map(move |port| {
            addresses.clone().map(move |address| match port {
                Some(port) if address.contains(':') => format!("[{address}]:{port}"),
                Some(port) => format!("{address}:{port}"),
                None => address.to_owned(),
            })
        })
    });
    // The rest is counted and not made, because there may be billions.
    let counts = subsets.iter().map(|subset| {
        let count = |list| items_at(subset, list).len();
        count("addresses").saturating_mul(count("ports").max(1))
    });
    let shown = joined(texts.by_ref().take(SHOWN_MAX));
    with_more(shown, counts.fold(0, usize::saturating_add).saturating_sub(SHOWN_MAX)).into()
}

fn slice_ports(slice: &Value) -> Value {
    let texts = items_at(slice, "ports").iter().map(|port| match at(port, "port") {
        Some(number) => number.as_int().unwrap_or_default().to_string(),
        None => at(port, "name").and_then(Value::as_str).unwrap_or("*").to_owned(),
    });
    filled(&first_few(texts), "<unset>").into()
}

fn slice_endpoints(slice: &Value) -> Value {
    let endpoints = items_at(slice, "endpoints").iter();
    let addresses = endpoints.flat_map(|endpoint| items_at(endpoint, "addresses"));
    filled(&first_few(addresses.filter_map(Value::as_str)), "<unset>").into()
}
