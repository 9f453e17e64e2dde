//! Services. Their addresses and node ports are allocated before the strategy prepares them.

mod rules;
mod types;
mod warnings;

use pintle_registry::NameRule;
use pintle_value::{Map, Value};

use crate::{
    addresses,
    defaults::{
        Condition::{Filled, Is},
        Constant::{Bool, Text},
        Defaults,
        Row::{Do, Each, Empty, In, Unset, When},
        is_filled, set,
    },
    strategy::{AS_UPDATE, Part, Strategy, WITH_STATUS, part, selectable},
};

pub(super) const SERVICE: Strategy = Strategy {
    metadata: AS_UPDATE,
    // Names were DNS-1035 labels until RelaxedServiceNameValidation, which is on in v1.36 (DEF-05).
    name: NameRule::DnsLabel,
    create_on_update: true,
    delete_returns_object: true,
    fields: &[
        selectable!("spec.clusterIP" at "spec"."clusterIP"),
        selectable!("spec.type" at "spec"."type"),
    ],
    default: |object| set(object, DEFAULTS),
    prepare_update: types::drop_unneeded,
    validate: rules::validate,
    warnings: warnings::warnings,
    parts: &[Part {
        validate: |new, _| rules::validate_status(new),
        warnings: |new, _| addresses::odd_points(new),
        ..part("status")
    }],
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

/// Sets the timeout of services with client IP affinity to three hours, and removes the
/// configuration from services without affinity.
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

/// The default of a port's target port is its own number.
fn target_port(port: &mut Map) {
    if let Some(number) = port.get("port").cloned()
        && !is_filled(port, "targetPort")
    {
        port.insert("targetPort", number);
    }
}

/// The default mode of load balancers' addresses.
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
