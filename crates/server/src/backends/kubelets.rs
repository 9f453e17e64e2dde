//! Kubelets: how they are reached, who they must be, and who this server is to them.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use pintle_effects::Kubelet;
use rustls::ClientConfig;
use tokio::time::Instant;

use super::identity::{Identity, identity};
use super::{Backend, Way};
use crate::config::KubeletClient;
use crate::pki::{self, RenewedCredentials};
use crate::{Error, trust};

/// Certificates are read again after this time: they are renewed in their place.
const READ_AGAIN_AFTER: Duration = Duration::from_secs(60);

/// Connects to kubelets.
pub(crate) struct Kubelets {
    /// The types of a node's addresses, the one that is tried first before others.
    pub(crate) preferred_address_types: Vec<String>,
    way: Way,
    sources: Arc<Sources>,
    trust: Mutex<(Trust, Instant)>,
}

/// Whether a kubelet must show who it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verification {
    /// As it is configured: by the authority for kubelets, if there is one.
    Configured,
    /// Nobody asks: a client that reads a log wants it so.
    Skipped,
}

/// Where settings for TLS come from.
struct Sources {
    certificate_authority: Option<PathBuf>,
    identity: Identity,
}

#[derive(Clone)]
struct Trust {
    configured: Arc<ClientConfig>,
    anyone: Arc<ClientConfig>,
    stranger: Arc<ClientConfig>,
}

impl Kubelets {
    /// As the configuration says; `own` is for where it names no certificate.
    pub(crate) fn new(
        config: &KubeletClient,
        way: Way,
        own: RenewedCredentials,
    ) -> Result<Self, Error> {
        let flags = ["kubelet-client-certificate", "kubelet-client-key"];
        let identity = Identity::new(config.client_files.as_ref(), flags, own);
        let certificate_authority = config.certificate_authority.clone();
        let sources = Sources { certificate_authority, identity };
        Ok(Self {
            preferred_address_types: config.preferred_address_types.clone(),
            way,
            trust: Mutex::new((sources.read()?, Instant::now())),
            sources: Arc::new(sources),
        })
    }

    /// Where a kubelet is, and who it must be.
    pub(crate) async fn backend(&self, kubelet: &Kubelet, verification: Verification) -> Backend {
        let trust = self.trust().await;
        let tls = match verification {
            Verification::Configured => trust.configured,
            Verification::Skipped => trust.anyone,
        };
        self.at(kubelet.authority(), Some(tls))
    }

    /// Somebody else on a node or in a pod, who is believed whoever it is, and is not told who this server is.
    pub(crate) async fn neighbour(&self, authority: String, is_encrypted: bool) -> Backend {
        let tls = if is_encrypted { Some(self.trust().await.stranger) } else { None };
        self.at(authority, tls)
    }

    fn at(&self, authority: String, tls: Option<Arc<ClientConfig>>) -> Backend {
        Backend { authority, name: None, tls, addresses: None, way: self.way.clone() }
    }

    /// The settings, read again where they may be old. Where that fails, those from before hold on.
    async fn trust(&self) -> Trust {
        let (trust, read_at) = self.trust.lock().clone();
        if read_at.elapsed() < READ_AGAIN_AFTER {
            return trust;
        }
        let sources = self.sources.clone();
        let read = tokio::task::spawn_blocking(move || sources.read()).await;
        let read = read.unwrap_or_else(|why| Err(Error::Tls(why.to_string())));
        let trust = read.unwrap_or_else(|error| {
            tracing::warn!(%error, "cannot read the settings for kubelets again");
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
        let stranger = trust::anyone(None).map_err(Error::Tls)?;
        Ok(Trust {
            configured: Arc::new(configured),
            anyone: Arc::new(anyone),
            stranger: Arc::new(stranger),
        })
    }
}
