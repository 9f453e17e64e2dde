//! Notifies a service manager (`Type=notify` of systemd) when the server is ready and when it
//! stops. Does nothing without the variable `NOTIFY_SOCKET`, which a service manager sets.

use sd_notify::NotifyState;

/// Reports that the server is ready.
pub(crate) fn ready(url: &str) {
    notify(&[NotifyState::Ready, NotifyState::Status(&format!("ready on {url}"))]);
}

/// Reports that the server stops: it waits until open requests are finished.
pub(crate) fn stopping() {
    notify(&[NotifyState::Stopping]);
}

fn notify(state: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(state) {
        tracing::warn!(%error, "cannot notify the service manager at NOTIFY_SOCKET");
    }
}
