//! The record of node ports is made when a server starts, and made anew from the services now and then, as
//! each of upstream's servers does (`pkg/registry/core/service/portallocator/controller/repair.go`).
//!
//! Where a service and the record are committed together there is nothing to repair. But other servers on
//! the same database take a port before they make the service, and may die between the two.

use std::collections::{BTreeMap, BTreeSet};

use pintle_meta::{GroupVersionResource, Status};
use pintle_registry::Registry;
use pintle_value::Value;

use super::port_record::{NAME, PortRecord, Taken};
use super::ports::{PortRange, held};

/// For so many repairs a port that nobody holds stays taken: a server may be about to make its service.
const LEAK_ROUNDS: u32 = 2;
/// How often a repair is tried again that another write came before.
const ATTEMPTS_MAX: u32 = 16;
/// Where ports were marked one by one before there was the record.
const MARKS: &str = "servicenodeports";

/// Repairs the record of node ports.
pub struct PortRepair {
    range: PortRange,
    record: PortRecord,
    /// The ports that are taken by nobody, and for how many repairs they stay so.
    leaks: BTreeMap<i64, u32>,
}

impl PortRepair {
    /// For the ports of `--service-node-port-range`.
    pub fn new(range: PortRange) -> Self {
        Self { range, record: PortRecord::default(), leaks: BTreeMap::new() }
    }

    /// Makes the record where there is none, and otherwise sees that it says what the services hold.
    ///
    /// # Errors
    /// If a service or the record cannot be read, or nothing can be written.
    pub async fn repair(&mut self, registry: &Registry) -> Result<(), Status> {
        for _ in 0..ATTEMPTS_MAX {
            if self.attempt(registry).await? {
                return Ok(());
            }
        }
        Err(Status::internal("the record of node ports is always written by others"))
    }

    /// Whether nobody else came before.
    async fn attempt(&mut self, registry: &Registry) -> Result<bool, Status> {
        let found = self.record.found(registry)?;
        // What it is before the services are read: one that is made meanwhile has changed it.
        let mut tree = found.as_ref().map(|found| found.tree()).transpose()?.unwrap_or_default();
        let before = Taken::read(&tree, self.range);
        let (taken, leaks) = self.rebuilt(before.as_ref(), &services(registry)?);
        let resource = self.record.resource(registry)?;
        let marks = registry.marks(MARKS);
        if before.as_ref() != Some(&taken) || !marks.is_empty() {
            taken.write(&mut tree);
            resource.stamp(&mut tree);
            if !registry.keep(resource, NAME, tree, found.as_deref(), marks).await? {
                return Ok(false);
            }
        }
        self.leaks = leaks;
        Ok(true)
    }

    /// What the record is to say, and what of it no service holds.
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
}

/// The ports that services hold.
fn services(registry: &Registry) -> Result<BTreeSet<i64>, Status> {
    let services = registry.resource(&GroupVersionResource::new("", "v1", "services"));
    let Some(services) = services else { return Ok(BTreeSet::new()) };
    let mut ports = BTreeSet::new();
    for service in registry.objects(&services) {
        let tree: Value = service.tree()?;
        ports.extend(held(&tree));
    }
    Ok(ports)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_of_nobody_is_free_at_the_third_repair() {
        let range: PortRange = "30000-30015".parse().expect("a range");
        let mut repair = PortRepair::new(range);
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
    fn what_a_record_says_of_another_range_counts_for_nothing() {
        let repair = PortRepair::new("30000-30015".parse().expect("a range"));
        let (taken, leaks) = repair.rebuilt(None, &BTreeSet::from([30005]));
        assert_eq!(taken.ports().collect::<Vec<_>>(), [30005]);
        assert!(leaks.is_empty());
    }
}
