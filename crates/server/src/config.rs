//! The configuration of a server. The program fills it in from flags with kube-apiserver's names,
//! tests directly.

mod access;
mod audit;
mod connections;
mod egress;
mod encryption;
mod extensions;
mod kubelets;
mod proxies;
mod serving;
mod snapshots;
mod sockets;
mod tls;
mod tracing;

use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;
use std::time::Duration;

use pintle_admission::Plugins;
use pintle_auth::Mode;
use pintle_controllers::Selection;
use pintle_effects::PortRange;
use pintle_kinds::{Emulation, RuntimeConfig};
use pintle_layout::MediaType;

use crate::fairness;
use crate::{Cors, EffectiveVersion, Error, FeatureGates};
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
pub use snapshots::SnapshotSchedule;
pub(crate) use sockets::socket;
pub use tls::TlsParameters;
pub use tracing::{Tracing, TracingEndpoint};

/// The configuration of a server. [`Config::default`] is the program without flags.
#[derive(Clone, Debug)]
pub struct Config {
    /// The directory of the store, the certificates and the kubeconfig.
    pub data_dir: PathBuf,
    /// The store and the certificates are in memory and are lost when the process ends.
    pub ephemeral: bool,
    /// The etcd that stores the objects, instead of the embedded store. The data directory then
    /// holds only certificates and the kubeconfig.
    pub etcd: Option<pintle_etcd::Options>,
    /// The encoding of built-in kinds in etcd.
    pub storage_media_type: MediaType,
    /// The EncryptionConfiguration of encryption at rest.
    pub encryption: Option<EncryptionFile>,
    /// Writes are on disk before they are acknowledged.
    pub fsync: bool,
    /// The snapshots that the server takes at intervals.
    pub snapshots: Option<SnapshotSchedule>,
    /// The path of the administrator's kubeconfig. By default it is `admin.kubeconfig` in the data
    /// directory, or in a temporary directory if `ephemeral` is set.
    pub kubeconfig: Option<PathBuf>,
    /// The address to listen on.
    pub bind_address: IpAddr,
    /// The port to listen on; 0 takes a free one.
    pub secure_port: u16,
    /// The address at which the cluster's members reach the server, if it differs from the address
    /// to listen on.
    pub advertise_address: Option<IpAddr>,
    /// The directory of certificates; by default `pki` in the data directory.
    pub cert_dir: Option<PathBuf>,
    /// A serving certificate and its key, instead of the server's own.
    pub tls_files: Option<(PathBuf, PathBuf)>,
    /// Serving certificates by the name that the client sends (SNI).
    pub tls_named_files: Vec<NamedServingFiles>,
    /// Further DNS names and addresses in the server's own serving certificate.
    pub tls_names: Vec<String>,
    /// The TLS versions, cipher suites and key exchanges.
    pub tls_parameters: TlsParameters,
    /// The authorization modes, in order.
    pub authorization_modes: Vec<Mode>,
    /// The files of authorizers. A configuration file replaces the modes.
    pub authorization_files: AuthorizationFiles,
    /// The audit policy and backends.
    pub audit: AuditOptions,
    /// Additional CAs of client certificates.
    pub client_ca_file: Option<PathBuf>,
    /// The headers by which front proxies name the user.
    pub request_header: RequestHeader,
    /// The static token file: lines of `token,user,uid,"group1,group2"`.
    pub token_auth_file: Option<PathBuf>,
    /// Accepts the bootstrap tokens that secrets in `kube-system` hold.
    pub bootstrap_tokens: bool,
    /// The keys and issuers of service account tokens.
    pub service_accounts: ServiceAccounts,
    /// The release that the server acts as.
    pub effective_version: EffectiveVersion,
    /// Serves later versions of the APIs that the release serves
    /// (`--emulation-forward-compatible`).
    pub emulation_forward_compatible: bool,
    /// Serves later versions that `runtime_config` names
    /// (`--runtime-config-emulation-forward-compatible`).
    pub runtime_config_emulation_forward_compatible: bool,
    /// The enabled API versions.
    pub runtime_config: RuntimeConfig,
    /// The feature gates.
    pub feature_gates: FeatureGates,
    /// Shows metrics that this version hides as deprecated.
    pub show_hidden_metrics: bool,
    /// The CIDRs of service addresses.
    pub service_cluster_ip_range: String,
    /// The range of node ports.
    pub service_node_port_range: PortRange,
    /// How long changes are retained for watches and lists at old revisions.
    pub watch_history: Duration,
    /// The limit of these changes, in bytes: of each resource in memory, and of all on disk.
    pub watch_history_bytes: usize,
    /// How long the server still serves, while it is not ready, after the signal to stop.
    pub shutdown_delay: Duration,
    /// The time after the start in which `/livez` succeeds although the start has not finished.
    pub livez_grace_period: Duration,
    /// Turns on priority and fairness; otherwise the two limits that follow bound the requests in
    /// flight.
    pub priority_and_fairness: bool,
    /// The limit of read-only requests in flight; 0 is no limit. The sum of both limits is the
    /// number of seats that priority levels share.
    pub max_requests_inflight: usize,
    /// The limit of mutating requests in flight; 0 is no limit.
    pub max_mutating_requests_inflight: usize,
    /// The limits and deadlines of connections.
    pub connections: ConnectionLimits,
    /// The longest time of a request that is not long-running, and then of sending its response.
    pub request_timeout: Duration,
    /// The timeout of a watch is random between this and twice this, unless the client sets one.
    pub min_request_timeout: Duration,
    /// A request that takes longer is logged with the times of its layers. If zero, no request is
    /// logged.
    pub slow_request_threshold: Duration,
    /// The export of traces; `None` exports none.
    pub tracing: Option<Tracing>,
    /// The proxies of outgoing connections.
    pub egress: EgressSelector,
    /// The client of kubelets.
    pub kubelets: KubeletClient,
    /// The client of extension API servers.
    pub extensions: Extensions,
    /// The addresses that proxied requests may go to.
    pub proxied_addresses: ProxiedAddresses,
    /// The origins whose web pages may use the API.
    pub cors: Cors,
    /// Serves the console at `/console/`.
    pub console: bool,
    /// Allows anonymous requests, except with the mode AlwaysAllow.
    pub anonymous_auth: bool,
    /// The external issuers and webhooks of tokens.
    pub external_tokens: ExternalTokens,
    /// The admission plugins.
    pub admission_plugins: Plugins,
    /// The controllers.
    pub controllers: Selection,
    /// The time after which the content of a deleted namespace is deleted.
    pub namespace_deletion_delay: Duration,
    /// The lifetime of events after their last write; `None` is the kind's own.
    pub event_ttl: Option<Duration>,
    /// Files and directories of objects that are applied before the server is ready.
    pub manifests: Vec<PathBuf>,
    /// More such objects, as YAML or JSON.
    pub objects: Vec<String>,
    /// The command line's flags and their values, for `/flagz`.
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
            snapshots: None,
            kubeconfig: None,
            bind_address: IpAddr::V4(Ipv4Addr::LOCALHOST),
            secure_port: 6443,
            advertise_address: None,
            cert_dir: None,
            tls_files: None,
            tls_named_files: Vec::new(),
            tls_names: Vec::new(),
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
            effective_version: EffectiveVersion::default(),
            emulation_forward_compatible: false,
            runtime_config_emulation_forward_compatible: false,
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
            slow_request_threshold: Duration::from_millis(500),
            tracing: None,
            egress: EgressSelector::default(),
            kubelets: KubeletClient::default(),
            extensions: Extensions::default(),
            proxied_addresses: ProxiedAddresses::default(),
            cors: Cors::default(),
            console: false,
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
    /// The configuration of a test's server: in memory, on a free port.
    pub fn ephemeral() -> Self {
        Self { ephemeral: true, secure_port: 0, ..Self::default() }
    }

    /// The built-in APIs that are served, by `--runtime-config` and feature gates.
    pub(crate) fn apis(&self) -> RuntimeConfig {
        let emulation = Emulation {
            minor: self.effective_version.emulated_minor(),
            forward_compatible: self.emulation_forward_compatible,
            runtime_config_forward_compatible: self.runtime_config_emulation_forward_compatible,
        };
        self.runtime_config.clone().with(self.feature_gates.of_kinds()).emulating(emulation)
    }

    /// Refuses flags that contradict each other.
    pub(crate) fn check(&self) -> Result<(), Error> {
        self.check_release()?;
        self.check_fairness()
    }

    /// Refuses flags about the release that contradict each other, and warns of features that stay
    /// enabled.
    fn check_release(&self) -> Result<(), Error> {
        let refuse = |flag, reason| Err(Error::Flag { flag, reason });
        if !self.effective_version.is_emulation() {
            let only = |option: &str| {
                format!(
                    "ServerRunOptions.{option} cannot be set to true if the emulation version is \
                     the same as the binary version"
                )
            };
            if self.emulation_forward_compatible {
                let reason = only("EmulationForwardCompatible");
                return refuse("emulation-forward-compatible", reason);
            }
            if self.runtime_config_emulation_forward_compatible {
                let reason = only("RuntimeConfigEmulationForwardCompatible");
                return refuse("runtime-config-emulation-forward-compatible", reason);
            }
        }
        let checked = self.apis().check();
        if let Err(error) = checked {
            return refuse("runtime-config", error.to_string());
        }
        let ahead = self.feature_gates.ahead();
        if self.effective_version.is_emulation() && !ahead.is_empty() {
            let (release, ahead) = (self.effective_version.emulation(), ahead.join(", "));
            ::tracing::warn!(
                "--emulated-version={release}: these features of later releases stay enabled: {ahead}"
            );
        }
        Ok(())
    }

    /// Refuses to switch off the kinds that configure priority and fairness while it is on. Upstream
    /// (`validateAPIPriorityAndFairness`) checks the same keys but those of single resources.
    fn check_fairness(&self) -> Result<(), Error> {
        let disabled = fairness::resources().iter().find_map(|name| {
            self.runtime_config.disabling_key(&name.group, &name.version, &name.resource)
        });
        match disabled.filter(|_| self.priority_and_fairness) {
            Some(key) => Err(Error::Flag {
                flag: "runtime-config",
                reason: format!("{key}=false conflicts with --enable-priority-and-fairness=true"),
            }),
            None => Ok(()),
        }
    }

    /// The directory of certificates.
    pub fn certificate_directory(&self) -> PathBuf {
        self.cert_dir.clone().unwrap_or_else(|| self.data_dir.join("pki"))
    }

    /// The path of the administrator's kubeconfig; `None` if it is in a temporary directory.
    pub fn stored_kubeconfig(&self) -> Option<PathBuf> {
        let default = || (!self.ephemeral).then(|| self.data_dir.join("admin.kubeconfig"));
        self.kubeconfig.clone().or_else(default)
    }
}
