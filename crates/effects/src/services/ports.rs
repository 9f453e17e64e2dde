//! Node ports: ports that are the same on every node, each for one service.

#[cfg(test)]
mod tests;

use std::cell::OnceCell;
use std::collections::{BTreeMap, HashMap, HashSet};

use pintle_meta::Status;
use pintle_meta::field::Error as FieldError;
use pintle_registry::Registry;
use pintle_value::{Path, Value};

use super::port_range::PortRange;
use super::port_record::{PortRecord, Taken};
use super::service::{
    health_port, invalid, needs_health_port, needs_node_ports, node_ports, number, ports,
    ports_mut, text,
};
use crate::Measures;
use crate::measures::Scope;

const FULL: &str = "range is full";
const TAKEN: &str = "provided port is already allocated";
/// In a dry run, a service without other ports gets the ports after this one; otherwise those after
/// the largest of its ports so far.
const DRY_RUN_BASE: i64 = 32768;

/// The node ports of a service, with the one for health checks, in ascending order.
pub(super) fn held(service: &Value) -> Vec<i64> {
    let mut held = node_ports(service);
    if needs_health_port(service) && health_port(service) != 0 {
        held.push(health_port(service));
    }
    held.sort_unstable();
    held.dedup();
    held
}

/// The pool of ports for one service.
pub(super) struct Pool<'a> {
    pub(super) registry: &'a Registry,
    pub(super) record: &'a PortRecord,
    /// The allocated ports, once the record has been read.
    pub(super) found: OnceCell<Result<Taken, Status>>,
    pub(super) range: PortRange,
    pub(super) entropy: fn(&mut [u8]),
    pub(super) dry_run: bool,
    /// The ports that this service has got so far.
    pub(super) taken: Got,
    /// Where allocations are counted; `None` in a dry run.
    pub(super) measures: Option<&'a Measures>,
}

/// The ports that a service has got so far. Ports are assigned before the service is validated, so
/// there may be as many as fit into a request.
#[derive(Default)]
pub(super) struct Got {
    ports: HashSet<i64>,
    last: Option<i64>,
}

impl Got {
    fn has(&self, port: i64) -> bool {
        self.ports.contains(&port)
    }

    fn add(&mut self, port: i64) {
        self.ports.insert(port);
        self.last = self.last.max(Some(port));
    }
}

impl Pool<'_> {
    /// Allocates the missing ports of a service.
    pub(super) fn assign(&mut self, new: &mut Value, old: Option<&Value>) -> Result<(), Status> {
        if needs_node_ports(new) {
            match old {
                None => self.create(new)?,
                Some(old) => self.update(new, old)?,
            }
        }
        if needs_health_port(new) && !old.is_some_and(needs_health_port) {
            self.assign_health(new)?;
        }
        Ok(())
    }

    /// Ports with the same number share a node port, unless they request different ones.
    fn create(&mut self, service: &mut Value) -> Result<(), Status> {
        let all = ports(service).to_vec();
        let mut shared: HashMap<i64, i64> = HashMap::new();
        let mut assigned = Vec::with_capacity(all.len());
        // The requested node port of each port number; the first request counts.
        let requests = all.iter().rev().filter(|port| number(port, "nodePort") != 0);
        let wanted: BTreeMap<i64, i64> =
            requests.map(|port| (number(port, "port"), number(port, "nodePort"))).collect();
        for (i, port) in all.iter().enumerate() {
            let (own, requested) = (number(port, "port"), number(port, "nodePort"));
            let found = shared.get(&own).copied();
            let node_port = match found {
                _ if requested == 0 && !assigns_ports(service) => 0,
                Some(shared) if requested == 0 || requested == shared => shared,
                Some(_) => self.take(service, i, requested)?,
                None => {
                    let node_port = match wanted.get(&own) {
                        Some(&wanted) => self.take(service, i, wanted)?,
                        None => self.next()?,
                    };
                    shared.insert(own, node_port);
                    node_port
                }
            };
            assigned.push(node_port);
        }
        set_node_ports(service, &assigned);
        Ok(())
    }

    fn update(&mut self, new: &mut Value, old: &Value) -> Result<(), Status> {
        let before: HashSet<i64> = node_ports(old).into_iter().collect();
        let all = ports(new).to_vec();
        let mut seen: HashSet<(&str, i64)> = HashSet::new();
        let mut assigned = Vec::with_capacity(all.len());
        for (i, port) in all.iter().enumerate() {
            let requested = number(port, "nodePort");
            let node_port = match requested {
                0 if !assigns_ports(new) => {
                    assigned.push(0);
                    continue;
                }
                0 => self.next()?,
                requested if before.contains(&requested) || self.taken.has(requested) => requested,
                requested => self.take(new, i, requested)?,
            };
            let protocol = port.str_at(&["protocol"]).unwrap_or_default();
            if !seen.insert((protocol, node_port)) {
                let why = format!("duplicate nodePort: {{{protocol} {node_port}}}");
                return Err(Status::failure(pintle_meta::Reason::Unknown, why));
            }
            assigned.push(node_port);
        }
        set_node_ports(new, &assigned);
        Ok(())
    }

    fn assign_health(&mut self, service: &mut Value) -> Result<(), Status> {
        let requested = health_port(service);
        if requested == 0 {
            let port = self.next_free().map_err(|why| {
                Status::internal(format!("failed to allocate a HealthCheck NodePort 0: {why}"))
            })?;
            service.object_entry("spec").insert("healthCheckNodePort", port);
            return Ok(());
        }
        self.try_take(requested).map_err(|why| {
            let what = format!("failed to allocate requested HealthCheck NodePort {requested}");
            Status::internal(format!("{what}: {why}"))
        })
    }

    fn take(&mut self, service: &Value, index: usize, port: i64) -> Result<i64, Status> {
        self.try_take(port).map_err(|why| {
            let at = Path::new("spec").field("ports").index(index).field("nodePort");
            invalid(service, &[FieldError::invalid(&at, &port.into(), why)])
        })?;
        Ok(port)
    }

    fn try_take(&mut self, port: i64) -> Result<(), String> {
        let taken = self.take_requested(port);
        self.count(Scope::Static, taken.is_ok());
        taken
    }

    fn count(&self, scope: Scope, taken: bool) {
        self.measures.into_iter().for_each(|measures| measures.port(scope, taken));
    }

    fn take_requested(&mut self, port: i64) -> Result<(), String> {
        // Upstream's dry run does not check the range.
        if !self.range.ports().contains(&port) && !self.dry_run {
            let range = self.range;
            return Err(format!(
                "provided port is not in the valid range. The range of valid ports is {range}"
            ));
        }
        if self.taken.has(port) || self.found()?.has(port) {
            return Err(TAKEN.to_owned());
        }
        self.taken.add(port);
        Ok(())
    }

    fn next(&mut self) -> Result<i64, Status> {
        let refuse = |why| Status::internal(format!("failed to allocate a nodePort: {why}"));
        self.next_free().map_err(refuse)
    }

    /// Allocates an available port; the first part of the range is tried last.
    fn next_free(&mut self) -> Result<i64, String> {
        let port = self.find_free();
        self.count(Scope::Dynamic, port.is_ok());
        port
    }

    fn find_free(&mut self) -> Result<i64, String> {
        let port = if self.dry_run {
            self.taken.last.unwrap_or(DRY_RUN_BASE) + 1
        } else {
            let found = self.found()?;
            let is_taken = |port: &i64| self.taken.has(*port) || found.has(*port);
            let (first, last) = self.range.ports().into_inner();
            let reserved = reserved(last - first + 1);
            let mut bytes = [0; 4];
            (self.entropy)(&mut bytes);
            let random = i64::from(u32::from_le_bytes(bytes));
            let parts = [(first + reserved, last), (first, first + reserved - 1)];
            let free = parts.into_iter().find_map(|(from, to)| {
                let count = to - from + 1;
                let mut ports = (0..count).map(|n| from + (random + n) % count);
                ports.find(|port| !is_taken(port))
            });
            free.ok_or(FULL)?
        };
        self.taken.add(port);
        Ok(port)
    }

    /// The allocated ports, from the record.
    fn found(&self) -> Result<&Taken, String> {
        let found = self.found.get_or_init(|| self.record.taken(self.registry, self.range));
        found.as_ref().map_err(|status| status.message.to_string())
    }
}

/// The number of ports at the beginning of the range that are reserved for clients that choose one
/// (KEP-3668).
fn reserved(size: i64) -> i64 {
    if size <= 16 { 0 } else { (size / 32).clamp(16, 128) }
}

/// Whether node ports are allocated for the service. Load balancers may opt out.
pub(super) fn assigns_ports(service: &Value) -> bool {
    match text(service, "type") {
        "NodePort" => true,
        "LoadBalancer" => {
            let value = service.at(&["spec", "allocateLoadBalancerNodePorts"]);
            value.and_then(Value::as_bool).unwrap_or(true)
        }
        _ => false,
    }
}

fn set_node_ports(service: &mut Value, assigned: &[i64]) {
    for (port, node_port) in ports_mut(service).zip(assigned) {
        if *node_port != 0 {
            port.insert("nodePort", *node_port);
        }
    }
}
