//! Repair of the record of node ports: it must contain the ports of all services, even if another
//! server on the database crashed (upstream: `portallocator/controller`).

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::future::Future;
use std::time::Duration;

use pintle_effects::{Fault, PortFault, PortRepair};
use pintle_meta::object;
use pintle_value::Str;

use crate::events::{Recorder, Warning};
use crate::{Environment, until};

/// The interval of upstream's repairs.
const INTERVAL: Duration = Duration::from_secs(3 * 60);
/// The reporter and the action of events about wrong ports.
const REPORTER: &str = "portallocator-repair-controller";
const ACTION: &str = "PortAllocation";

/// Repairs the record until shutdown; `hostname` is the machine's, for the events. The first
/// repair, which creates the record, ran before the server started to serve.
pub async fn run(
    environment: Environment,
    hostname: Str,
    repair: PortRepair,
    shutdown: impl Future<Output = ()>,
) {
    let recorder = Recorder::new(&environment, REPORTER, &hostname);
    until(shutdown, repair_for_ever(&environment, &recorder, repair)).await;
}

async fn repair_for_ever(
    environment: &Environment,
    recorder: &Recorder<'_>,
    mut repair: PortRepair,
) {
    let mut reported = BTreeSet::new();
    loop {
        reported = report(recorder, repair.faults(), &reported).await;
        tokio::time::sleep(INTERVAL).await;
        if let Err(status) = repair.repair(&environment.registry).await {
            tracing::warn!(%status, "cannot repair the record of node ports; will try again");
        }
    }
}

/// Reports faults that were not reported last time; returns the current faults.
async fn report(
    recorder: &Recorder<'_>,
    faults: &[PortFault],
    reported: &BTreeSet<String>,
) -> BTreeSet<String> {
    let mut all = BTreeSet::new();
    for PortFault { service, port, fault } in faults {
        let (reason, note) = match fault {
            Fault::NotRecorded => {
                ("PortNotAllocated", format!("Port {port} is not allocated; repairing"))
            }
            Fault::HeldTwice => (
                "PortAlreadyAllocated",
                format!("Port {port} was assigned to multiple services; please recreate service"),
            ),
            Fault::OutOf(range) => (
                "PortOutOfRange",
                format!(
                    "Port {port} is not within the port range {range}; please recreate service"
                ),
            ),
        };
        let name = format!("{}: {note}", object::uid(service));
        if !reported.contains(&name) {
            recorder.warn(service, ACTION, Warning { reason, note }).await;
        }
        all.insert(name);
    }
    all
}
