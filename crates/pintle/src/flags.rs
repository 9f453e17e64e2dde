//! Command line flags, under kube-apiserver's names where it has them.

mod access;
mod admission;
mod audit;
mod egress;
mod encryption;
mod etcd;
mod extensions;
mod external;
mod file;
mod kubelets;
mod logging;
mod release;
mod snapshots;
mod tls;
mod tracing;

use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, bail};
use clap::builder::BoolishValueParser;
use clap::{ArgAction, Args};
use pintle_meta::quantity::Quantity;
use pintle_server::{
    AdmissionConfiguration, Config, Cors, EgressSelector, Plugins, PortRange, RuntimeConfig,
    Selection,
};

use access::AccessFlags;
use audit::AuditFlags;
use encryption::EncryptionFlags;
use etcd::EtcdFlags;
use extensions::ExtensionFlags;
pub(crate) use file::FlagFile;
use kubelets::KubeletFlags;
use logging::LoggingFlags;
pub(crate) use logging::{LogFormat, LogOptions};
use release::ReleaseFlags;
use snapshots::SnapshotFlags;
use tls::TlsFlags;

/// The notes at the end of the help of `pintle serve`, and of its manual page.
pub(crate) const NOTES: &str = "\
Values:
  DURATION is a sequence of numbers with units (ns, us, ms, s, m, h): 300ms, 90s, 1h30m. QUANTITY is a
  number of bytes, with or without a suffix: 1500k, 64Mi, 1Gi. The value of a BOOL follows an equals
  sign: --anonymous-auth=false. Values of a list are separated by commas.

Configuration file:
  --config names a YAML file with flags. Its keys are the names of the flags without --. The values are
  strings, numbers and booleans, as the flags have them; a flag that may be repeated or takes a list
  also takes a YAML list. A flag on the command line replaces that of the file. Unknown keys, keys that
  occur twice and wrong types are errors.

    data-dir: /var/lib/pintle
    bind-address: 0.0.0.0
    authorization-mode: [Node, RBAC]
    anonymous-auth: false
    event-ttl: 2h

Environment:
  RUST_LOG sets the levels of the log by target, instead of --v: pintle=info,pintle::requests=trace.
  NOTIFY_SOCKET is the socket of a service manager, which is notified when the server is ready.

Exit status:
  0 after a signal; 1 if the server cannot start, or was stopped before all requests were finished; 2 if
  the command line is wrong.";

/// Run the API server
///
/// Generates its certificates at the first start, prints one line on standard output when ready,
///
///   pintle ready url=https://127.0.0.1:6443 kubeconfig=/…/.pintle/admin.kubeconfig
///
/// and logs to standard error. SIGTERM and SIGINT stop it after open requests have finished. A
/// service manager that waits for readiness (NOTIFY_SOCKET) is notified.
///
/// Examples:
///
///   pintle serve                                  store everything in .pintle
///   pintle serve --data-dir /var/lib/pintle       store everything there
///   pintle serve --ephemeral --secure-port 0      for a test: nothing on disk, any free port
///
/// Then: export KUBECONFIG=.pintle/admin.kubeconfig; kubectl get namespaces
#[derive(Args, Debug)]
#[command(verbatim_doc_comment, after_long_help = NOTES)]
pub(crate) struct Serve {
    /// Read flags from this YAML file. Its keys are the names of the flags without --. A flag that
    /// may be repeated takes a list. A flag on the command line replaces that of the file
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    #[command(flatten)]
    storage: StorageFlags,
    #[command(flatten)]
    etcd: EtcdFlags,
    #[command(flatten)]
    encryption: EncryptionFlags,
    #[command(flatten)]
    serving: ServingFlags,
    #[command(flatten)]
    access: AccessFlags,
    #[command(flatten)]
    audit: AuditFlags,
    #[command(flatten)]
    kubelets: KubeletFlags,
    #[command(flatten)]
    extensions: ExtensionFlags,
    #[command(flatten)]
    release: ReleaseFlags,
    #[command(flatten)]
    api: ApiFlags,
    #[command(flatten)]
    limits: LimitFlags,
    /// Stop when standard input ends. The server then ends with the program that started it and
    /// holds the other end of the pipe, even if that program is killed
    #[arg(long, help_heading = "Process")]
    stop_at_eof: bool,
    #[command(flatten)]
    logging: LoggingFlags,
}

#[derive(Args, Debug)]
#[command(next_help_heading = "Storage")]
struct StorageFlags {
    /// The directory of the store, the certificates and the administrator's kubeconfig
    #[arg(long, value_name = "DIR", default_value = ".pintle")]
    data_dir: PathBuf,
    /// Keep the store and the certificates in memory only; they are lost when the server stops
    #[arg(long, conflicts_with = "etcd_servers")]
    ephemeral: bool,
    /// Acknowledge a write before it is on disk. Writes are faster, and a crash of the machine
    /// loses the last ones
    #[arg(long)]
    unsafe_no_fsync: bool,
    /// The file to which the administrator's kubeconfig is written [default: admin.kubeconfig in
    /// the data directory; with --ephemeral in a temporary directory]
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// How long the history of changes is kept, for watches and for lists at old resource versions
    #[arg(long, value_name = "DURATION", default_value = "5m", value_parser = duration)]
    watch_history: Duration,
    /// The largest size of that history: of each resource in memory, and of all resources on disk;
    /// 64Mi, 1Gi
    #[arg(long, value_name = "QUANTITY", default_value = "64Mi", value_parser = bytes)]
    watch_history_size: usize,
    #[command(flatten)]
    snapshots: SnapshotFlags,
}

#[derive(Args, Debug)]
#[command(next_help_heading = "Serving")]
struct ServingFlags {
    /// The IP address to listen on; 0.0.0.0 or :: listens on all addresses
    #[arg(long, value_name = "IP", default_value = "127.0.0.1")]
    bind_address: IpAddr,
    /// The port to listen on; 0 selects a free port
    #[arg(long, value_name = "PORT", default_value_t = 6443)]
    secure_port: u16,
    /// The IP address at which members of the cluster reach the server [default: the bind address]
    #[arg(long, value_name = "IP")]
    advertise_address: Option<IpAddr>,
    /// The directory in which certificates are generated and stored [default: pki in the data
    /// directory]
    #[arg(long, value_name = "DIR")]
    cert_dir: Option<PathBuf>,
    #[command(flatten)]
    tls: TlsFlags,
    /// Allow cross-origin requests of web pages with these origins: regular expressions, such as
    /// '//example\.com(:|$)'
    #[arg(long, value_name = "REGEX,…", value_delimiter = ',')]
    cors_allowed_origins: Vec<String>,
    /// Serve the console, a web page that shows the stored objects, at /console/. Users log in with
    /// their credentials for the API
    #[arg(long)]
    console: bool,
    /// How long the server goes on serving after a stop signal while /readyz fails, so that load
    /// balancers stop sending requests to it
    #[arg(long, value_name = "DURATION", default_value = "0s", value_parser = duration)]
    shutdown_delay_duration: Duration,
    /// How long /livez succeeds after the start although the start has not finished
    #[arg(long, value_name = "DURATION", default_value = "0s", value_parser = duration)]
    livez_grace_period: Duration,
}

#[derive(Args, Debug)]
#[command(next_help_heading = "API")]
struct ApiFlags {
    /// Enable or disable API versions and resources: api/all=true|false, api/ga, api/beta,
    /// api/alpha, GROUP/VERSION=true|false, GROUP/VERSION/RESOURCE=true|false; may be repeated
    #[arg(long, value_name = "KEY=BOOL,…")]
    runtime_config: Vec<String>,
    /// Enable or disable features: APIResponseCompression=true|false (default true),
    /// CBORServingAndStorage=true|false (default false), ComponentFlagz=true|false (default true),
    /// ComponentStatusz=true|false (default true), WatchList=true|false (default true), AllAlpha,
    /// AllBeta. The other feature gates of kube-apiserver are known. A gate of another component
    /// may have any value and has no effect; any other gate may only have the value that matches
    /// what this server does
    #[arg(long, value_name = "NAME=BOOL,…")]
    feature_gates: Vec<String>,
    /// Show the metrics that are hidden because they are deprecated. The value must be the previous
    /// version, 1.35
    #[arg(long, value_name = "VERSION", default_value = "", hide_default_value = true)]
    #[arg(value_parser = hidden_metrics, action = ArgAction::Set)]
    show_hidden_metrics_for_version: bool,
    /// Enable these admission plugins in addition to the default ones, by kube-apiserver's names
    #[arg(long, value_name = "NAME,…", value_delimiter = ',')]
    enable_admission_plugins: Vec<String>,
    /// Disable these default admission plugins. Without ServiceAccount, pods need no service
    /// account
    #[arg(long, value_name = "NAME,…", value_delimiter = ',')]
    disable_admission_plugins: Vec<String>,
    /// The file of an EgressSelectorConfiguration: the proxies of requests to nodes, pods, services
    /// and webhooks. The protocols Direct and HTTPConnect are supported
    #[arg(long, value_name = "FILE")]
    egress_selector_config_file: Option<PathBuf>,
    /// The file of an AdmissionConfiguration: the configuration of admission plugins, such as
    /// PodSecurity and ResourceQuota
    #[arg(long, value_name = "FILE")]
    admission_control_config_file: Option<PathBuf>,
    /// The controllers to run in this server, so that a kube-controller-manager can run the
    /// others: * enables all, -* disables all, NAME enables one, -NAME disables one;
    /// namespace-controller, garbage-collector-controller, clusterrole-aggregation-controller,
    /// serviceaccount-controller, root-ca-certificate-publisher-controller,
    /// serviceaccount-token-controller, certificatesigningrequest-approving-controller,
    /// certificatesigningrequest-signing-controller,
    /// certificatesigningrequest-cleaner-controller, ttl-after-finished-controller,
    /// persistentvolumeclaim-protection-controller, persistentvolume-protection-controller,
    /// volumeattributesclass-protection-controller, service-cidr-controller,
    /// storage-version-migrator-controller, resourcequota-controller,
    /// validatingadmissionpolicy-status-controller
    #[arg(
        long,
        value_name = "NAME,…",
        default_value = "*",
        value_delimiter = ',',
        allow_hyphen_values = true
    )]
    controllers: Vec<String>,
    /// How long the namespace controller waits before it deletes the content of a namespace that is
    /// being deleted
    #[arg(long, value_name = "DURATION", default_value = "0s", value_parser = duration)]
    namespace_deletion_delay: Duration,
    /// How long an event is stored after its last write [default: 1h0m0s]
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    event_ttl: Option<Duration>,
    /// Apply these objects before the server becomes ready: a file of YAML or JSON, or a directory
    /// of such files; may be repeated
    #[arg(long, value_name = "PATH")]
    manifests: Vec<PathBuf>,
    /// The ranges from which service IPs are assigned: at most one IPv4 range and one IPv6 range
    #[arg(long, value_name = "CIDR,…", default_value = "10.0.0.0/24")]
    service_cluster_ip_range: String,
    /// The range of node ports for services of the types NodePort and LoadBalancer
    #[arg(long, value_name = "FIRST-LAST", default_value_t)]
    service_node_port_range: PortRange,
}

#[derive(Args, Debug)]
#[command(next_help_heading = "Limits")]
struct LimitFlags {
    /// Limit the requests in progress by flow schemas and priority levels. Their seats are the sum
    /// of the next two limits
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true,
          default_value = "true", default_missing_value = "true",
          value_parser = BoolishValueParser::new())]
    enable_priority_and_fairness: bool,
    /// The largest number of non-mutating requests in progress; 0 is no limit
    #[arg(long, value_name = "COUNT", default_value_t = 400)]
    max_requests_inflight: usize,
    /// The largest number of mutating requests in progress; 0 is no limit
    #[arg(long, value_name = "COUNT", default_value_t = 200)]
    max_mutating_requests_inflight: usize,
    /// How long a request other than a watch may take
    #[arg(long, value_name = "DURATION", default_value = "1m0s", value_parser = duration)]
    request_timeout: Duration,
    /// The shortest duration of a watch in seconds. The server ends a watch at a random time
    /// between this and twice this duration
    #[arg(long, value_name = "SECONDS", default_value_t = 1800)]
    min_request_timeout: u64,
}

impl LimitFlags {
    /// Refuses limits with which the server could serve no request.
    fn check(&self) -> anyhow::Result<()> {
        if self.request_timeout.is_zero() {
            bail!("--request-timeout: must be longer than zero");
        }
        Ok(())
    }
}

impl ApiFlags {
    /// The proxies of outgoing connections.
    fn egress(&self) -> anyhow::Result<EgressSelector> {
        match &self.egress_selector_config_file {
            Some(path) => egress::selector(path).context("--egress-selector-config-file"),
            None => Ok(EgressSelector::default()),
        }
    }

    /// The admission plugins with the configuration of their file.
    fn admission_plugins(&self) -> anyhow::Result<Plugins> {
        let enabled = || self.enable_admission_plugins.iter().map(String::as_str);
        let disabled = self.disable_admission_plugins.iter().map(String::as_str);
        let plugins = Plugins::parse(enabled(), disabled)?;
        for name in Plugins::without_effect(enabled()) {
            ::tracing::warn!("--enable-admission-plugins: {name} has no effect");
        }
        let configuration = match &self.admission_control_config_file {
            Some(path) => admission::configuration(path)?,
            None => AdmissionConfiguration::default(),
        };
        Ok(plugins.configured(configuration)?)
    }
}

impl Serve {
    /// How the program logs.
    pub(crate) const fn log(&self) -> LogOptions {
        self.logging.options()
    }

    /// True if the end of standard input stops the server.
    pub(crate) const fn stop_at_eof(&self) -> bool {
        self.stop_at_eof
    }

    /// Converts the flags to a configuration.
    pub(crate) fn config(self) -> anyhow::Result<Config> {
        let Self {
            storage,
            etcd,
            encryption,
            serving,
            access,
            audit,
            kubelets,
            extensions,
            release,
            api,
            limits,
            logging,
            ..
        } = self;
        let runtime_config = RuntimeConfig::parse(api.runtime_config.iter().map(String::as_str))
            .context("--runtime-config")?;
        let of_release = release.config(&api.feature_gates)?;
        let controllers = Selection::parse(api.controllers.iter().map(String::as_str))
            .context("--controllers")?;
        limits.check()?;
        let mut config = Config {
            data_dir: storage.data_dir,
            ephemeral: storage.ephemeral,
            storage_media_type: etcd.media_type(),
            etcd: etcd.options()?,
            encryption: encryption.file()?,
            fsync: !storage.unsafe_no_fsync,
            snapshots: storage.snapshots.schedule()?,
            kubeconfig: storage.kubeconfig,
            watch_history: storage.watch_history,
            watch_history_bytes: storage.watch_history_size,
            bind_address: serving.bind_address,
            secure_port: serving.secure_port,
            advertise_address: serving.advertise_address,
            cert_dir: serving.cert_dir,
            tls_files: serving.tls.files(),
            tls_parameters: serving.tls.parameters()?,
            tls_named_files: serving.tls.tls_sni_cert_key,
            tls_names: serving.tls.tls_san,
            shutdown_delay: serving.shutdown_delay_duration,
            livez_grace_period: serving.livez_grace_period,
            slow_request_threshold: logging.slow_request_threshold,
            tracing: logging.tracing()?,
            egress: api.egress()?,
            audit: audit.options()?,
            kubelets: kubelets.client(),
            extensions: extensions.extensions(),
            cors: Cors::parse(serving.cors_allowed_origins.iter().map(String::as_str))?,
            console: serving.console,
            runtime_config,
            show_hidden_metrics: api.show_hidden_metrics_for_version,
            admission_plugins: api.admission_plugins()?,
            controllers,
            namespace_deletion_delay: api.namespace_deletion_delay,
            event_ttl: api.event_ttl,
            manifests: api.manifests,
            service_cluster_ip_range: api.service_cluster_ip_range,
            service_node_port_range: api.service_node_port_range,
            priority_and_fairness: limits.enable_priority_and_fairness,
            max_requests_inflight: limits.max_requests_inflight,
            max_mutating_requests_inflight: limits.max_mutating_requests_inflight,
            request_timeout: limits.request_timeout,
            min_request_timeout: Duration::from_secs(limits.min_request_timeout),
            ..of_release
        };
        access.apply(&mut config)?;
        Ok(config)
    }
}

/// Parses `--show-hidden-metrics-for-version`; only the previous version is valid.
fn hidden_metrics(version: &str) -> Result<bool, String> {
    match version {
        "" => Ok(false),
        "1.35" => Ok(true),
        _ => Err(
            "must be omitted or have the value '1.35'; only the previous minor version is allowed"
                .to_owned(),
        ),
    }
}

/// Parses a Go duration: `1h30m`, `90s`.
fn duration(text: &str) -> Result<Duration, String> {
    let nanos = pintle_meta::duration::parse(text).map_err(|error| {
        format!("{error}; a duration is a number with a unit (ns, us, ms, s, m, h), such as 90s or 1h30m")
    })?;
    let nanos = u64::try_from(nanos).map_err(|_| "must not be negative".to_owned())?;
    Ok(Duration::from_nanos(nanos))
}

/// Parses bytes as a quantity: `64Mi`.
fn bytes(text: &str) -> Result<usize, String> {
    let quantity = text.parse::<Quantity>().map_err(|error| {
        format!("{error}; a quantity is a number of bytes, also with a suffix: 1500k, 64Mi, 1Gi")
    })?;
    let bytes = quantity.to_int().and_then(|bytes| usize::try_from(bytes).ok());
    bytes.ok_or_else(|| "must be a whole number of bytes, and not negative".to_owned())
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use pintle_server::TlsParameters;

    use pintle_server::Feature;

    use super::*;

    #[derive(Debug, Parser)]
    struct CommandLine {
        #[command(flatten)]
        serve: Serve,
    }

    fn config(flags: &[&str]) -> anyhow::Result<Config> {
        CommandLine::try_parse_from([&["serve"], flags].concat())?.serve.config()
    }

    #[test]
    fn no_flags_give_the_defaults() {
        let (flags, default) = (config(&[]).unwrap(), Config::default());
        assert_eq!(format!("{flags:?}"), format!("{default:?}"));
    }

    #[test]
    fn flags_are_read_like_kube_apiservers() {
        let flags = [
            "--anonymous-auth=false",
            "--request-timeout=1m30s",
            "--min-request-timeout=60",
            "--feature-gates=APIResponseCompression=false",
            "--runtime-config=api/beta=true,batch/v1=false",
            "--tls-cert-file=a",
            "--tls-private-key-file=b",
            "--tls-min-version=VersionTLS13",
            "--tls-san=*.Shop.example,::1",
            "--tls-cipher-suites=TLS_AES_128_GCM_SHA256",
            "--tls-curve-preferences=29,23",
            "--watch-history-size=1500k",
            "--show-hidden-metrics-for-version=1.35",
            "-v=4",
        ];
        let config = config(&flags).unwrap();
        assert_eq!(config.watch_history_bytes, 1_500_000);
        assert!(!config.anonymous_auth);
        assert!(config.show_hidden_metrics);
        assert!(!config.feature_gates.has(Feature::ApiResponseCompression));
        assert_eq!(config.request_timeout, Duration::from_secs(90));
        assert_eq!(config.min_request_timeout, Duration::from_secs(60));
        assert_eq!(config.tls_files, Some(("a".into(), "b".into())));
        assert_ne!(config.runtime_config, RuntimeConfig::default());
        assert_ne!(config.tls_parameters, TlsParameters::default());
        assert_eq!(config.tls_names, ["*.shop.example", "::1"]);
    }

    #[test]
    fn snapshots_are_taken_at_intervals_only_if_a_folder_is_named() {
        assert_eq!(config(&["--snapshot-interval=1m"]).unwrap().snapshots, None);
        let schedule =
            config(&["--snapshot-dir=a", "--snapshot-keep=3"]).unwrap().snapshots.unwrap();
        assert_eq!((schedule.interval, schedule.keep), (Duration::from_secs(3600), 3));
        for wrong in ["--snapshot-keep=0", "--snapshot-interval=10ms", "--snapshot-interval=0"] {
            assert!(config(&["--snapshot-dir=a", wrong]).is_err(), "{wrong}");
        }
    }

    #[test]
    fn wrong_flags_are_refused() {
        for flag in [
            "--runtime-config=a/b/c/d",
            "--feature-gates=Nonsense=true",
            "--show-hidden-metrics-for-version=1.34",
            "--request-timeout=abc",
            "--request-timeout=-1s",
            "--request-timeout=0s",
            "--snapshot-keep=-1",
            "--snapshot-interval=often",
            "--watch-history-size=much",
            "--watch-history-size=-1",
            "--watch-history-size=1500m",
            "--tls-cert-file=a",
            "--kubelet-client-certificate=a",
            "--kubelet-timeout=long",
            "--proxy-client-cert-file=a",
            "--enable-aggregator-routing=perhaps",
            "--bind-address=nowhere",
            "--service-node-port-range=9-1",
            "--controllers=*,-nothing",
            "--enable-admission-plugins=Nothing",
            "--enable-admission-plugins=EventRateLimit",
            "--requestheader-username-headers= ",
            "--requestheader-group-headers=X-A,,X-B",
            "--requestheader-uid-headers=X A",
            "--requestheader-allowed-names= ",
            "--tls-min-version=TLS13",
            "--tls-cipher-suites=NONE",
            "--tls-curve-preferences=1",
            "--tls-san=a_b",
            "--tls-san=a,",
            "--tls-curve-preferences=",
        ] {
            assert!(config(&[flag]).is_err(), "{flag}");
        }
    }
}
