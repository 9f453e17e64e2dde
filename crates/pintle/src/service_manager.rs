//! Tells a service manager (`Type=notify` of systemd) when the server is ready and when it stops.
//! Without one, which is without the variable `NOTIFY_SOCKET`, nothing happens.

use sd_notify::NotifyState;

/// The server is ready.
pub(crate) fn ready(url: &str) {
    notify(&[NotifyState::Ready, NotifyState::Status(&format!("ready on {url}"))]);
}

/// The server waits until open requests are finished.
pub(crate) fn stopping() {
    notify(&[NotifyState::Stopping]);
}

fn notify(state: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(state) {
        tracing::warn!(%error, "cannot notify the service manager at NOTIFY_SOCKET");
    }
}
