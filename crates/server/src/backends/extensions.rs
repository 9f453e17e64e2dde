//! The client of extension API servers: addresses, CAs and the client certificate.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::Request;
use http_body::Body;
use parking_lot::Mutex;
use rustls::ClientConfig;

use super::identity::{Identity, identity};
use super::{Backend, Connections, Dialer, Dialers, Failure, Response, Services};
use crate::pki::{Credentials, RenewedCredentials};
use crate::trust::DeprecatedServers;
use crate::{Error, trust};

/// The interval at which the client certificate is reloaded.
const RELOAD_INTERVAL: Duration = Duration::from_secs(60);
/// The number of cached TLS settings, each with its resumable sessions.
const SETTINGS_MAX: usize = 256;

/// The client of extension API servers.
pub(crate) struct Extensions {
    services: Arc<Services>,
    dialer: Dialer,
    pub(crate) deprecated: Arc<DeprecatedServers>,
    identity: Identity,
    settings: Mutex<Settings>,
    connections: Arc<Connections>,
}

/// The verification of certificates.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Trust {
    /// By CAs in PEM; the system's if empty.
    Bundle(Vec<u8>),
    /// Not verified.
    Anyone,
}

/// The TLS settings of the current client certificate.
struct Settings {
    credentials: Arc<Credentials>,
    identity: trust::Identity,
    read_at: Instant,
    by_trust: HashMap<Trust, Arc<ClientConfig>>,
}

impl Extensions {
    /// `files` are `--proxy-client-cert-file` and `--proxy-client-key-file`, `own` is the server's
    /// own certificate.
    pub(crate) fn new(
        services: Arc<Services>,
        dialers: &Dialers,
        files: Option<&(PathBuf, PathBuf)>,
        own: RenewedCredentials,
    ) -> Result<Self, Error> {
        let identity =
            Identity::new(files, ["proxy-client-cert-file", "proxy-client-key-file"], own);
        let settings = Settings::new(identity.credentials()?)?;
        let settings = Mutex::new(settings);
        let (dialer, deprecated) = (dialers.cluster.clone(), dialers.deprecated.clone());
        Ok(Self { services, dialer, deprecated, identity, settings, connections: Arc::default() })
    }

    /// Resolves a service's port. The server's certificate must have the name `name.namespace.svc`.
    pub(crate) fn backend(
        &self,
        (namespace, name): (&str, &str),
        port: u16,
        trust: &Trust,
    ) -> Result<Backend, Unreachable> {
        let authority =
            self.services.authority(namespace, name, port).map_err(Unreachable::Address)?;
        let tls = self.tls(trust).map_err(Unreachable::Trust)?;
        let name = Some(format!("{name}.{namespace}.svc"));
        Ok(Backend {
            authority,
            name,
            tls: Some(tls),
            addresses: None,
            dialer: self.dialer.clone(),
        })
    }

    /// Sends a request; its connection is reused.
    pub(crate) async fn ask<B>(
        &self,
        backend: &Backend,
        request: Request<B>,
    ) -> Result<Response, Failure>
    where
        B: Body<Data = Bytes, Error: Into<Box<dyn std::error::Error + Send + Sync>>>
            + Send
            + 'static,
    {
        self.connections.ask(backend, request).await
    }

    /// The TLS settings. If the client certificate cannot be reloaded, the previous one stays in
    /// use.
    fn tls(&self, trust: &Trust) -> Result<Arc<ClientConfig>, String> {
        let mut settings = self.settings.lock();
        if settings.read_at.elapsed() >= RELOAD_INTERVAL {
            settings.read_at = Instant::now();
            if let Err(error) = settings.renew(&self.identity) {
                tracing::warn!(%error, "cannot reload --proxy-client-cert-file; the previous certificate stays in use");
            }
        }
        if let Some(config) = settings.by_trust.get(trust) {
            return Ok(config.clone());
        }
        let identity = Some(&settings.identity);
        let config = Arc::new(match trust {
            Trust::Bundle(pem) => trust::bundle(pem, identity)?,
            Trust::Anyone => trust::anyone(identity)?,
        });
        if settings.by_trust.len() >= SETTINGS_MAX {
            settings.by_trust.clear();
        }
        settings.by_trust.insert(trust.clone(), config.clone());
        Ok(config)
    }
}

/// Why an extension API server cannot be called.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Unreachable {
    /// Its address is unknown.
    #[error("{0}")]
    Address(String),
    /// The TLS settings for it cannot be made, such as from an invalid CA bundle.
    #[error("{0}")]
    Trust(String),
}

impl Settings {
    fn new(credentials: Arc<Credentials>) -> Result<Self, Error> {
        let identity = identity(&credentials)?;
        Ok(Self { credentials, identity, read_at: Instant::now(), by_trust: HashMap::new() })
    }

    /// Drops all settings if the client certificate has changed.
    fn renew(&mut self, identity: &Identity) -> Result<(), Error> {
        let credentials = identity.credentials()?;
        if *credentials != *self.credentials {
            *self = Self::new(credentials)?;
        }
        Ok(())
    }
}
