//! Warnings about ports that occur twice or overlap, and about their names.

use std::{cell::OnceCell, collections::BTreeMap};

use pintle_meta::quote::quote;
use pintle_value::Path;

use super::Warnings;
use crate::field::Field;

/// A port of a container.
struct Port<'a> {
    field: Field<'a>,
    /// The field's path, once a warning has shown it.
    path: OnceCell<Path>,
    name: &'a str,
    protocol: &'a str,
    number: i64,
    host_port: i64,
    host_ip: &'a str,
}

impl<'a> Port<'a> {
    fn of(field: Field<'a>) -> Self {
        let number = |member: &str| field.get(member).int().unwrap_or(0);
        Self {
            path: OnceCell::new(),
            name: field.str("name"),
            protocol: field.str("protocol"),
            number: number("containerPort"),
            host_port: number("hostPort"),
            host_ip: field.str("hostIP"),
            field,
        }
    }

    fn path(&self) -> &Path {
        self.path.get_or_init(|| self.field.path())
    }
}

/// Warns of ports of all containers: of a host IP without a host port, of ports that have the same
/// number and protocol and are duplicates or overlap, and of ports that have the same name.
pub(super) fn warn_of_ports(containers: &[Field<'_>], warnings: &mut Warnings) {
    let ports: Vec<Port<'_>> =
        containers.iter().flat_map(|container| container.items("ports")).map(Port::of).collect();
    warn_of_numbers(&ports, warnings);
    warn_of_names(&ports, warnings);
}

fn warn_of_numbers(ports: &[Port<'_>], warnings: &mut Warnings) {
    let mut seen: BTreeMap<(i64, &str), Vec<&Port<'_>>> = BTreeMap::new();
    for port in ports {
        if !port.host_ip.is_empty() && port.host_port == 0 {
            let Port { name, protocol, number, host_ip, .. } = port;
            warnings.push(|| {
                format!(
                    "{}: hostIP set without hostPort: {{Name:{name} HostPort:0 \
                     ContainerPort:{number} Protocol:{protocol} HostIP:{host_ip}}}",
                    port.path(),
                )
            });
        }
        let others = seen.entry((port.number, port.protocol)).or_default();
        let compared = warnings.pairs(others.len());
        for other in &others[..compared] {
            let Some(words) = relation(port, other) else { continue };
            let (path, other) = (port.path().as_str(), other.path().as_str());
            warnings.push(|| [path, ": ", words, " with ", other].concat());
        }
        others.push(port);
    }
}

/// Of ports with the same name, each is compared with the first one.
fn warn_of_names(ports: &[Port<'_>], warnings: &mut Warnings) {
    let mut first: BTreeMap<&str, &Port<'_>> = BTreeMap::new();
    for port in ports.iter().filter(|port| !port.name.is_empty()) {
        let other = *first.entry(port.name).or_insert(port);
        if std::ptr::eq(other, port) {
            continue;
        }
        warnings.push(|| {
            let (name, path, other) = (quote(port.name), port.path(), other.path());
            format!(
                "{path}: duplicate port name {name} with {other}, services and probes that select \
                 ports by name will use {other}"
            )
        });
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
