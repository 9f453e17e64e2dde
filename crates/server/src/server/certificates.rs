//! Reloads certificate files when they change, and renews the server's own certificates before they
//! expire.

use std::net::SocketAddr;
use std::panic::resume_unwind;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use pintle_kinds::bootstrap::BootstrapObject;
use tokio::sync::watch;
use tokio::time::{Instant, MissedTickBehavior, interval};

use super::bootstrap;
use crate::pki::{Change, ListenerCertificates, Renewal, write_private};
use crate::tls::Tls;
use crate::{Config, Error, kubeconfig};

/// The interval at which files are checked. Upstream uses inotify, and also checks every minute.
const FILES_INTERVAL: Duration = Duration::from_secs(1);
/// The interval at which expiry is checked; a certificate is renewed weeks before it expires.
const RENEWAL_INTERVAL: Duration = Duration::from_secs(60 * 60);

/// The parts of the server that use certificates.
pub(super) struct Certificates {
    pub(super) renewal: Renewal,
    pub(super) tls: Arc<Tls>,
    pub(super) config: Config,
    /// Where the server listens.
    pub(super) address: SocketAddr,
    /// The PEM of the CA by which extension API servers authenticate this server.
    pub(super) front_proxy_ca_pem: String,
    /// The bootstrap objects: one holds the CAs of client certificates.
    pub(super) objects: watch::Sender<Arc<[BootstrapObject]>>,
    pub(super) kubeconfig: Kubeconfig,
}

/// The administrator's kubeconfig.
pub(super) struct Kubeconfig {
    pub(super) path: PathBuf,
    pub(super) url: String,
    pub(super) ca_pem: String,
}

impl Certificates {
    /// Runs until it is dropped.
    pub(super) async fn run(mut self) {
        let has_files = self.renewal.has_files();
        let mut pace = interval(if has_files { FILES_INTERVAL } else { RENEWAL_INTERVAL });
        pace.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut renewed_at = Instant::now();
        loop {
            pace.tick().await;
            let is_renewal_due = renewed_at.elapsed() >= RENEWAL_INTERVAL;
            if is_renewal_due {
                renewed_at = Instant::now();
            }
            // On a blocking thread, so that a file system that does not respond delays nothing else.
            let checked = tokio::task::spawn_blocking(move || {
                self.check(has_files, is_renewal_due);
                self
            });
            self = checked.await.unwrap_or_else(|why| resume_unwind(why.into_panic()));
        }
    }

    fn check(&mut self, has_files: bool, is_renewal_due: bool) {
        if has_files && let Err(error) = self.reread() {
            tracing::error!(%error, "cannot reload the certificate files; the previous certificates stay in use");
        }
        if is_renewal_due && let Err(error) = self.renew() {
            tracing::error!(%error, "cannot renew a certificate before it expires; the server tries again in an hour");
        }
    }

    fn reread(&mut self) -> Result<(), Error> {
        match self.renewal.reread()? {
            Some(change) => self.take(change),
            None => Ok(()),
        }
    }

    fn renew(&mut self) -> Result<(), Error> {
        let changes = self.renewal.renew(SystemTime::now())?;
        changes.into_iter().try_for_each(|change| self.take(change))
    }

    fn take(&self, change: Change) -> Result<(), Error> {
        match change {
            Change::Listener(listener) => self.listen_with(&listener),
            Change::Admin(admin) => {
                let Kubeconfig { path, url, ca_pem } = &self.kubeconfig;
                write_private(path, &kubeconfig::kubeconfig(url, ca_pem, &admin))
            }
        }
    }

    fn listen_with(&self, listener: &ListenerCertificates) -> Result<(), Error> {
        self.tls.replace(listener)?;
        let objects =
            bootstrap::wanted(&self.config, self.address, listener, &self.front_proxy_ca_pem);
        self.objects.send_replace(objects);
        Ok(())
    }
}
