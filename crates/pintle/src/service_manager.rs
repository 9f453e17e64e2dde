//! Notifies a service manager (`Type=notify` of systemd) when the server is ready and when it
//! stops, and at intervals (`WatchdogSec=`) while it works. Does nothing without the variable
//! `NOTIFY_SOCKET`, which a service manager sets.

use std::time::Duration;

use pintle_server::Liveness;
use sd_notify::NotifyState;
use tokio::time::MissedTickBehavior;

/// Reports that the server is ready.
pub(crate) fn ready(url: &str) {
    notify(&[NotifyState::Ready, NotifyState::Status(&format!("ready on {url}"))]);
}

/// Reports that the server stops: it waits until open requests are finished.
pub(crate) fn stopping() {
    notify(&[NotifyState::Stopping]);
}

/// Reports that the server works, twice in each interval that the service manager asks for. A server
/// that does not work is silent, so that it is ended and started again.
pub(crate) async fn report_life(server: Liveness) {
    let interval = sd_notify::watchdog_enabled().filter(|interval| !interval.is_zero());
    if let Some(interval) = interval {
        report(interval / 2, || server.check(), || notify(&[NotifyState::Watchdog])).await;
    }
}

/// Reports at intervals as long as the check succeeds.
async fn report(period: Duration, check: impl Fn() -> Result<(), String>, works: impl Fn()) {
    let mut ticks = tokio::time::interval(period);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        match check() {
            Ok(()) => works(),
            Err(why) => tracing::error!(why, "the server does not work; waiting for its end"),
        }
    }
}

fn notify(state: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(state) {
        tracing::warn!(%error, "cannot notify the service manager at NOTIFY_SOCKET");
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    /// The service manager hears nothing of a server that fails, until it works again.
    #[tokio::test(start_paused = true)]
    async fn a_server_that_does_not_work_is_silent() {
        let (checks, reports) = (Cell::new(0), Cell::new(0));
        let check = || {
            checks.set(checks.get() + 1);
            if (3..=5).contains(&checks.get()) { Err("it failed".to_owned()) } else { Ok(()) }
        };
        let period = Duration::from_secs(1);
        let reporting = report(period, check, || reports.set(reports.get() + 1));
        // The first check is at once, the others follow after each second.
        let _ = tokio::time::timeout(period * 7 - period / 2, reporting).await;
        assert_eq!((checks.get(), reports.get()), (7, 4));
    }
}
