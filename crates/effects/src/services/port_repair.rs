//! The repair of the record of node ports: a server creates the record when it starts, and rebuilds
//! it from the services at intervals, as each of upstream's servers does
//! (`pkg/registry/core/service/portallocator/controller/repair.go`).
//!
//! If a service and the record are committed together, there is nothing to repair. But other
//! servers on the same database allocate a port before they create the service, and may fail in
//! between.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use pintle_meta::{GroupVersionResource, Status};
use pintle_registry::Registry;
use pintle_value::Value;

use super::addresses::Occupied;
use super::port_range::PortRange;
use super::port_record::{NAME, PortRecord, Taken};
use super::ports::held;
use crate::Measures;

/// For this many repairs, a port without a service remains allocated: another server may be about
/// to create the service.
const LEAK_ROUNDS: u32 = 2;
/// The number of attempts of a repair if other writes interfere.
const ATTEMPTS_MAX: u32 = 16;
/// The collection in which ports were marked one by one before the record existed.
const MARKS: &str = "servicenodeports";

/// Repairs the record of node ports.
pub struct PortRepair {
    measures: Arc<Measures>,
    range: PortRange,
    record: PortRecord,
    /// The ports without a service, each with the number of further repairs for which it remains
    /// allocated.
    leaks: BTreeMap<i64, u32>,
    /// The problems that the last repair found with services.
    faults: Vec<PortFault>,
}

/// A problem with a port of a service.
#[derive(Clone, Debug)]
pub struct PortFault {
    /// The service.
    pub service: Arc<Value>,
    /// The port.
    pub port: i64,
    /// The problem.
    pub fault: Fault,
}

/// The possible problems with a port of a service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The port was missing in the record, and was added.
    NotRecorded,
    /// Another service has the same port.
    HeldTwice,
    /// The port is outside this range.
    OutOf(PortRange),
}

impl PortRepair {
    /// Creates a repair for the ports of `--service-node-port-range`.
    pub fn new(range: PortRange, measures: Arc<Measures>) -> Self {
        let (record, leaks, faults) = (PortRecord::default(), BTreeMap::new(), Vec::new());
        Self { measures, range, record, leaks, faults }
    }

    /// Creates the record if it does not exist; otherwise corrects it by the ports of the services.
    ///
    /// # Errors
    /// If a service or the record cannot be read, or a write fails.
    pub async fn repair(&mut self, registry: &Registry) -> Result<(), Status> {
        let repaired = self.try_repair(registry).await;
        self.measures.failed_port_repairs.add(u64::from(repaired.is_err()));
        repaired
    }

    async fn try_repair(&mut self, registry: &Registry) -> Result<(), Status> {
        for _ in 0..ATTEMPTS_MAX {
            if self.attempt(registry).await? {
                return Ok(());
            }
        }
        Err(Status::internal("other servers keep writing the record of node ports"))
    }

    /// The problems that the last repair found with services.
    pub fn faults(&self) -> &[PortFault] {
        &self.faults
    }

    /// Returns whether the repair succeeded; `false` if another write interfered.
    async fn attempt(&mut self, registry: &Registry) -> Result<bool, Status> {
        let found = self.record.found(registry)?;
        // The record is read before the services: if a service is created meanwhile, the record
        // changes, and the write below fails.
        let mut tree = found.as_ref().map(|found| found.tree()).transpose()?.unwrap_or_default();
        let before = Taken::read(&tree, self.range);
        let services = services(registry)?;
        let (taken, leaks) = self.rebuilt(before.as_ref(), &ports(&services));
        let resource = self.record.resource(registry)?;
        let marks = registry.marks(MARKS);
        if before.as_ref() != Some(&taken) || !marks.is_empty() {
            taken.write(&mut tree);
            resource.stamp(&mut tree);
            if !registry.write_hidden(resource, NAME, tree, found.as_deref(), marks).await? {
                return Ok(false);
            }
        }
        self.leaks = leaks;
        self.faults = self.find_faults(before.as_ref(), services);
        self.count(before.as_ref(), &taken);
        Ok(true)
    }

    /// Counts the problems by upstream's names. The first record is not a repair.
    fn count(&self, before: Option<&Taken>, taken: &Taken) {
        let Some(before) = before else { return };
        let count = |kind| self.measures.port_repairs.with([kind]).add(1);
        before.ports().filter(|port| !taken.has(*port)).for_each(|_| count("leak"));
        for fault in &self.faults {
            count(match fault.fault {
                Fault::NotRecorded => "repair",
                Fault::HeldTwice => "duplicate",
                Fault::OutOf(_) => "outOfRange",
            });
        }
    }

    /// Returns the new record, and the ports in it that have no service, as in [`Self::leaks`].
    fn rebuilt(&self, before: Option<&Taken>, held: &BTreeSet<i64>) -> (Taken, BTreeMap<i64, u32>) {
        let (mut taken, mut leaks) = (Taken::none(self.range), BTreeMap::new());
        held.iter().for_each(|port| taken.set(*port, true));
        for port in before.into_iter().flat_map(Taken::ports).filter(|port| !held.contains(port)) {
            let rounds = self.leaks.get(&port).copied().unwrap_or(LEAK_ROUNDS);
            if rounds > 0 {
                taken.set(port, true);
                leaks.insert(port, rounds - 1);
            }
        }
        (taken, leaks)
    }

    /// Finds the problems with services, using the ports of the previous record.
    fn find_faults(&self, before: Option<&Taken>, services: Vec<Value>) -> Vec<PortFault> {
        let recorded: BTreeSet<i64> = before.into_iter().flat_map(Taken::ports).collect();
        let (mut seen, mut faults) = (BTreeSet::new(), Vec::new());
        for service in services.into_iter().map(Arc::new) {
            for port in held(&service) {
                let fault = if !self.range.ports().contains(&port) {
                    Fault::OutOf(self.range)
                } else if !seen.insert(port) {
                    Fault::HeldTwice
                } else if !recorded.contains(&port) {
                    Fault::NotRecorded
                } else {
                    continue;
                };
                faults.push(PortFault { service: service.clone(), port, fault });
            }
        }
        faults
    }
}

/// The services with node ports.
fn services(registry: &Registry) -> Result<Vec<Value>, Status> {
    let services = registry.resource(&GroupVersionResource::new("", "v1", "services"));
    let Some(resource) = services else { return Ok(Vec::new()) };
    let mut services = Vec::new();
    for service in registry.objects(&resource) {
        let tree = resource.tree(&service)?;
        if !held(&tree).is_empty() {
            services.push(tree);
        }
    }
    Ok(services)
}

/// The usage of a range of node ports, from the record; `None` if the record cannot be read.
pub fn occupied(registry: &Registry, range: PortRange) -> Option<Occupied> {
    let taken = PortRecord::default().taken(registry, range).ok()?.ports().count();
    let free = range.len().saturating_sub(taken);
    Some(Occupied { taken: u64::try_from(taken).ok()?, free: u64::try_from(free).ok()? })
}

/// The ports of services.
fn ports(services: &[Value]) -> BTreeSet<i64> {
    services.iter().flat_map(held).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_without_a_service_is_released_at_the_third_repair() {
        let range: PortRange = "30000-30015".parse().expect("a range");
        let mut repair = PortRepair::new(range, Arc::default());
        let mut record = Taken::none(range);
        [30001, 30002].iter().for_each(|port| record.set(*port, true));
        let held = BTreeSet::from([30002, 30003, 40000]);
        for expected in [&[30001, 30002, 30003][..]; 2].into_iter().chain([&[30002, 30003][..]; 2])
        {
            let (taken, leaks) = repair.rebuilt(Some(&record), &held);
            assert_eq!(taken.ports().collect::<Vec<_>>(), expected);
            (record, repair.leaks) = (taken, leaks);
        }
    }

    #[test]
    fn problems_with_ports_are_found() {
        let range: PortRange = "30000-30015".parse().expect("a range");
        let mut record = Taken::none(range);
        record.set(30001, true);
        let service = |ports: &[i64]| {
            let ports: Vec<_> =
                ports.iter().map(|port| Value::from([("nodePort", Value::from(*port))])).collect();
            Value::from([("spec", Value::from([("ports", Value::from(ports))]))])
        };
        let services = vec![service(&[30001, 30002]), service(&[30002, 31000])];
        let found = PortRepair::new(range, Arc::default()).find_faults(Some(&record), services);
        let found: Vec<_> = found.iter().map(|fault| (fault.port, fault.fault)).collect();
        let expected =
            [(30002, Fault::NotRecorded), (30002, Fault::HeldTwice), (31000, Fault::OutOf(range))];
        assert_eq!(found, expected);
    }

    #[test]
    fn a_record_of_another_range_is_ignored() {
        let repair = PortRepair::new("30000-30015".parse().expect("a range"), Arc::default());
        let (taken, leaks) = repair.rebuilt(None, &BTreeSet::from([30005]));
        assert_eq!(taken.ports().collect::<Vec<_>>(), [30005]);
        assert!(leaks.is_empty());
    }
}
