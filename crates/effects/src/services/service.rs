//! Reads and writes the fields of services.

use std::net::IpAddr;

use pintle_meta::{GroupKind, Status, field, object};
use pintle_value::{Map, Path, Value};

use super::network::Family;

/// The address of a headless service.
pub(crate) const NONE: &str = "None";

/// A string of the spec.
pub(crate) fn text<'a>(service: &'a Value, member: &str) -> &'a str {
    service.str_at(&["spec", member]).unwrap_or_default()
}

/// A list of strings of the spec.
pub(crate) fn texts(service: &Value, member: &str) -> Vec<String> {
    let list = service.at(&["spec", member]).and_then(Value::as_array).unwrap_or_default();
    list.iter().map(|item| item.as_str().unwrap_or_default().to_owned()).collect()
}

/// A field of the spec; null if it is absent.
pub(crate) fn value(service: &Value, member: &str) -> Value {
    service.at(&["spec", member]).cloned().unwrap_or_default()
}

/// Sets a list of strings in the spec; an empty list removes the field.
pub(crate) fn set_texts(service: &mut Value, member: &str, texts: &[String]) {
    let spec = service.object_entry("spec");
    if texts.is_empty() {
        spec.remove(member);
    } else {
        spec.insert(member, texts.to_vec());
    }
}

/// The ports of the spec.
pub(crate) fn ports(service: &Value) -> &[Value] {
    service.at(&["spec", "ports"]).and_then(Value::as_array).unwrap_or_default()
}

/// The ports of the spec, mutable.
pub(crate) fn ports_mut(service: &mut Value) -> impl Iterator<Item = &mut Map> {
    let ports = service.object_entry("spec").get_mut("ports").and_then(Value::as_array_mut);
    ports.into_iter().flatten().filter_map(Value::as_object_mut)
}

/// A number of a port; 0 if it is absent.
pub(crate) fn number(port: &Value, member: &str) -> i64 {
    port.get(member).and_then(Value::as_int).unwrap_or(0)
}

/// The node ports, in the order of the ports.
pub(crate) fn node_ports(service: &Value) -> Vec<i64> {
    ports(service).iter().map(|port| number(port, "nodePort")).filter(|port| *port != 0).collect()
}

/// The port for health checks; 0 if it is absent.
pub(crate) fn health_port(service: &Value) -> i64 {
    service.at(&["spec", "healthCheckNodePort"]).and_then(Value::as_int).unwrap_or(0)
}

/// Whether the service can have an address. A service of type `ExternalName` cannot.
pub(crate) fn needs_address(service: &Value) -> bool {
    text(service, "type") != "ExternalName"
}

/// Whether services of this type have node ports.
pub(crate) fn needs_node_ports(service: &Value) -> bool {
    matches!(text(service, "type"), "NodePort" | "LoadBalancer")
}

/// Whether the service's load balancer must ask nodes whether they have local endpoints.
pub(crate) fn needs_health_port(service: &Value) -> bool {
    text(service, "type") == "LoadBalancer" && text(service, "externalTrafficPolicy") == "Local"
}

/// Whether the service has no address, although its type can have one.
pub(crate) fn is_headless(service: &Value) -> bool {
    texts(service, "clusterIPs").first().is_some_and(|first| first == NONE)
}

/// Whether the service has no selector.
pub(crate) fn is_selectorless(service: &Value) -> bool {
    let selector = service.at(&["spec", "selector"]).and_then(Value::as_object);
    selector.is_none_or(|selector| selector.is_empty())
}

/// The family of an address.
pub(crate) fn family_of(address: &str) -> Option<Family> {
    address.parse::<IpAddr>().ok().map(Family::of)
}

/// The family of a name.
pub(crate) fn family(name: &str) -> Option<Family> {
    [Family::V4, Family::V6].into_iter().find(|family| family.name() == name)
}

/// The path of a field in the spec.
pub(crate) fn path(member: &str) -> Path {
    Path::new("spec").field(member)
}

/// The error of an invalid service.
pub(crate) fn invalid(service: &Value, errors: &[field::Error]) -> Status {
    Status::invalid(&GroupKind::new("", "Service"), object::name(service), errors)
}

/// Returns an error if there are any field errors.
pub(crate) fn check(service: &Value, errors: &[field::Error]) -> Result<(), Status> {
    if errors.is_empty() { Ok(()) } else { Err(invalid(service, errors)) }
}
