//! Starts and stops a server. `Server::start` shows how the parts are put together.

mod access;
mod admission;
mod api;
mod background;
mod backup_etcd;
mod bootstrap;
mod certificates;
mod compaction;
mod controllers;
mod manifests;
mod names;
mod phases;
mod store;
mod tokens;

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use pintle_controllers::Environment;
use pintle_controllers::definitions::Definitions;
use pintle_registry::admission::Chain;
use pintle_registry::{Options, Registry, ResourceDefinition};
use pintle_store::Opening;
use tokio::net::{TcpListener, TcpSocket};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::aggregation::Aggregation;
use crate::api::Api;
use crate::audit::{self, Audit};
use crate::authentication::Tokens;
use crate::authorization::Authorization;
use crate::backends::{Dialers, Extensions, Kubelets, Services};
use crate::encryption::Encryption;
use crate::kubeconfig;
use crate::machine::{now, random};
use crate::metrics::{Measured, Sources};
use crate::pki::{self, CertificateProblem, Credentials, Pki, Signer, Wanted};
use crate::snapshots;
use crate::tls::Tls;
use crate::token_issuer::TokenIssuer;
use crate::traces::Traces;
use crate::webhooks::Webhooks;
use crate::{Config, Error, connection};
use access::{Access, reachable};
use background::Background;
pub use backup_etcd::BackupEtcd;
use certificates::Certificates;
use phases::Phases;
pub use store::{inspect_store, store_directory};

/// The memory limit of the encoding cache.
const ENCODINGS_BYTES_MAX: usize = 64 * 1024 * 1024;
/// The backlog of the listening socket.
const BACKLOG: u32 = 1024;

/// Starts servers.
pub struct Server;

/// A running server. Dropping it aborts requests; [`Running::shutdown`] lets them finish.
pub struct Running {
    access: Access,
    ca_pem: String,
    admin: Credentials,
    signer: Arc<Signer>,
    api: Arc<Api>,
    connections: JoinHandle<()>,
    background: Background,
    shutdown_delay: Duration,
}

/// Tells whether a server must be started again.
#[derive(Clone)]
pub struct Liveness(Arc<Api>);

impl Liveness {
    /// Checks that the server works. Unlike `/livez` it does not ask whether etcd responds, because
    /// another start would not help.
    ///
    /// # Errors
    /// The embedded store failed, or a task panicked that runs as long as the server.
    pub fn check(&self) -> Result<(), String> {
        self.0.lifecycle.panics().check()?;
        self.0.registry.check_life().map_err(|why| why.to_string())
    }
}

impl Server {
    /// Starts a server and returns when it is ready. Needs a Tokio runtime.
    pub async fn start(mut config: Config) -> Result<Running, Error> {
        let mut phases = Phases::new();
        config.check()?;
        config.connections = connection::within_files(config.connections);
        config.kubeconfig.as_deref().map_or(Ok(()), kubeconfig::check_target)?;
        let (socket, address) = bind((config.bind_address, config.secure_port).into())?;
        store::check_directories(&config)?;
        let services = Arc::new(Services::new(config.extensions.by_endpoints, reachable(address)));
        let dialers = Dialers::new(&config.egress)?;
        let certificates = prepare_certificates(config.clone(), services.clone(), dialers.clone());
        let encryption = Encryption::open(config.encryption.as_ref()).await?;
        let store = store::open(&config, encryption.as_ref()).await?;
        phases.end("store");
        let listener = listen(socket, address)?;
        let webhooks = Arc::new(Webhooks::new(services.clone(), dialers.clone()));
        let (registry, authorization, mut measured) = registry(&config, store, &webhooks).await?;
        measured.encryption = encryption.as_ref().map(Encryption::current);
        let audit = Audit::start(&config.audit, &dialers, measured.audit.clone())?;
        services.find_in(&registry);
        phases.end("registry");
        let Prepared { pki, tls, tokens, backends } =
            certificates.await.map_err(|error| Error::Tls(error.to_string()))??;
        backends.aggregation.follow(&registry);
        phases.end("certificates");
        let environment = Environment::new(registry.clone(), Arc::new(now))
            .with_extensions(backends.aggregation.clone());
        let built_in = pintle_kinds::built_in(&config.apis());
        let definitions = Definitions::restore(environment.clone(), built_in, webhooks.clone());
        phases.end("custom resources");
        let port_repair = bootstrap::port_record(&environment, &config, &measured.effects).await?;
        let objects = bootstrap::wanted(&config, address, &pki.listener, &pki.front_proxy.ca_pem);
        bootstrap::ensure(&environment, &objects).await?;
        phases.end("bootstrap objects");
        let (objects, objects_now) = watch::channel(objects);
        let sources = Sources::of(&environment, &config, webhooks, measured);
        let parts = (&*tls, tokens, backends, audit, api::traces(&config, dialers.control_plane));
        let api = api::assemble(&config, registry, &authorization, parts, sources, address);
        let limits = config.connections.clone();
        let serving = connection::serve(listener, tls.clone(), limits, api.clone());
        let mut background = Background::start(api.lifecycle.panics().clone())?;
        controllers::Parts {
            environment: environment.clone(),
            objects: objects_now,
            advertised: bootstrap::advertised(&config, address),
            pki: &pki,
            api: &api,
        }
        .start(definitions, port_repair, &config, &mut background);
        spawn_background(&mut background, &api, authorization, encryption, &config);
        manifests::apply(&environment, &config).await?;
        let access = Access::new(&config, address, &pki)?;
        let Pki { front_proxy, renewal, ca_pem, admin, signer, .. } = pki;
        let certificates = Certificates {
            renewal,
            tls,
            address,
            front_proxy_ca_pem: front_proxy.ca_pem,
            objects,
            kubeconfig: access.renewed(&ca_pem),
            config: config.clone(),
        };
        background.spawn(certificates.run());
        // Nothing can fail any more: a failed start leaves no task that holds the address.
        let connections = tokio::spawn(serving);
        api.lifecycle.start();
        phases.end("serving");
        phases.report();
        let shutdown_delay = config.shutdown_delay;
        Ok(Running { access, ca_pem, admin, signer, api, connections, background, shutdown_delay })
    }
}

impl Running {
    /// `https://127.0.0.1:6443`
    pub fn url(&self) -> &str {
        &self.access.url
    }

    /// The administrator's kubeconfig.
    pub fn kubeconfig(&self) -> &str {
        &self.access.kubeconfig
    }

    /// The path of the kubeconfig.
    pub fn kubeconfig_path(&self) -> &Path {
        &self.access.kubeconfig_path
    }

    /// The CA certificate that clients must trust, as PEM.
    pub fn ca_pem(&self) -> &str {
        &self.ca_pem
    }

    /// The administrator's certificate and key.
    pub const fn admin(&self) -> &Credentials {
        &self.admin
    }

    /// Signs client certificates that the server trusts.
    pub const fn signer(&self) -> &Arc<Signer> {
        &self.signer
    }

    /// Returns what tells whether the server works, also while it stops.
    pub fn liveness(&self) -> Liveness {
        Liveness(self.api.clone())
    }

    /// Stops the server: readiness fails, requests are served for the configured delay, watches
    /// end, other requests finish, and the store closes (HLT-08).
    pub async fn shutdown(mut self) {
        self.api.lifecycle.drain();
        tokio::time::sleep(self.shutdown_delay).await;
        self.api.lifecycle.stop();
        // The audit log and the store are closed after the last request.
        if let Err(failed) = (&mut self.connections).await {
            tracing::error!(%failed, "the task that serves connections failed");
        }
        if let Some(audit) = &self.api.audit {
            audit.close().await;
        }
        self.api.traces.iter().for_each(Traces::close);
        self.background.shutdown().await;
        self.api.registry.close().await;
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.api.lifecycle.stop();
        self.connections.abort();
        if let Some(directory) = &self.access.temporary
            && let Err(error) = std::fs::remove_dir_all(directory)
        {
            tracing::debug!(%error, "cannot remove {}", directory.display());
        }
    }
}

/// Takes an address, and returns it with its actual port: port 0 takes a free one. It is the first
/// step of a start, because an address in use is the most frequent reason of a failure.
fn bind(wanted: SocketAddr) -> Result<(TcpSocket, SocketAddr), Error> {
    let socket = if wanted.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() };
    let bound = socket.and_then(|socket| {
        socket.set_reuseaddr(true)?; // a restart must not wait for connections in TIME_WAIT
        if wanted.is_ipv6() && wanted.ip().is_unspecified() {
            // `::` is all addresses of IPv4, too, whatever the system's default is.
            rustix::net::sockopt::set_ipv6_v6only(&socket, false)?;
        }
        socket.bind(wanted)?;
        let address = socket.local_addr()?;
        Ok((socket, address))
    });
    bound.map_err(|why| Error::Listen { address: wanted, why })
}

/// Listens on the address that was taken: not before the store is open, because clients must be
/// refused, and not kept waiting, while the server waits for etcd.
fn listen(socket: TcpSocket, address: SocketAddr) -> Result<TcpListener, Error> {
    socket.listen(BACKLOG).map_err(|why| Error::Listen { address, why })
}

/// The certificates and the parts that depend on them.
struct Prepared {
    pki: Pki,
    tls: Arc<Tls>,
    tokens: Issued,
    backends: Backends,
}

/// The clients of kubelets and of extension API servers.
struct Backends {
    kubelets: Kubelets,
    aggregation: Arc<Aggregation>,
}

/// Loads or generates the certificates on a blocking thread, while the store opens.
fn prepare_certificates(
    config: Config,
    services: Arc<Services>,
    dialers: Dialers,
) -> JoinHandle<Result<Prepared, Error>> {
    tokio::task::spawn_blocking(move || {
        let wanted = wanted_certificates(&config);
        let pki = Pki::prepare(&wanted, SystemTime::now())?;
        let tls = Arc::new(Tls::new(&pki.listener, &config.tls_parameters)?);
        let tokens = tokens::prepare(&config, wanted.directory.as_deref(), dialers.clone())?;
        let kubelets =
            Kubelets::new(&config.kubelets, dialers.cluster.clone(), pki.kubelet_client.clone())?;
        let files = config.extensions.client_files.as_ref();
        let extensions =
            Extensions::new(services, &dialers, files, pki.front_proxy.client.clone())?;
        let aggregation = Arc::new(Aggregation::new(extensions));
        Ok(Prepared { pki, tls, tokens, backends: Backends { kubelets, aggregation } })
    })
}

/// The token authenticators and the issuer.
type Issued = (Tokens, TokenIssuer);

fn wanted_certificates(config: &Config) -> Wanted {
    let is_on_disk = !config.ephemeral || config.cert_dir.is_some();
    Wanted {
        directory: is_on_disk.then(|| config.certificate_directory()),
        serving_files: config.tls_files.clone(),
        named_files: config.tls_named_files.clone(),
        client_ca_file: config.client_ca_file.clone(),
        front_proxy_ca_file: config.request_header.client_ca_file.clone(),
        front_proxies_are_named: !config.request_header.allowed_names.is_empty(),
        serving_names: names::dns_names(config),
        serving_addresses: names::addresses(config),
    }
}

/// Checks the certificates that a server of this configuration would use, and changes nothing.
pub fn inspect_certificates(config: &Config, now: SystemTime) -> Vec<CertificateProblem> {
    pki::inspect(&wanted_certificates(config), now)
}

/// Spawns the tasks besides controllers: they compact the history, reload configuration files,
/// export traces, take snapshots, adjust the priority levels, and refresh keys of other servers.
fn spawn_background(
    background: &mut Background,
    api: &Api,
    authorization: Authorization,
    encryption: Option<Encryption>,
    config: &Config,
) {
    let is_embedded = config.etcd.is_none();
    background.spawn(compaction::settle_objects(api.registry.clone()));
    background.spawn(compaction::run(api.registry.clone(), config.watch_history, is_embedded));
    background.spawn(authorization.run());
    if let Some(exporter) = api.traces.as_ref().and_then(Traces::take_exporter) {
        background.spawn_closing(exporter.run());
    }
    background.spawn(snapshots::run(api.registry.clone(), api.snapshots.clone()));
    if let Some(fairness) = api.fairness.clone() {
        background.spawn(fairness.run());
    }
    if let Some(external) = api.authentication.tokens.external.clone() {
        background.spawn(external.run());
    }
    if let Some(encryption) = encryption {
        background.spawn(encryption.run(api.registry.clone()));
    }
}

/// The registry, the authorizers, and the measures of both and of admission and auditing.
async fn registry(
    config: &Config,
    store: Box<dyn Opening>,
    webhooks: &Arc<Webhooks>,
) -> Result<(Arc<Registry>, Authorization, Measured), Error> {
    let authorization = Authorization::new(config, webhooks.dialers.clone())?;
    let (chain, admission) = admission::chain(config, &authorization, webhooks)?;
    let effects = Arc::new(pintle_effects::Measures::default());
    let built_in = built_in(config, &effects)?;
    let registry = Registry::open(options(config, store, chain), built_in).await;
    let registry = Arc::new(registry.map_err(|why| store::unusable(config, why))?);
    authorization.follow(&registry);
    let measured = Measured {
        admission,
        effects,
        authorization: authorization.measures.clone(),
        node_graph: authorization.nodes().map(|nodes| nodes.measures.clone()),
        encryption: None,
        audit: Arc::new(audit::Measures::default()),
    };
    Ok((registry, authorization, measured))
}

/// The built-in resources with their allocators and other effects of writes.
fn built_in(
    config: &Config,
    measures: &Arc<pintle_effects::Measures>,
) -> Result<Vec<ResourceDefinition>, Error> {
    let mut definitions = pintle_kinds::definitions(&config.apis());
    let effects = pintle_effects::Settings {
        service_ranges: &bootstrap::service_ranges(config),
        node_ports: config.service_node_port_range,
        entropy: random,
        measures: measures.clone(),
    };
    pintle_effects::attach(&mut definitions, &effects)?;
    Ok(definitions)
}

fn options(config: &Config, store: Box<dyn Opening>, admission: Chain) -> Options {
    Options {
        store,
        admission: Arc::new(admission),
        entropy: random,
        garbage_collection: true,
        history_bytes_max: config.watch_history_bytes,
        encodings_bytes_max: ENCODINGS_BYTES_MAX,
    }
}
