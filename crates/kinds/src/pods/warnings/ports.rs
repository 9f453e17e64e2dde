//! Warnings about ports that occur twice or overlap, and about their names.

use std::collections::BTreeMap;

use pintle_meta::quote::quote;
use pintle_value::Path;

use super::{LISTS, Warnings};
use crate::field::Field;

/// A port of a container, and its path.
struct Port<'a> {
    path: Path,
    host_port: i64,
    host_ip: &'a str,
}

/// Warns of a host IP without a host port, and of ports of all containers that have the same number
/// and protocol and are duplicates or overlap.
pub(super) fn warn_of_ports(spec: &Field<'_>, warnings: &mut Warnings) {
    let mut ports: BTreeMap<(i64, &str), Vec<Port<'_>>> = BTreeMap::new();
    let containers: Vec<Field<'_>> = LISTS.iter().flat_map(|list| spec.items(list)).collect();
    for container in &containers {
        for port in container.items("ports") {
            let number = |member: &str| port.get(member).int().unwrap_or(0);
            let (host_port, host_ip) = (number("hostPort"), port.str("hostIP"));
            let (container_port, protocol) = (number("containerPort"), port.str("protocol"));
            if !host_ip.is_empty() && host_port == 0 {
                warnings.push(|| {
                    format!(
                        "{}: hostIP set without hostPort: {{Name:{} HostPort:0 \
                         ContainerPort:{container_port} Protocol:{protocol} HostIP:{host_ip}}}",
                        port.path(),
                        port.str("name"),
                    )
                });
            }
            let others = ports.entry((container_port, protocol)).or_default();
            let this = Port { path: port.path(), host_port, host_ip };
            let compared = warnings.pairs(others.len());
            for other in &others[..compared] {
                let Some(words) = relation(&this, other) else { continue };
                warnings.push(|| format!("{}: {words} with {}", this.path, other.path));
            }
            others.push(this);
        }
    }
}

/// Warns of ports of all containers that have the name of an earlier one.
pub(super) fn warn_of_port_names(spec: &Field<'_>, warnings: &mut Warnings) {
    let mut first: BTreeMap<String, Path> = BTreeMap::new();
    for container in LISTS.iter().flat_map(|list| spec.items(list)) {
        for port in container.items("ports").filter(|port| !port.str("name").is_empty()) {
            let (path, name) = (port.path(), port.str("name"));
            if let Some(other) = first.get(name) {
                warnings.push(|| {
                    format!(
                        "{path}: duplicate port name {} with {other}, services and probes that \
                         select ports by name will use {other}",
                        quote(name)
                    )
                });
            } else {
                first.insert(name.to_owned(), path);
            }
        }
    }
}

fn relation(this: &Port<'_>, other: &Port<'_>) -> Option<&'static str> {
    let is_same_port = this.host_port == other.host_port;
    if is_same_port && this.host_ip == other.host_ip {
        Some("duplicate port definition")
    } else if this.host_port == 0 || other.host_port == 0 {
        Some("overlapping port definition")
    } else if is_same_port && this.host_ip.is_empty() != other.host_ip.is_empty() {
        Some("dangerously ambiguous port definition")
    } else {
        None
    }
}
