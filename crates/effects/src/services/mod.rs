//! Services get addresses and node ports when they are written, and release them when they are
//! deleted.
//!
//! The addresses ([`addresses::held`]) and ports ([`ports::held`]) of a service are a function of
//! the service. Each address is an object (`IPAddress`); the ports are bits of one record
//! ([`port_record`]). Both are committed with the service, so nothing is allocated twice and
//! nothing leaks.
//!
//! Upstream: `pkg/registry/core/service/storage`, `alloc.go`.

mod addresses;
mod families;
mod network;
mod port_range;
mod port_record;
mod port_repair;
mod ports;
mod service;

use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use pintle_meta::{GroupVersionResource, Status, object};
use pintle_registry::Registry;
use pintle_registry::allocation::{Allocator, Companion};
use pintle_registry::request::Now;
use pintle_value::Value;

pub use self::addresses::{
    Occupied, held as held_addresses, ip_address, is_for_services, occupied as addresses_occupied,
};
use self::network::Family;
pub use self::network::Network;
pub use self::port_range::PortRange;
use self::port_record::PortRecord;
pub use self::port_repair::{Fault, PortFault, PortRepair, occupied as ports_occupied};
use self::service::{
    health_port, needs_address, needs_health_port, node_ports, number, ports, ports_mut, set_texts,
    text, texts,
};
use crate::{Error, Measures, Settings};

/// The smallest size of a range of `--service-cluster-ip-range` (upstream: `ServiceIPRange`).
const ADDRESSES_MIN: u128 = 8;

/// Allocates the addresses and ports of services.
pub(crate) struct Services {
    /// The families of the cluster's addresses, the default one first.
    families: Vec<Family>,
    /// The ranges of the command line, for a server that does not serve `ServiceCIDR` objects.
    networks: Vec<Network>,
    node_ports: PortRange,
    port_record: PortRecord,
    entropy: fn(&mut [u8]),
    measures: Arc<Measures>,
}

impl Services {
    /// Creates the allocator. The settings must have one range, or one range of each family.
    pub(crate) fn new(settings: &Settings<'_>) -> Result<Self, Error> {
        let networks = settings
            .service_ranges
            .iter()
            .map(|range| Network::parse(range).map_err(|reason| Error::ServiceRange { reason }));
        let networks = networks.collect::<Result<Vec<_>, _>>()?;
        if networks.iter().any(|network| network.size < ADDRESSES_MIN) {
            let reason = format!(
                "the service cluster IP range must be at least {ADDRESSES_MIN} IP addresses"
            );
            return Err(Error::ServiceRange { reason });
        }
        let families: Vec<Family> = networks.iter().map(|network| network.family).collect();
        match families.as_slice() {
            [_] => {}
            [first, second] if first != second => {}
            _ => {
                let reason = "must be one range, or two of different IP families, such as 10.0.0.0/24,fd00::/112".to_owned();
                return Err(Error::ServiceRange { reason });
            }
        }
        Ok(Self {
            families,
            networks,
            node_ports: settings.node_ports,
            port_record: PortRecord::default(),
            entropy: settings.entropy,
            measures: settings.measures.clone(),
        })
    }
}

impl Allocator for Services {
    fn assign(
        &self,
        registry: &Registry,
        new: &mut Value,
        old: Option<&Value>,
        dry_run: bool,
    ) -> Result<(), Status> {
        if let Some(old) = old {
            keep_assigned(new, old);
        }
        families::normalize(new, old);
        families::complete(new, old, &self.families)?;
        let (entropy, measures) = (self.entropy, (!dry_run).then_some(&*self.measures));
        let flagged = &self.networks;
        addresses::Pool { registry, flagged, entropy, dry_run, measures }.assign(new, old)?;
        let (record, range) = (&self.port_record, self.node_ports);
        let (found, taken) = (OnceCell::new(), ports::Got::default());
        let mut pool =
            ports::Pool { registry, record, found, range, entropy, dry_run, taken, measures };
        pool.assign(new, old)
    }

    fn companions(
        &self,
        registry: &Registry,
        old: Option<&Value>,
        new: Option<&Value>,
        now: Now,
    ) -> Result<Vec<Companion>, Status> {
        let mut companions = Vec::new();
        let held = |service: Option<&Value>| service.map(addresses::held).unwrap_or_default();
        let (before, after) = (held(old), held(new));
        let is_new = |address: &&String| !before.contains(address) && !address.is_empty();
        if let Some(new) = new {
            for address in after.iter().filter(is_new) {
                companions.push(addresses::creation(registry, new, address, now)?);
            }
        }
        if let Some(old) = old {
            for address in before.iter().filter(|address| !after.contains(address)) {
                companions.extend(addresses::removal(registry, old, address)?);
            }
        }
        let held = |service: Option<&Value>| service.map(ports::held).unwrap_or_default();
        let (before, after) = (held(old), held(new));
        let difference = |all: &[i64], other: &[i64]| -> Vec<i64> {
            all.iter().copied().filter(|port| other.binary_search(port).is_err()).collect()
        };
        let ports = (difference(&after, &before), difference(&before, &after));
        companions.extend(self.port_record.posting(registry, self.node_ports, ports, now)?);
        if let (Some(old), None) = (old, new) {
            companions.extend(endpoints(registry, old)?);
        }
        Ok(companions)
    }
}

/// The removal of a deleted service's endpoints, so that a new service of the same name does not
/// find them; `None` if there are no endpoints, or they have finalizers.
fn endpoints(registry: &Registry, service: &Value) -> Result<Option<Companion>, Status> {
    let name = GroupVersionResource::new("", "v1", "endpoints");
    let Some(resource) = registry.resource(&name) else { return Ok(None) };
    let found = registry.peek(&resource, object::namespace(service), object::name(service));
    let Some(found) = found else { return Ok(None) };
    if object::finalizers(&found.tree()?).next().is_some() {
        return Ok(None);
    }
    registry.removal(&resource, &found).map(Some)
}

/// Keeps the values that the server assigned, if the client omits them: manifests do not have them
/// (upstream: `patchAllocatedValues`).
fn keep_assigned(new: &mut Value, old: &Value) {
    if needs_address(old) && needs_address(new) {
        if text(new, "clusterIP").is_empty() && !text(old, "clusterIP").is_empty() {
            let address = text(old, "clusterIP");
            new.object_entry("spec").insert("clusterIP", address);
        }
        if texts(new, "clusterIPs").is_empty() {
            set_texts(new, "clusterIPs", &texts(old, "clusterIPs"));
        }
    }
    // A load balancer that opts out of node ports loses those that it does not request.
    if ports::assigns_ports(old) && ports::assigns_ports(new) {
        keep_node_ports(new, old);
    }
    let both = needs_health_port(old) && needs_health_port(new);
    if both && health_port(new) == 0 && health_port(old) != 0 {
        new.object_entry("spec").insert("healthCheckNodePort", health_port(old));
    }
}

/// Ports keep their node ports by name, unless another port requests them.
fn keep_node_ports(new: &mut Value, old: &Value) {
    let requested: BTreeSet<i64> = node_ports(new).into_iter().collect();
    let name = |port: &Value| port.str_at(&["name"]).unwrap_or_default().to_owned();
    // If several ports have the same name, the last one counts.
    let before: BTreeMap<String, i64> =
        ports(old).iter().map(|port| (name(port), number(port, "nodePort"))).collect();
    for port in ports_mut(new) {
        let name = port.get("name").and_then(Value::as_str).unwrap_or_default();
        let before = before.get(name).copied().unwrap_or_default();
        let own = port.get("nodePort").and_then(Value::as_int).unwrap_or(0);
        if own == 0 && before != 0 && !requested.contains(&before) {
            port.insert("nodePort", before);
        }
    }
}
