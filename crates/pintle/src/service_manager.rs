//! Notifies a service manager (`Type=notify` of systemd) when the server is ready and when it
//! stops, and at intervals (`WatchdogSec=`) while it works. Does nothing without the variable
//! `NOTIFY_SOCKET`, which a service manager sets.

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
    let Some(interval) = sd_notify::watchdog_enabled().filter(|interval| !interval.is_zero())
    else {
        return;
    };
    let mut ticks = tokio::time::interval(interval / 2);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        match server.check() {
            Ok(()) => notify(&[NotifyState::Watchdog]),
            Err(why) => tracing::error!(why, "the server does not work; waiting for its end"),
        }
    }
}

fn notify(state: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(state) {
        tracing::warn!(%error, "cannot notify the service manager at NOTIFY_SOCKET");
    }
}
