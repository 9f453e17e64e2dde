//! The record of node ports says what services hold, whatever other servers on the same database left of
//! it when they died (upstream: `portallocator/controller`).

#[cfg(test)]
mod tests;

use std::future::Future;
use std::time::Duration;

use pintle_effects::PortRepair;

use crate::{Environment, until};

/// How often upstream's servers look.
const INTERVAL: Duration = Duration::from_secs(3 * 60);

/// Repairs the record until told to stop. The first repair, which makes it, was before anything is served.
pub async fn run(environment: Environment, repair: PortRepair, shutdown: impl Future<Output = ()>) {
    until(shutdown, repair_for_ever(environment, repair)).await;
}

async fn repair_for_ever(environment: Environment, mut repair: PortRepair) {
    loop {
        tokio::time::sleep(INTERVAL).await;
        if let Err(status) = repair.repair(&environment.registry).await {
            tracing::warn!(%status, "cannot repair the record of node ports");
        }
    }
}
