//! Everything that can be told a server before it starts. The program reads it from flags with
//! kube-apiserver's names; tests fill it in.

mod access;
mod audit;
mod connections;
mod egress;
mod encryption;
mod extensions;
mod kubelets;
mod proxies;
mod serving;

use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;
use std::time::Duration;

use pintle_admission::Plugins;
use pintle_auth::Mode;
use pintle_controllers::Selection;
use pintle_effects::PortRange;
use pintle_kinds::RuntimeConfig;
use pintle_layout::MediaType;

use crate::{Cors, FeatureGates, TlsParameters};
pub use access::{
    AuthorizationFiles, ExternalTokens, OidcFlags, RequestHeader, ServiceAccounts, TokenWebhook,
};
pub use audit::{
    AuditDelivery, AuditFormat, AuditLog, AuditMode, AuditOptions, AuditTruncation, AuditWebhook,
};
pub use connections::ConnectionLimits;
pub use egress::{Egress, EgressSelector, EgressTls, Transport};
pub use encryption::EncryptionFile;
pub use extensions::Extensions;
pub use kubelets::KubeletClient;
pub use proxies::ProxiedAddresses;
pub use serving::NamedServingFiles;

/// How a server is to run. [`Config::default`] is what the program does without flags.
#[derive(Clone, Debug)]
pub struct Config {
    /// Where everything is kept: the store, certificates, the kubeconfig.
    pub data_dir: PathBuf,
    /// Keep nothing: store and certificates live as long as the process.
    pub ephemeral: bool,
    /// The etcd that keeps the objects, instead of a store of the server's own. The data directory then has
    /// certificates and the kubeconfig only.
    pub etcd: Option<pintle_etcd::Options>,
    /// As what etcd keeps objects of built-in kinds.
    pub storage_media_type: MediaType,
    /// The file that says which values are encrypted where they are stored, and how.
    pub encryption: Option<EncryptionFile>,
    /// Writes are on disk before they are acknowledged.
    pub fsync: bool,
    /// Where the administrator's kubeconfig goes; `admin.kubeconfig` in the data directory (or in a
    /// temporary one) where nothing is said.
    pub kubeconfig: Option<PathBuf>,
    /// The address to listen on.
    pub bind_address: IpAddr,
    /// The port to listen on; 0 takes a free one.
    pub secure_port: u16,
    /// The address under which the cluster's members reach the server, where it is another.
    pub advertise_address: Option<IpAddr>,
    /// Where certificates are kept; `pki` in the data directory where nothing is said.
    pub cert_dir: Option<PathBuf>,
    /// A serving certificate and its key, instead of one of our own.
    pub tls_files: Option<(PathBuf, PathBuf)>,
    /// Serving certificates by the names that clients ask for.
    pub tls_named_files: Vec<NamedServingFiles>,
    /// Which versions, cipher suites and key exchanges of TLS are offered.
    pub tls_parameters: TlsParameters,
    /// Who says who may do what.
    pub authorization_modes: Vec<Mode>,
    /// What authorizers read; a configuration in place of the modes.
    pub authorization_files: AuthorizationFiles,
    /// Which requests are recorded, and where.
    pub audit: AuditOptions,
    /// Further authorities for client certificates.
    pub client_ca_file: Option<PathBuf>,
    /// How front proxies say who asks.
    pub request_header: RequestHeader,
    /// Tokens and whose they are: lines of `token,user,uid,"group1,group2"`.
    pub token_auth_file: Option<PathBuf>,
    /// Let machines in by the bootstrap tokens that secrets in `kube-system` hold.
    pub bootstrap_tokens: bool,
    /// The tokens of service accounts.
    pub service_accounts: ServiceAccounts,
    /// Which API versions are on.
    pub runtime_config: RuntimeConfig,
    /// Which features are on.
    pub feature_gates: FeatureGates,
    /// Whether `/metrics` shows families that this version hides as deprecated.
    pub show_hidden_metrics: bool,
    /// The addresses of services.
    pub service_cluster_ip_range: String,
    /// The ports that services take on every node.
    pub service_node_port_range: PortRange,
    /// How long changes are kept for watches and lists at old revisions.
    pub watch_history: Duration,
    /// How much of them is kept at most, in bytes: of each resource in memory, and of all on disk.
    pub watch_history_bytes: usize,
    /// How long the server goes on serving after it was told to stop, while it says that it is not ready.
    pub shutdown_delay: Duration,
    /// How long the server counts as alive though it has not finished starting.
    pub livez_grace_period: Duration,
    /// Whether flow schemas and priority levels say which requests are worked on; otherwise the two limits
    /// that follow do.
    pub priority_and_fairness: bool,
    /// How many requests that change nothing are worked on at the same time; 0 is no limit. Together with
    /// the next it is the number of seats that priority levels share.
    pub max_requests_inflight: usize,
    /// How many requests that change something are worked on at the same time; 0 is no limit.
    pub max_mutating_requests_inflight: usize,
    /// How many connections there may be, and how long each may take for what.
    pub connections: ConnectionLimits,
    /// How long a request may take that is no watch, and after that its answer to be sent.
    pub request_timeout: Duration,
    /// Watches last between this and twice this, unless the client says otherwise.
    pub min_request_timeout: Duration,
    /// Which way requests to others take.
    pub egress: EgressSelector,
    /// How kubelets are reached.
    pub kubelets: KubeletClient,
    /// How extension API servers are reached.
    pub extensions: Extensions,
    /// Where proxies of pods, services and nodes may lead.
    pub proxied_addresses: ProxiedAddresses,
    /// Which web pages of other origins may use the API.
    pub cors: Cors,
    /// Whether one may come without credentials; nobody may where everyone may do everything.
    pub anonymous_auth: bool,
    /// Whose tokens of others hold.
    pub external_tokens: ExternalTokens,
    /// Which admission plugins run.
    pub admission_plugins: Plugins,
    /// Which controllers run.
    pub controllers: Selection,
    /// How long a deleted namespace is left alone before its content goes.
    pub namespace_deletion_delay: Duration,
    /// How long events live after they were last written; `None` is as long as the kind says.
    pub event_ttl: Option<Duration>,
    /// Files and directories with objects that are applied before the server is ready.
    pub manifests: Vec<PathBuf>,
    /// More such objects, as YAML or JSON.
    pub objects: Vec<String>,
    /// The flags of the command line and what they are set to, for `/flagz`.
    pub flags: Vec<(String, String)>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            data_dir: PathBuf::from(".pintle"),
            ephemeral: false,
            etcd: None,
            encryption: None,
            storage_media_type: MediaType::default(),
            fsync: true,
            kubeconfig: None,
            bind_address: IpAddr::V4(Ipv4Addr::LOCALHOST),
            secure_port: 6443,
            advertise_address: None,
            cert_dir: None,
            tls_files: None,
            tls_named_files: Vec::new(),
            tls_parameters: TlsParameters::default(),
            audit: AuditOptions::default(),
            client_ca_file: None,
            request_header: RequestHeader::default(),
            token_auth_file: None,
            bootstrap_tokens: false,
            service_accounts: ServiceAccounts {
                extend_token_expiration: true,
                ..ServiceAccounts::default()
            },
            runtime_config: RuntimeConfig::default(),
            feature_gates: FeatureGates::default(),
            show_hidden_metrics: false,
            service_cluster_ip_range: "10.0.0.0/24".to_owned(),
            service_node_port_range: PortRange::default(),
            watch_history: Duration::from_secs(5 * 60),
            watch_history_bytes: 64 * 1024 * 1024,
            shutdown_delay: Duration::ZERO,
            livez_grace_period: Duration::ZERO,
            priority_and_fairness: true,
            max_requests_inflight: 400,
            max_mutating_requests_inflight: 200,
            connections: ConnectionLimits::default(),
            request_timeout: Duration::from_secs(60),
            min_request_timeout: Duration::from_secs(1800),
            egress: EgressSelector::default(),
            kubelets: KubeletClient::default(),
            extensions: Extensions::default(),
            proxied_addresses: ProxiedAddresses::default(),
            cors: Cors::default(),
            anonymous_auth: true,
            authorization_modes: vec![Mode::Rbac],
            authorization_files: AuthorizationFiles::default(),
            external_tokens: ExternalTokens::default(),
            admission_plugins: Plugins::default(),
            controllers: Selection::default(),
            namespace_deletion_delay: Duration::ZERO,
            event_ttl: None,
            manifests: Vec::new(),
            objects: Vec::new(),
            flags: Vec::new(),
        }
    }
}

impl Config {
    /// A server for a test: nothing is kept, any free port.
    pub fn ephemeral() -> Self {
        Self { ephemeral: true, secure_port: 0, ..Self::default() }
    }

    /// Which built-in APIs are served: what the flags say of versions and of features.
    pub(crate) fn apis(&self) -> RuntimeConfig {
        self.runtime_config.clone().with(self.feature_gates.of_kinds())
    }

    /// Where certificates are kept, if they are.
    pub(crate) fn certificate_directory(&self) -> PathBuf {
        self.cert_dir.clone().unwrap_or_else(|| self.data_dir.join("pki"))
    }
}
