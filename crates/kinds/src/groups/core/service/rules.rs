//! The rules for Services, in upstream's order.

mod update;

use std::collections::BTreeSet;

use pintle_meta::{
    field::{Error, ErrorType},
    names,
};
use pintle_value::Value;

use crate::{
    addresses,
    field::{Errors, Field},
    formats::{ip, parse_ip, port_name, port_number},
    rules::{
        Rule::{At, Choice, Do, Each, Formatted, Given, Labels, OneOf, Port},
        Rules, check,
    },
};

const FAMILIES: &[&str] = &["IPv4", "IPv6"];
const POLICIES: &[&str] = &["PreferDualStack", "RequireDualStack", "SingleStack"];
const TRAFFIC_POLICIES: &[&str] = &["Cluster", "Local"];
const FOR_LOAD_BALANCERS: &str = "may only be used when `type` is 'LoadBalancer'";
const SOURCE_RANGES: &str = "service.beta.kubernetes.io/load-balancer-source-ranges";

/// Validates a Service; `old` is the stored one.
pub(super) fn validate(new: &Value, old: Option<&Value>) -> Errors {
    let mut errors = Errors::new();
    let service = Field::root(new);
    let spec = service.get("spec");
    if let Some(old) = old {
        let old = Field::root(old);
        update::check(&spec, &old.get("spec"), &mut errors);
    }
    check_topology_annotations(&service, &mut errors);
    check(&spec, SPEC, &mut errors);
    check_addresses(&spec, old, &mut errors);
    check(&spec, PORTS_AND_TYPE, &mut errors);
    check_source_ranges(&service, old, &mut errors);
    check(&spec, TRAFFIC, &mut errors);
    errors
}

const SPEC: Rules = &[
    Do(|spec, errors| {
        let is_free = is_headless(spec) || spec.str("type") == "ExternalName";
        let ports = spec.get("ports");
        if ports.is_empty() && !is_free {
            errors.push(ports.required(""));
        }
    }),
    Do(check_type),
    Do(check_ports),
    Labels("selector"),
    Choice("sessionAffinity", &["ClientIP", "None"]),
    Do(check_affinity),
];

const PORT: Rules = &[
    Port("port"),
    Choice("protocol", &["SCTP", "TCP", "UDP"]),
    Do(|port, errors| port_or_name(&port.get("targetPort"), errors)),
    Given("appProtocol", names::qualified_name),
];

const PORTS_AND_TYPE: Rules = &[
    Choice("type", &["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"]),
    Do(check_node_ports),
    Do(check_same_ports),
];

const TRAFFIC: Rules = &[
    Do(|spec, errors| {
        let allocates = spec.get("allocateLoadBalancerNodePorts");
        if allocates.is_set() && !is_balanced(spec) {
            errors.push(allocates.forbidden(FOR_LOAD_BALANCERS));
        }
    }),
    Do(check_class),
    Do(check_external_traffic),
    OneOf("internalTrafficPolicy", TRAFFIC_POLICIES),
    OneOf("trafficDistribution", &["PreferClose", "PreferSameZone", "PreferSameNode"]),
];

/// Whether a service is headless, which means that it has no cluster IP address.
fn is_headless(spec: &Field<'_>) -> bool {
    let mut ips = spec.items("clusterIPs");
    match (ips.next(), ips.next()) {
        (Some(ip), None) => ip.text() == "None",
        (None, _) => spec.str("clusterIP") == "None",
        _ => false,
    }
}

fn is_balanced(spec: &Field<'_>) -> bool {
    spec.str("type") == "LoadBalancer"
}

/// Whether load balancers check the health of the service on each node.
fn needs_health_check(spec: &Field<'_>) -> bool {
    is_balanced(spec) && spec.str("externalTrafficPolicy") == "Local"
}

fn check_topology_annotations(service: &Field<'_>, errors: &mut Errors) {
    const HINTS: &str = "service.kubernetes.io/topology-aware-hints";
    const MODE: &str = "service.kubernetes.io/topology-mode";
    let metadata = service.get("metadata");
    let annotations = metadata.get("annotations");
    let (hints, mode) = (annotations.entry(HINTS), annotations.entry(MODE));
    if hints.is_set() && mode.is_set() && hints.text() != mode.text() {
        let words = format!("must match annotations[{HINTS}] when both are specified");
        errors.push(mode.invalid(words));
    }
}

/// Checks the members that each type forbids or requires.
fn check_type(spec: &Field<'_>, errors: &mut Errors) {
    let kind = spec.str("type");
    match kind {
        "LoadBalancer" | "NodePort" => {
            if is_headless(spec)
                && let Some(first) = spec.items("clusterIPs").next()
            {
                errors.push(first.invalid(format!("may not be set to 'None' for {kind} services")));
            }
        }
        "ExternalName" => {
            for member in ["clusterIPs", "ipFamilies", "ipFamilyPolicy"] {
                let field = spec.get(member);
                if !field.is_empty() {
                    errors.push(field.forbidden("may not be set for ExternalName services"));
                }
            }
            let name = spec.get("externalName");
            let text = name.text().strip_suffix('.').unwrap_or(name.text());
            if text.is_empty() {
                errors.push(name.required(""));
            } else {
                name.all_invalid_as(text, names::dns1123_subdomain(text), errors);
            }
        }
        _ => {}
    }
}

fn check_ports(spec: &Field<'_>, errors: &mut Errors) {
    let mut seen = BTreeSet::new();
    let ports = spec.items("ports");
    let needs_names = ports.len() > 1;
    for port in ports {
        let name = port.get("name");
        if !name.is_empty() {
            name.all_invalid(names::dns1123_label(name.text()), errors);
            if !seen.insert(name.text().to_owned()) {
                errors.push(name.duplicate());
            }
        } else if needs_names {
            errors.push(name.required(""));
        }
        check(&port, PORT, errors);
    }
}

/// Checks a port's number or name. The defaults set an absent port.
pub(super) fn port_or_name(port: &Field<'_>, errors: &mut Errors) {
    match port.value() {
        Value::Int(number) => errors.extend(port_number(*number).map(|words| port.invalid(words))),
        Value::String(name) => port.all_invalid(port_name(name), errors),
        _ => {}
    }
}

fn check_affinity(spec: &Field<'_>, errors: &mut Errors) {
    const SECONDS_MAX: i64 = 86_400;
    let config = spec.get("sessionAffinityConfig");
    match spec.str("sessionAffinity") {
        "ClientIP" => {
            let client = config.get("clientIP");
            let seconds = client.get("timeoutSeconds");
            if !config.is_set() {
                let words = "must be specified when session affinity is set to ClientIP";
                errors.push(config.required(words));
            } else if !client.is_set() {
                let words = "must be set when session affinity is ClientIP";
                errors.push(client.required(words));
            } else if !seconds.is_set() {
                let words = "must be set when session affinity is ClientIP";
                errors.push(seconds.required(words));
            } else if seconds.int().is_some_and(|n| !(1..=SECONDS_MAX).contains(&n)) {
                let words = format!("must be greater than 0 and less than {SECONDS_MAX}");
                errors.push(seconds.invalid(words));
            }
        }
        "None" if config.is_set() => {
            errors.push(config.forbidden("must not be set when session affinity is None"));
        }
        _ => {}
    }
}

/// Checks cluster IPs, families and policy together. Stored addresses are accepted.
fn check_addresses(spec: &Field<'_>, old: Option<&Value>, errors: &mut Errors) {
    let old = old.and_then(|old| old.get("spec")).unwrap_or(&Value::Null);
    let known = |member: &str| -> BTreeSet<&str> {
        let known = old.get(member).and_then(Value::as_array).unwrap_or_default();
        known.iter().filter_map(Value::as_str).collect()
    };
    if spec.str("type") != "ExternalName" {
        check_cluster_addresses(spec, &known("clusterIPs"), errors);
    }
    let stored = known("externalIPs");
    for external in spec.items("externalIPs") {
        let wrong = match ip(external.text()) {
            _ if stored.contains(external.text()) => continue,
            wrong if wrong.is_empty() => addresses::special_ip(external.text()),
            wrong => wrong,
        };
        external.all_invalid(wrong, errors);
    }
}

fn check_cluster_addresses(spec: &Field<'_>, known: &BTreeSet<&str>, errors: &mut Errors) {
    let (first, ips) = (spec.str("clusterIP"), spec.get("clusterIPs"));
    match (first.is_empty(), spec.items("clusterIPs").next()) {
        (false, None) => errors.push(ips.required("")),
        (false, Some(ip)) if ip.text() != first => {
            errors.push(ips.invalid("first value must match `clusterIP`"));
        }
        (true, Some(_)) => {
            errors.push(ips.invalid("must be empty when `clusterIP` is not specified"));
        }
        _ => {}
    }
    let mut seen = BTreeSet::new();
    for family in spec.items("ipFamilies") {
        if !FAMILIES.contains(&family.text()) {
            errors.push(family.not_supported(FAMILIES));
        }
        if !seen.insert(family.text().to_owned()) {
            errors.push(family.duplicate());
        }
    }
    check(spec, &[OneOf("ipFamilyPolicy", POLICIES)], errors);
    let before = errors.len();
    let count = spec.items("clusterIPs").len();
    for (i, field) in spec.items("clusterIPs").enumerate() {
        if i == 0 && field.text() == "None" {
            if count > 1 {
                errors.push(ips.invalid("'None' must be the first and only value"));
            }
        } else if !known.contains(field.text()) {
            field.all_invalid(ip(field.text()), errors);
        }
    }
    let has_invalid = errors.len() > before || errors.is_full();
    if count > 2 {
        errors.push(ips.invalid("may only hold up to 2 values"));
    }
    if !has_invalid {
        check_families(spec, count, errors);
    }
}

fn check_families(spec: &Field<'_>, count: usize, errors: &mut Errors) {
    let ips = spec.get("clusterIPs");
    let has = |v6: bool| spec.items("clusterIPs").any(|ip| addresses::is_ipv6(ip.text()) == v6);
    if count > 1 && !(has(true) && has(false)) {
        errors.push(ips.invalid("may specify no more than one IP for each IP family"));
    }
    if is_headless(spec) {
        return;
    }
    for (i, (ip, family)) in spec.items("clusterIPs").zip(spec.items("ipFamilies")).enumerate() {
        let is_ipv6 = addresses::is_ipv6(ip.text());
        if matches!((family.text(), is_ipv6), ("IPv4", true) | ("IPv6", false)) {
            let family = family.text();
            let words = format!("expected an {family} value as indicated by `ipFamilies[{i}]`");
            errors.push(ip.invalid(words));
        }
    }
}

fn check_node_ports(spec: &Field<'_>, errors: &mut Errors) {
    let is_internal = spec.str("type") == "ClusterIP";
    let node_port = |port: &Field<'_>| port.get("nodePort").int().filter(|number| *number != 0);
    for port in spec.items("ports").filter(|port| is_internal && node_port(port).is_some()) {
        let words = "may not be used when `type` is 'ClusterIP'";
        errors.push(port.get("nodePort").forbidden(words));
    }
    let mut seen = BTreeSet::new();
    for port in spec.items("ports") {
        let Some(number) = node_port(&port) else { continue };
        if !seen.insert((port.str("protocol").to_owned(), number)) {
            errors.push(port.get("nodePort").duplicate());
        }
    }
}

/// Checks that no two ports have the same number and protocol. As in upstream, the error shows the
/// port in upstream's internal form with only these two members set.
fn check_same_ports(spec: &Field<'_>, errors: &mut Errors) {
    let mut seen = BTreeSet::new();
    for port in spec.items("ports") {
        let (protocol, number) = (port.str("protocol"), port.get("port").int().unwrap_or(0));
        if !seen.insert((protocol, number)) {
            let shown = format!(
                r#"{{"Name":"","Protocol":"{protocol}","AppProtocol":null,"Port":{number},"TargetPort":0,"NodePort":0}}"#
            );
            errors.push(Error {
                error_type: ErrorType::Duplicate,
                field: port.path().as_str().to_owned(),
                value: Some(shown),
                detail: String::new(),
            });
        }
    }
}

/// Checks the source ranges of a load balancer: a field, and the annotation that preceded it.
fn check_source_ranges(service: &Field<'_>, old: Option<&Value>, errors: &mut Errors) {
    let spec = service.get("spec");
    let ranges = spec.get("loadBalancerSourceRanges");
    // Upstream's path begins with a capital.
    let named = ranges.called("LoadBalancerSourceRanges");
    if !ranges.is_empty() {
        if !is_balanced(&spec) {
            errors.push(named.forbidden(FOR_LOAD_BALANCERS));
        }
        let known = old.and_then(|old| old.at(&["spec", "loadBalancerSourceRanges"]));
        let known = known.and_then(Value::as_array).unwrap_or_default().iter();
        let known: BTreeSet<&str> = known.filter_map(Value::as_str).collect();
        for (i, range) in spec.items("loadBalancerSourceRanges").enumerate() {
            if !known.contains(range.text()) {
                let wrong = addresses::range(range.text().trim());
                let text = Value::from(range.text().trim());
                let path = named.path().index(i);
                errors.extend(wrong.into_iter().map(|w| Error::invalid(&path, &text, w)));
            }
        }
        return;
    }
    let metadata = service.get("metadata");
    let annotations = metadata.get("annotations");
    let annotation = annotations.entry(SOURCE_RANGES);
    if !annotation.is_set() {
        return;
    }
    if !is_balanced(&spec) {
        errors.push(annotation.forbidden(FOR_LOAD_BALANCERS));
    }
    let text = annotation.text().trim();
    for range in text.split(',').map(str::trim).filter(|_| !text.is_empty()) {
        annotation.all_invalid_as(range, addresses::range(range), errors);
    }
}

fn check_class(spec: &Field<'_>, errors: &mut Errors) {
    let class = spec.get("loadBalancerClass");
    if is_balanced(spec) {
        if class.is_set() {
            class.all_invalid(names::qualified_name(class.text()), errors);
        }
    } else if class.is_set() {
        errors.push(class.forbidden(FOR_LOAD_BALANCERS));
    }
}

/// The allocator ensures that a health check has a node port.
fn check_external_traffic(spec: &Field<'_>, errors: &mut Errors) {
    let policy = spec.get("externalTrafficPolicy");
    let is_accessible = match spec.str("type") {
        "LoadBalancer" | "NodePort" => true,
        "ClusterIP" => spec.items("externalIPs").len() > 0,
        _ => false,
    };
    if is_accessible {
        check(spec, &[Choice("externalTrafficPolicy", TRAFFIC_POLICIES)], errors);
    } else if !policy.is_empty() {
        errors.push(policy.invalid("may only be set for externally-accessible services"));
    }
    let port = spec.get("healthCheckNodePort");
    let Some(number) = port.int().filter(|number| *number != 0) else { return };
    if needs_health_check(spec) {
        errors.extend(port_number(number).map(|words| port.invalid(words)));
    } else {
        let words = "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is \
                     'Local'";
        errors.push(port.invalid(words));
    }
}

/// The rules for `status`.
pub(super) fn validate_status(service: &Value) -> Errors {
    let root = Field::root(service);
    let ingress = root.at(&["status", "loadBalancer", "ingress"]);
    if root.at(&["spec", "type"]).text() != "LoadBalancer" && !ingress.is_empty() {
        let words = "may only be used when `spec.type` is 'LoadBalancer'";
        return [ingress.forbidden(words)].into_iter().collect();
    }
    crate::rules::errors(service, STATUS)
}

const STATUS: Rules = &[At("status", &[At("loadBalancer", &[Each("ingress", INGRESS)])])];

const INGRESS: Rules = &[
    Formatted("ip", ip),
    Do(|point, errors| {
        let (address, mode) = (point.get("ip"), point.get("ipMode"));
        match (address.is_empty(), mode.is_set()) {
            (false, false) => errors.push(mode.required("must be specified when `ip` is set")),
            (true, true) => {
                errors.push(mode.forbidden("may not be specified when `ip` is not set"));
            }
            (false, true) => check(point, &[OneOf("ipMode", &["Proxy", "VIP"])], errors),
            (true, false) => {}
        }
    }),
    Formatted("hostname", names::dns1123_subdomain),
    Do(no_address),
];

/// Checks that a host name is not an IP address.
fn no_address(point: &Field<'_>, errors: &mut Errors) {
    let host = point.get("hostname");
    if parse_ip(host.text()).is_some() {
        errors.push(host.invalid("must be a DNS name, not an IP address"));
    }
}
