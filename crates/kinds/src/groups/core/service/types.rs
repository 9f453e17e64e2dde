//! A service that changes its type loses the members that only the old type has, unless they change
//! in the same write (upstream: `dropTypeDependentFields`).

use pintle_value::{Map, Value};

use crate::checks::same;

/// Drops members of the new spec that the new type does not need.
pub(super) fn drop_unneeded(new: &mut Value, old: &Value) {
    let Some(old) = old.get("spec").and_then(Value::as_object) else { return };
    let spec = new.object_entry("spec");
    if needs_address(old) && !needs_address(spec) {
        if unchanged(spec, old, "clusterIP") && unchanged(spec, old, "clusterIPs") {
            spec.remove("clusterIP");
            spec.remove("clusterIPs");
        }
        drop_unchanged(spec, old, &["ipFamilies", "ipFamilyPolicy"]);
    }
    if needs_node_ports(old) && !needs_node_ports(spec) && node_ports(spec) == node_ports(old) {
        let ports = spec.get_mut("ports").and_then(Value::as_array_mut).into_iter().flatten();
        ports.filter_map(Value::as_object_mut).for_each(|port| _ = port.remove("nodePort"));
    }
    if needs_health_port(old) && !needs_health_port(spec) {
        drop_unchanged(spec, old, &["healthCheckNodePort"]);
    }
    if is_balanced(old) && !is_balanced(spec) {
        drop_unchanged(spec, old, &["allocateLoadBalancerNodePorts", "loadBalancerClass"]);
    }
    if needs_external_policy(old) && !needs_external_policy(spec) {
        drop_unchanged(spec, old, &["externalTrafficPolicy"]);
    }
    // Upstream stores this member, but never shows it.
    if of(spec, "type") == "ExternalName" {
        spec.remove("internalTrafficPolicy");
    }
    if !is_balanced(spec) {
        new.object_entry("status").insert("loadBalancer", Map::new());
    }
}

fn drop_unchanged(spec: &mut Map, old: &Map, members: &[&str]) {
    for member in members {
        if unchanged(spec, old, member) {
            spec.remove(member);
        }
    }
}

fn unchanged(spec: &Map, old: &Map, member: &str) -> bool {
    same(spec.get(member), old.get(member))
}

fn of<'a>(spec: &'a Map, member: &str) -> &'a str {
    spec.get(member).and_then(Value::as_str).unwrap_or_default()
}

fn needs_address(spec: &Map) -> bool {
    of(spec, "type") != "ExternalName"
}

fn needs_node_ports(spec: &Map) -> bool {
    matches!(of(spec, "type"), "NodePort" | "LoadBalancer")
}

fn is_balanced(spec: &Map) -> bool {
    of(spec, "type") == "LoadBalancer"
}

fn needs_health_port(spec: &Map) -> bool {
    is_balanced(spec) && of(spec, "externalTrafficPolicy") == "Local"
}

/// Whether the service is reached from outside, through nodes or at external addresses.
fn needs_external_policy(spec: &Map) -> bool {
    let external = spec.get("externalIPs").and_then(Value::as_array).unwrap_or_default();
    needs_node_ports(spec) || (of(spec, "type") == "ClusterIP" && !external.is_empty())
}

fn node_ports(spec: &Map) -> Vec<i64> {
    let ports = spec.get("ports").and_then(Value::as_array).unwrap_or_default();
    let number = |port: &Value| port.get("nodePort").and_then(Value::as_int).unwrap_or(0);
    let mut numbers: Vec<i64> = ports.iter().map(number).filter(|port| *port != 0).collect();
    numbers.sort_unstable();
    numbers.dedup();
    numbers
}
