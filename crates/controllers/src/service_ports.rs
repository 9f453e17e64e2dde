//! The record of node ports says what services hold, whatever other servers on the same database left of
//! it when they died (upstream: `portallocator/controller`).

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

/// How often upstream's servers look.
const INTERVAL: Duration = Duration::from_secs(3 * 60);
/// Who reports what is wrong, and what is done then.
const REPORTER: &str = "portallocator-repair-controller";
const ACTION: &str = "PortAllocation";

/// Repairs the record until told to stop; `hostname` is the machine's, for the events that tell of it. The
/// first repair, which makes it, was before anything is served.
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
    let mut told = BTreeSet::new();
    loop {
        told = report(recorder, repair.faults(), &told).await;
        tokio::time::sleep(INTERVAL).await;
        if let Err(status) = repair.repair(&environment.registry).await {
            tracing::warn!(%status, "cannot repair the record of node ports");
        }
    }
}

/// Reports what is wrong with ports and was not told at the last time; gives what is told now.
async fn report(
    recorder: &Recorder<'_>,
    faults: &[PortFault],
    told: &BTreeSet<String>,
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
        if !told.contains(&name) {
            recorder.warn(service, ACTION, Warning { reason, note }).await;
        }
        all.insert(name);
    }
    all
}
