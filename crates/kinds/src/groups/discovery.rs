//! `discovery.k8s.io/v1`: endpoint slices.

use std::collections::BTreeSet;

use pintle_meta::{field::Error, names};
use pintle_registry::Generation;
use pintle_value::Value;

use super::core::is_servers_own;
use crate::{
    addresses::{canonical_ip, is_ipv6, special_ip},
    checks::{WARNINGS_MAX, frozen, items, unchanged},
    defaults::{
        Constant::Text,
        Defaults,
        Row::{Each, Unset},
        is_set, set,
    },
    field::{Errors, Field},
    formats::{ip, odd_ip},
    kind::{Kind, kind},
    rules::{
        Format,
        Rule::{Choice, Do, Given, OneOf},
        Rules, check, errors,
    },
    strategy::{AS_NEW, PLAIN, Strategy},
};

pub(crate) const KINDS: &[Kind] = &[kind("discovery.k8s.io", "endpointslices", SLICE)];

const SLICE: Strategy = Strategy {
    metadata: AS_NEW,
    declared_rules: false,
    generation: Generation::SpecAnd("labels"),
    default: |object| set(object, DEFAULTS),
    prepare_create: |slice| drop_topology(slice, &BTreeSet::new()),
    prepare_update: |new, old| {
        if new.get("endpoints") != old.get("endpoints") {
            drop_topology(new, &hosts(old));
        }
    },
    validate: |new, old| {
        let mut wrong = errors(new, RULES);
        // Stored endpoints are accepted.
        if old.is_none_or(|old| old.get("endpoints") != new.get("endpoints")) {
            check_endpoints(&Field::root(new), &mut wrong);
        }
        wrong.extend(unchanged(new, old, &[frozen(&["addressType"])]));
        wrong
    },
    warnings: |new, old| {
        let mut warnings = odd_addresses(new);
        if old.is_none() && new.str_at(&["addressType"]) == Some("FQDN") {
            warnings.push("spec.addressType: FQDN endpoints are deprecated".to_owned());
        }
        warnings
    },
    ..PLAIN
};

const HOST: &str = "kubernetes.io/hostname";

/// Drops `deprecatedTopology`, which this version ignores on writes. A host that v1beta1 stored
/// there becomes the node name of an endpoint without one.
fn drop_topology(slice: &mut Value, hosts: &BTreeSet<String>) {
    let endpoints = slice.make_object().get_mut("endpoints").and_then(Value::as_array_mut);
    for endpoint in endpoints.into_iter().flatten().filter_map(Value::as_object_mut) {
        let topology = endpoint.remove("deprecatedTopology").unwrap_or_default();
        let host = topology.str_at(&[HOST]).filter(|host| hosts.contains(*host));
        if let Some(host) = host.filter(|_| !is_set(endpoint, "nodeName")) {
            endpoint.insert("nodeName", host.to_owned());
        }
    }
}

/// The hosts in the topology of a slice.
fn hosts(slice: &Value) -> BTreeSet<String> {
    let endpoints = items(slice, &["endpoints"]).iter();
    let hosts = endpoints.filter_map(|one| one.str_at(&["deprecatedTopology", HOST]));
    hosts.map(str::to_owned).collect()
}

const RULES: Rules = &[Choice("addressType", &["FQDN", "IPv4", "IPv6"]), Do(check_ports)];

const PORT: Rules =
    &[OneOf("protocol", &["SCTP", "TCP", "UDP"]), Given("appProtocol", names::qualified_name)];

const ENDPOINTS_MAX: usize = 1000;
const ADDRESSES_MAX: usize = 100;
const PORTS_MAX: usize = 20_000;
const HINTS_MAX: usize = 8;

fn too_many(field: &Field<'_>, max: usize, errors: &mut Errors) {
    let count = match field.value() {
        Value::Array(items) => items.len(),
        Value::Object(members) => members.len(),
        _ => 0,
    };
    if count > max {
        errors.push(Error::too_many(&field.path(), count, max));
    }
}

fn check_ports(slice: &Field<'_>, errors: &mut Errors) {
    let ports = slice.items("ports");
    if ports.len() > PORTS_MAX {
        return too_many(&slice.get("ports"), PORTS_MAX, errors);
    }
    let mut seen = BTreeSet::new();
    for port in ports {
        let name = port.get("name");
        if !name.is_empty() {
            name.all_invalid(names::dns1123_label(name.text()), errors);
        }
        if !seen.insert(name.text().to_owned()) {
            errors.push(name.duplicate());
        }
        check(&port, PORT, errors);
    }
}

fn check_endpoints(slice: &Field<'_>, errors: &mut Errors) {
    let endpoints = slice.get("endpoints");
    if slice.items("endpoints").len() > ENDPOINTS_MAX {
        return too_many(&endpoints, ENDPOINTS_MAX, errors);
    }
    let kind = slice.str("addressType");
    for endpoint in slice.items("endpoints") {
        let addresses = endpoint.get("addresses");
        if addresses.is_empty() {
            errors.push(addresses.required("must contain at least 1 address"));
        }
        too_many(&addresses, ADDRESSES_MAX, errors);
        for address in endpoint.items("addresses") {
            check_address((&addresses, &address), kind, is_servers_own(slice.value()), errors);
        }
        if let Some(node) = endpoint.find("nodeName") {
            node.all_invalid(names::dns1123_subdomain(node.text()), errors);
        }
        if let Some(host) = endpoint.find("hostname") {
            host.all_invalid(names::dns1123_label(host.text()), errors);
        }
        check_hints(&endpoint.get("hints"), errors);
    }
}

/// Checks the hints of an endpoint: each zone and node at most once.
fn check_hints(hints: &Field<'_>, errors: &mut Errors) {
    let lists: [(&str, Format); 2] =
        [("forZones", names::label_value), ("forNodes", names::dns1123_subdomain)];
    for (list, format) in lists {
        let before = errors.len();
        too_many(&hints.get(list), HINTS_MAX, errors);
        if errors.len() > before {
            return;
        }
        let mut seen = BTreeSet::new();
        for hint in hints.items(list) {
            let name = hint.get("name");
            if !seen.insert(name.text().to_owned()) {
                errors.push(name.duplicate());
            }
            name.all_invalid(format(name.text()), errors);
        }
    }
}

fn check_address(
    (all, address): (&Field<'_>, &Field<'_>),
    kind: &str,
    is_own: bool,
    errors: &mut Errors,
) {
    let text = address.text();
    let wrong = match kind {
        "IPv4" | "IPv6" => match if kind == "IPv4" { ip(text) } else { canonical_ip(text) } {
            wrong if wrong.is_empty() => {
                if is_ipv6(text) != (kind == "IPv6") {
                    // As in upstream, this error has the path of the list.
                    let shown = all.of(address.value());
                    errors.push(shown.invalid(format!("must be an {kind} address")));
                }
                if is_own { Vec::new() } else { special_ip(text) }
            }
            wrong => wrong,
        },
        "FQDN" => return domain_name(address, errors),
        _ => return,
    };
    address.all_invalid(wrong, errors);
}

/// Checks a domain name of at least two labels, which may end with a dot.
fn domain_name(field: &Field<'_>, errors: &mut Errors) {
    let text = field.text();
    if text.is_empty() {
        return errors.push(field.required(""));
    }
    let text = text.strip_suffix('.').unwrap_or(text);
    let wrong = names::dns1123_subdomain(text);
    if !wrong.is_empty() {
        return errors.push(field.invalid_as(text, wrong.join(",")));
    }
    let long = text.split('.').find(|label| !names::dns1123_label(label).is_empty());
    if !text.contains('.') {
        let words = "should be a domain with at least two segments separated by dots";
        errors.push(field.invalid_as(text, words));
    } else if let Some(label) = long {
        errors.push(field.invalid_as(label, names::dns1123_label(label).join(",")));
    }
}

/// Warns of addresses that are not in canonical form, but not in the controllers' slices, which
/// users cannot correct.
fn odd_addresses(slice: &Value) -> Vec<String> {
    const CONTROLLERS: &[&str] =
        &["endpointslice-controller.k8s.io", "endpointslicemirroring-controller.k8s.io"];
    let labels = pintle_meta::object::labels(slice);
    let manager = labels.and_then(|labels| labels.get("endpointslice.kubernetes.io/managed-by"));
    if manager.and_then(Value::as_str).is_some_and(|manager| CONTROLLERS.contains(&manager)) {
        return Vec::new();
    }
    let mut warnings = Vec::new();
    for (i, endpoint) in items(slice, &["endpoints"]).iter().enumerate() {
        let addresses = items(endpoint, &["addresses"]).iter().enumerate();
        let odd = addresses.filter_map(|(j, address)| {
            let odd = odd_ip(address.as_str()?)?;
            Some(format!("endpoints[{i}].addresses[{j}]: {odd}"))
        });
        warnings.extend(odd.take(WARNINGS_MAX.saturating_sub(warnings.len())));
    }
    warnings
}

const DEFAULTS: Defaults =
    &[Each("ports", &[Unset("name", Text("")), Unset("protocol", Text("TCP"))])];
