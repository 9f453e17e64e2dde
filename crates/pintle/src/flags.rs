//! Command line flags, under kube-apiserver's names where it has them.

mod access;
mod admission;
mod api;
mod audit;
mod egress;
mod encryption;
mod etcd;
mod extensions;
mod external;
mod file;
mod kubelets;
mod limits;
mod logging;
mod release;
mod serving;
mod snapshots;
mod storage;
mod tls;
mod tracing;

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context;
use clap::Args;
use pintle_meta::quantity::Quantity;
use pintle_server::{Config, Cors, RuntimeConfig, Selection};

use access::AccessFlags;
use api::ApiFlags;
use audit::AuditFlags;
use encryption::EncryptionFlags;
use etcd::EtcdFlags;
use extensions::ExtensionFlags;
pub(crate) use file::FlagFile;
use kubelets::KubeletFlags;
use limits::LimitFlags;
use logging::LoggingFlags;
pub(crate) use logging::{LogFormat, LogOptions};
use release::ReleaseFlags;
use serving::ServingFlags;
use storage::StorageFlags;

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

impl Serve {
    /// How the program logs.
    pub(crate) const fn log(&self) -> LogOptions {
        self.logging.options()
    }

    /// Whether the end of standard input stops the server.
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
            min_request_timeout: Duration::from_secs(limits.min_request_timeout.into()),
            ..of_release
        };
        access.apply(&mut config)?;
        Ok(config)
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
