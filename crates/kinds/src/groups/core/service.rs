//! Services. Their addresses and node ports are given to them elsewhere, before they are prepared.

mod types;

use std::collections::BTreeSet;

use pintle_meta::{
    field::{Error, ErrorType},
    names, validation,
};
use pintle_registry::NameRule;
use pintle_value::{Map, Path, Value};

use crate::{
    checks::{invalid_text, items, members},
    defaults::{
        Condition::{Filled, Is},
        Constant::{Bool, Text},
        Defaults,
        Row::{Do, Each, Empty, In, Unset, When},
        is_filled, set,
    },
    strategy::{Strategy, WITH_STATUS, selectable},
};

const PORT_RANGE: &str = "must be between 1 and 65535, inclusive";

pub(super) const SERVICE: Strategy = Strategy {
    // DNS-1035 until RelaxedServiceNameValidation, which is on in v1.36 (DEF-05).
    name: NameRule::DnsLabel,
    create_on_update: true,
    delete_returns_object: true,
    fields: &[
        selectable!("spec.clusterIP" at "spec"."clusterIP"),
        selectable!("spec.type" at "spec"."type"),
    ],
    default: |object| set(object, DEFAULTS),
    prepare_update: types::drop_unneeded,
    validate: |new, old| {
        let mut errors = Vec::new();
        validate(new, &mut errors);
        if let Some(old) = old {
            validate_update(new, old, &mut errors);
        }
        errors
    },
    warnings: |service, _| warn(service),
    ..WITH_STATUS
};

const DEFAULTS: Defaults = &[
    In(
        "spec",
        &[
            Empty("sessionAffinity", Text("None")),
            Do(session_affinity_config),
            Empty("type", Text("ClusterIP")),
            Each("ports", &[Empty("protocol", Text("TCP")), Do(target_port)]),
            When(Is("type", "NodePort"), EXTERNAL),
            When(Is("type", "LoadBalancer"), EXTERNAL),
            When(Is("type", "ClusterIP"), &[INTERNAL, When(Filled("externalIPs"), EXTERNAL)]),
            When(Is("type", "LoadBalancer"), &[Unset("allocateLoadBalancerNodePorts", Bool(true))]),
        ],
    ),
    Do(address_modes),
];

const EXTERNAL: Defaults = &[Unset("externalTrafficPolicy", Text("Cluster")), INTERNAL];
const INTERNAL: crate::defaults::Row = Unset("internalTrafficPolicy", Text("Cluster"));

/// Three hours for services with affinity, nothing for those without.
fn session_affinity_config(spec: &mut Map) {
    match spec.get("sessionAffinity").and_then(Value::as_str) {
        Some("None") => _ = spec.remove("sessionAffinityConfig"),
        Some("ClientIP") => {
            let config = spec.get("sessionAffinityConfig");
            let seconds = config.and_then(|config| config.at(&["clientIP", "timeoutSeconds"]));
            if seconds.is_none_or(Value::is_null) {
                let timeout = Value::from([("timeoutSeconds", 10_800)]);
                spec.insert("sessionAffinityConfig", Value::from([("clientIP", timeout)]));
            }
        }
        _ => {}
    }
}

/// The port behind the service is the service's own unless it says another.
fn target_port(port: &mut Map) {
    if let Some(number) = port.get("port").cloned()
        && !is_filled(port, "targetPort")
    {
        port.insert("targetPort", number);
    }
}

/// What load balancers do with their addresses, where their status does not say.
fn address_modes(service: &mut Map) {
    let is_balanced = service.get("spec").and_then(|s| s.str_at(&["type"])) == Some("LoadBalancer");
    let balancer = service.get_mut("status").and_then(|status| status.get_mut("loadBalancer"));
    let ingress = balancer.and_then(|b| b.get_mut("ingress")).and_then(Value::as_array_mut);
    let points = ingress.into_iter().flatten().filter_map(Value::as_object_mut);
    for point in points.filter(|point| is_balanced && is_filled(point, "ip")) {
        if !is_filled(point, "ipMode") {
            point.insert("ipMode", "VIP");
        }
    }
}

/// What is ignored or old.
fn warn(service: &Value) -> Vec<String> {
    let of = |member: &str| service.str_at(&["spec", member]).unwrap_or_default();
    let is_external = of("type") == "ExternalName";
    let is_headless = of("type") == "ClusterIP" && of("clusterIP") == "None";
    let has_external_ips = !items(service, &["spec", "externalIPs"]).is_empty();
    let rows = [
        (
            is_headless && !of("loadBalancerIP").is_empty(),
            "spec.loadBalancerIP is ignored for headless services",
        ),
        (is_headless && has_external_ips, "spec.externalIPs is ignored for headless services"),
        (
            is_headless && of("sessionAffinity") != "None",
            "spec.SessionAffinity is ignored for headless services",
        ),
        (
            is_external && has_external_ips,
            "spec.externalIPs is ignored when spec.type is \"ExternalName\"",
        ),
        (
            !is_external && !of("externalName").is_empty(),
            "spec.externalName is ignored when spec.type is not \"ExternalName\"",
        ),
        (
            of("trafficDistribution") == "PreferClose",
            "spec.trafficDistribution: \"PreferClose\" is deprecated; use \"PreferSameZone\"",
        ),
    ];
    rows.into_iter().filter(|(holds, _)| *holds).map(|(_, words)| words.to_owned()).collect()
}

fn validate(service: &Value, errors: &mut Vec<Error>) {
    let spec = Path::new("spec");
    let of = |member: &str| service.str_at(&["spec", member]).unwrap_or_default();
    let ports = items(service, &["spec", "ports"]);
    let is_external = of("type") == "ExternalName";
    let is_headless = of("clusterIP") == "None";
    if ports.is_empty() && !is_headless && !is_external {
        errors.push(Error::required(&spec.field("ports"), ""));
    }
    if is_external {
        let name = of("externalName");
        let path = spec.field("externalName");
        if name.is_empty() {
            errors.push(Error::required(&path, ""));
        } else {
            let wrong = names::dns1123_subdomain(name.strip_suffix('.').unwrap_or(name));
            invalid_text(&path, name, wrong, errors);
        }
    }
    validate_ports(ports, &spec.field("ports"), errors);
    let selector = members(service, &["spec", "selector"]);
    errors.extend(validation::labels(Some(selector), &spec.field("selector")));
}

fn validate_ports(ports: &[Value], path: &Path, errors: &mut Vec<Error>) {
    let mut seen = BTreeSet::new();
    let mut numbers = BTreeSet::new();
    for (i, port) in ports.iter().enumerate() {
        let path = path.index(i);
        let name = port.str_at(&["name"]).unwrap_or_default();
        if name.is_empty() && ports.len() > 1 {
            errors.push(Error::required(&path.field("name"), ""));
        } else if !name.is_empty() {
            invalid_text(&path.field("name"), name, names::dns1123_label(name), errors);
            if !seen.insert(name) {
                errors.push(Error::duplicate(&path.field("name"), &Value::from(name)));
            }
        }
        let number = port.get("port").and_then(Value::as_int).unwrap_or(0);
        if !(1..=65535).contains(&number) {
            errors.push(Error::invalid(&path.field("port"), &number.into(), PORT_RANGE));
        }
        if let Some(target @ Value::Int(number)) = port.get("targetPort")
            && !(1..=65535).contains(number)
        {
            errors.push(Error::invalid(&path.field("targetPort"), target, PORT_RANGE));
        }
        let protocol = port.str_at(&["protocol"]).unwrap_or_default();
        if !numbers.insert((protocol, number)) {
            errors.push(duplicate_port(&path, protocol, number));
        }
    }
}

/// Upstream shows its own form of a port with nothing but number and protocol.
fn duplicate_port(path: &Path, protocol: &str, number: i64) -> Error {
    let shown = format!(
        r#"{{"Name":"","Protocol":"{protocol}","AppProtocol":null,"Port":{number},"TargetPort":0,"NodePort":0}}"#
    );
    Error {
        error_type: ErrorType::Duplicate,
        field: path.as_str().to_owned(),
        value: Some(shown),
        detail: String::new(),
    }
}

/// The first address, once there is one, stays as long as the service has addresses (DEF-03).
fn validate_update(new: &Value, old: &Value, errors: &mut Vec<Error>) {
    let is_external =
        |service: &Value| service.str_at(&["spec", "type"]).unwrap_or_default() == "ExternalName";
    if is_external(new) || is_external(old) {
        return;
    }
    let first = |service: &Value| match items(service, &["spec", "clusterIPs"]).first() {
        Some(first) => Some(first.clone()),
        None => service.at(&["spec", "clusterIP"]).filter(|ip| ip.as_str() != Some("")).cloned(),
    };
    if let Some(before) = first(old)
        && first(new).is_some_and(|after| after != before)
    {
        let path = Path::new("spec").field("clusterIPs").index(0);
        let shown = Value::from(items(new, &["spec", "clusterIPs"]).to_vec());
        errors.push(Error::invalid(&path, &shown, "may not change once set"));
    }
}
