//! The client of kubelets: addresses, CA and the client certificate.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use pintle_effects::Kubelet;
use rustls::ClientConfig;
use tokio::time::Instant;

use super::identity::{Identity, identity};
use super::{Backend, Dialer};
use crate::config::KubeletClient;
use crate::pki::{self, RenewedCredentials};
use crate::{Error, trust};

/// The interval at which certificates are reloaded.
const RELOAD_INTERVAL: Duration = Duration::from_secs(60);

/// The client of kubelets.
pub(crate) struct Kubelets {
    /// The types of node addresses, in order of preference.
    pub(crate) preferred_address_types: Vec<String>,
    dialer: Dialer,
    sources: Arc<Sources>,
    trust: Mutex<(Trust, Instant)>,
}

/// The verification of a kubelet's certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verification {
    /// By the configured CA; not verified if there is none.
    Configured,
    /// Not verified, as the client of a log can request.
    Skipped,
}

/// The sources of TLS settings.
struct Sources {
    certificate_authority: Option<PathBuf>,
    identity: Identity,
}

#[derive(Clone)]
struct Trust {
    configured: Arc<ClientConfig>,
    anyone: Arc<ClientConfig>,
    without_identity: Arc<ClientConfig>,
}

impl Kubelets {
    /// Reads the configuration; `own` is the default client certificate.
    pub(crate) fn new(
        config: &KubeletClient,
        dialer: Dialer,
        own: RenewedCredentials,
    ) -> Result<Self, Error> {
        let flags = ["kubelet-client-certificate", "kubelet-client-key"];
        let identity = Identity::new(config.client_files.as_ref(), flags, own);
        let certificate_authority = config.certificate_authority.clone();
        let sources = Sources { certificate_authority, identity };
        Ok(Self {
            preferred_address_types: config.preferred_address_types.clone(),
            dialer,
            trust: Mutex::new((sources.read()?, Instant::now())),
            sources: Arc::new(sources),
        })
    }

    /// The backend of a kubelet.
    pub(crate) async fn backend(&self, kubelet: &Kubelet, verification: Verification) -> Backend {
        let trust = self.trust().await;
        let tls = match verification {
            Verification::Configured => trust.configured,
            Verification::Skipped => trust.anyone,
        };
        self.at(kubelet.authority(), Some(tls))
    }

    /// Another server on a node or in a pod: its certificate is not verified, and it gets no client
    /// certificate.
    pub(crate) async fn unverified(&self, authority: String, is_encrypted: bool) -> Backend {
        let tls = if is_encrypted { Some(self.trust().await.without_identity) } else { None };
        self.at(authority, tls)
    }

    fn at(&self, authority: String, tls: Option<Arc<ClientConfig>>) -> Backend {
        Backend { authority, name: None, tls, addresses: None, dialer: self.dialer.clone() }
    }

    /// The TLS settings, reloaded at intervals. If that fails, the previous ones stay in use.
    async fn trust(&self) -> Trust {
        let (trust, read_at) = self.trust.lock().clone();
        if read_at.elapsed() < RELOAD_INTERVAL {
            return trust;
        }
        let sources = self.sources.clone();
        let read = tokio::task::spawn_blocking(move || sources.read()).await;
        let read = read.unwrap_or_else(|why| Err(Error::Tls(why.to_string())));
        let trust = read.unwrap_or_else(|error| {
            tracing::warn!(%error, "cannot reload the certificates for kubelets; the previous ones stay in use");
            trust
        });
        *self.trust.lock() = (trust.clone(), Instant::now());
        trust
    }
}

impl Sources {
    fn read(&self) -> Result<Trust, Error> {
        let authority = self.certificate_authority.as_deref();
        let authority =
            authority.map(|path| pki::read_authorities(path, "kubelet-certificate-authority"));
        let identity = identity(&*self.identity.credentials()?)?;
        let anyone = trust::anyone(Some(&identity)).map_err(Error::Tls)?;
        let configured = match authority.transpose()? {
            None => anyone.clone(),
            Some(pem) => trust::bundle(pem.as_bytes(), Some(&identity)).map_err(Error::Tls)?,
        };
        let without_identity = trust::anyone(None).map_err(Error::Tls)?;
        Ok(Trust {
            configured: Arc::new(configured),
            anyone: Arc::new(anyone),
            without_identity: Arc::new(without_identity),
        })
    }
}
