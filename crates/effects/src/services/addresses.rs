//! The addresses of services: `ServiceCIDR` objects are the ranges, `IPAddress` objects the
//! allocated addresses (upstream: the `MultiCIDRServiceAllocator`).

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Instant;

use pintle_meta::field::Error;
use pintle_meta::{GroupVersionResource, Status, object};
use pintle_registry::allocation::Companion;
use pintle_registry::request::Now;
use pintle_registry::{Registry, Resource};
use pintle_value::{Map, Value};

use super::families;
use super::network::{Family, Network};
use super::service::{self, family, invalid, is_headless, needs_address, set_texts, texts, value};
use crate::Measures;
use crate::measures::Scope;

const GROUP: &str = "networking.k8s.io";
const FAMILY_LABEL: &str = "ipaddress.kubernetes.io/ip-family";
/// The label and the value for the creator of an `IPAddress`.
const MANAGER_LABEL: &str = "ipaddress.kubernetes.io/managed-by";
const MANAGER: &str = "ipallocator.k8s.io";
const TAKEN: &str = "provided IP is already allocated";

/// The pool of addresses.
pub(super) struct Pool<'a> {
    pub(super) registry: &'a Registry,
    /// The ranges of the command line, used if the server does not serve `ServiceCIDR` objects.
    pub(super) flagged: &'a [Network],
    pub(super) entropy: fn(&mut [u8]),
    pub(super) dry_run: bool,
    /// Where allocations are counted; `None` in a dry run.
    pub(super) measures: Option<&'a Measures>,
}

impl Pool<'_> {
    /// Allocates the missing addresses of a service.
    pub(super) fn assign(&self, new: &mut Value, old: Option<&Value>) -> Result<(), Status> {
        let keeps = old.is_some_and(|old| families::keeps_preference(new, old));
        if !needs_address(new) || is_headless(new) || keeps {
            return Ok(());
        }
        // The service keeps the addresses that it has; validation checks them.
        let held = old.filter(|old| needs_address(old) && !is_headless(old));
        let held = held.map(|old| texts(old, "clusterIPs")).unwrap_or_default();
        if old.is_some_and(is_headless) {
            return Ok(());
        }
        let mut addresses = texts(new, "clusterIPs");
        let requested = value(new, "clusterIPs");
        for (i, name) in texts(new, "ipFamilies").iter().enumerate() {
            let Some(family) = family(name) else { continue };
            match addresses.get(i) {
                // A service cannot replace an address that it has, so this one is not allocated.
                Some(_) if i < held.len() => {}
                Some(address) => self.take(address).map_err(|why| {
                    let why = format!("failed to allocate IP {address}: {why}");
                    invalid(new, &[Error::invalid(&service::path("clusterIPs"), &requested, why)])
                })?,
                None => addresses.push(self.next(family)?),
            }
        }
        if let Some(first) = addresses.first() {
            new.object_entry("spec").insert("clusterIP", first.as_str());
        }
        set_texts(new, "clusterIPs", &addresses);
        Ok(())
    }

    /// Checks that an address is available; the error is the reason.
    fn take(&self, address: &str) -> Result<(), String> {
        let parsed: IpAddr = address.parse().map_err(|_| TAKEN)?;
        let networks = self.networks().map_err(|status| status.message)?;
        let Some(range) = networks.iter().find(|network| network.contains(parsed)) else {
            // In a dry run, upstream only checks the first range.
            return Err(match networks.first().filter(|_| self.dry_run) {
                Some(range) => format!(
                    "the provided IP ({parsed}) is not in the valid range. The range of valid IPs is {range}"
                ),
                None => "the provided network does not match the current range".to_owned(),
            });
        };
        let began = Instant::now();
        let is_free = self.dry_run || !is_taken(self.registry, &parsed.to_string());
        self.count(range, Scope::Static, is_free, began);
        if is_free { Ok(()) } else { Err(TAKEN.to_owned()) }
    }

    fn count(&self, range: &Network, scope: Scope, taken: bool, began: Instant) {
        let Some(measures) = self.measures else { return };
        let range = range.to_string();
        measures.address(&range, scope, taken);
        if taken {
            measures.address_durations.with([&range]).took(began.elapsed());
        }
    }

    /// Finds an available address of a family; in a dry run, returns the network's own address of
    /// the family's first range.
    fn next(&self, family: Family) -> Result<String, Status> {
        let networks = self.networks()?;
        let mut networks = networks.iter().filter(|network| network.family == family);
        let address = if self.dry_run {
            networks.next().map(|network| network.own_address())
        } else {
            let free = |address: IpAddr| !is_taken(self.registry, &address.to_string());
            networks.find_map(|network| {
                let began = Instant::now();
                let found = network.find_free(|| self.random(), free);
                self.count(network, Scope::Dynamic, found.is_some(), began);
                found
            })
        };
        let why = "failed to allocate a serviceIP: range is full";
        address.map(|address| address.to_string()).ok_or_else(|| Status::internal(why))
    }

    /// The ranges for addresses.
    fn networks(&self) -> Result<Vec<Network>, Status> {
        let Some(ranges) = resource(self.registry, "servicecidrs") else {
            return Ok(self.flagged.to_vec());
        };
        let ranges = self.registry.objects(&ranges).map(|range| range.tree());
        let ranges: Vec<Value> = ranges.collect::<Result<_, _>>()?;
        let texts = ranges.iter().filter(|range| is_ready(range)).flat_map(|r| texts(r, "cidrs"));
        Ok(texts.filter_map(|text| Network::parse(&text).ok()).collect())
    }

    fn random(&self) -> u64 {
        let mut bytes = [0; 8];
        (self.entropy)(&mut bytes);
        u64::from_le_bytes(bytes)
    }
}

/// The numbers of allocated and of available addresses or ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Occupied {
    pub taken: u64,
    pub free: u64,
}

/// The usage of each range of service addresses, from the `IPAddress` objects.
pub fn occupied(registry: &Registry) -> Vec<(String, Occupied)> {
    let [Some(ranges), Some(addresses)] =
        ["servicecidrs", "ipaddresses"].map(|plural| resource(registry, plural))
    else {
        return Vec::new();
    };
    let ranges: Vec<Value> = registry.objects(&ranges).filter_map(|r| r.tree().ok()).collect();
    let texts = ranges.iter().filter(|range| is_ready(range)).flat_map(|r| texts(r, "cidrs"));
    let mut networks: Vec<(Network, u64)> =
        texts.filter_map(|text| Some((Network::parse(&text).ok()?, 0))).collect();
    for address in registry.objects(&addresses) {
        let Ok(address) = address.name().parse() else { continue };
        let of = networks.iter_mut().find(|(network, _)| network.contains(address));
        of.into_iter().for_each(|(_, taken)| *taken += 1);
    }
    let occupied = |(network, taken): (Network, u64)| {
        let free = network.size().saturating_sub(taken);
        (network.to_string(), Occupied { taken, free })
    };
    networks.into_iter().map(occupied).collect()
}

/// The addresses of a service.
pub fn held(service: &Value) -> Vec<String> {
    if needs_address(service) && !is_headless(service) {
        texts(service, "clusterIPs")
    } else {
        Vec::new()
    }
}

/// The creation of a service's `IPAddress`.
pub(super) fn creation(
    registry: &Registry,
    service: &Value,
    address: &str,
    now: Now,
) -> Result<Companion, Status> {
    let Some(addresses) = resource(registry, "ipaddresses") else {
        return Ok(Companion::mark(UNSERVED, address, object::name(service)));
    };
    registry.creation(&addresses, ip_address(service, address), now)
}

/// The `IPAddress` object of a service's address.
pub fn ip_address(service: &Value, address: &str) -> Value {
    let family = service::family_of(address).map_or("", Family::name);
    let labels = Value::from([(FAMILY_LABEL, family), (MANAGER_LABEL, MANAGER)]);
    let parent = Value::from([
        ("resource", "services"),
        ("namespace", object::namespace(service)),
        ("name", object::name(service)),
    ]);
    let mut tree = Map::new();
    let metadata = tree.entry_object("metadata");
    metadata.insert("name", address);
    metadata.insert("labels", labels);
    tree.entry_object("spec").insert("parentRef", parent);
    Value::Object(tree)
}

/// Whether an `IPAddress` was created by the allocator of service addresses.
pub fn is_for_services(ip_address: &Value) -> bool {
    let labels = object::labels(ip_address);
    labels.and_then(|labels| labels.get(MANAGER_LABEL)).and_then(Value::as_str) == Some(MANAGER)
}

/// The removal of a service's `IPAddress`; `None` if there is no such object, or it belongs to
/// another service.
pub(super) fn removal(
    registry: &Registry,
    service: &Value,
    address: &str,
) -> Result<Option<Companion>, Status> {
    let Some(addresses) = resource(registry, "ipaddresses") else {
        return Ok(registry.unmark(UNSERVED, address));
    };
    let Some(held) = registry.peek(&addresses, "", address) else { return Ok(None) };
    let tree = held.tree()?;
    let parent = |member| tree.str_at(&["spec", "parentRef", member]).unwrap_or_default();
    let is_its = parent("namespace") == object::namespace(service)
        && parent("name") == object::name(service);
    is_its.then(|| registry.removal(&addresses, &held)).transpose()
}

/// The collection for allocated addresses if the server does not serve `IPAddress` objects.
const UNSERVED: &str = "serviceips";

fn is_taken(registry: &Registry, address: &str) -> bool {
    match resource(registry, "ipaddresses") {
        Some(addresses) => registry.peek(&addresses, "", address).is_some(),
        None => registry.is_marked(UNSERVED, address),
    }
}

/// Whether services get addresses of a range. A range without the condition `Ready` is used; a
/// range that is being deleted is not.
fn is_ready(range: &Value) -> bool {
    let conditions = range.at(&["status", "conditions"]).and_then(Value::as_array);
    let ready =
        conditions.unwrap_or_default().iter().find(|c| c.str_at(&["type"]) == Some("Ready"));
    !object::is_terminating(range) && ready.is_none_or(|c| c.str_at(&["status"]) == Some("True"))
}

fn resource(registry: &Registry, plural: &'static str) -> Option<Arc<Resource>> {
    registry.resource(&GroupVersionResource::new(GROUP, "v1", plural))
}
