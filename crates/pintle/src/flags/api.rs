//! The flags about what the API has and does: its versions and features, admission plugins,
//! controllers, and the ranges of services.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context;
use clap::{ArgAction, Args};
use pintle_server::{AdmissionConfiguration, EgressSelector, Plugins, PortRange};

use super::{admission, duration, egress};

#[derive(Args, Debug)]
#[command(next_help_heading = "API")]
pub(super) struct ApiFlags {
    /// Enable or disable API versions and resources: api/all=true|false, api/ga, api/beta,
    /// api/alpha, GROUP/VERSION=true|false, GROUP/VERSION/RESOURCE=true|false; may be repeated
    #[arg(long, value_name = "KEY=BOOL,…")]
    pub(super) runtime_config: Vec<String>,
    /// Enable or disable features: APIResponseCompression=true|false (default true),
    /// CBORServingAndStorage=true|false (default false), ComponentFlagz=true|false (default true),
    /// ComponentStatusz=true|false (default true), WatchList=true|false (default true), AllAlpha,
    /// AllBeta. The other feature gates of kube-apiserver are known. A gate of another component
    /// may have any value and has no effect; any other gate may only have the value that matches
    /// what this server does
    #[arg(long, value_name = "NAME=BOOL,…")]
    pub(super) feature_gates: Vec<String>,
    /// Show the metrics that are hidden because they are deprecated. The value must be the previous
    /// version, 1.35
    #[arg(long, value_name = "VERSION", default_value = "", hide_default_value = true)]
    #[arg(value_parser = hidden_metrics, action = ArgAction::Set)]
    pub(super) show_hidden_metrics_for_version: bool,
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
    pub(super) controllers: Vec<String>,
    /// How long the namespace controller waits before it deletes the content of a namespace that is
    /// being deleted
    #[arg(long, value_name = "DURATION", default_value = "0s", value_parser = duration)]
    pub(super) namespace_deletion_delay: Duration,
    /// How long an event is stored after its last write [default: 1h0m0s]
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub(super) event_ttl: Option<Duration>,
    /// Apply these objects before the server becomes ready: a file of YAML or JSON, or a directory
    /// of such files; may be repeated
    #[arg(long, value_name = "PATH")]
    pub(super) manifests: Vec<PathBuf>,
    /// The ranges from which service IPs are assigned: at most one IPv4 range and one IPv6 range
    #[arg(long, value_name = "CIDR,…", default_value = "10.0.0.0/24")]
    pub(super) service_cluster_ip_range: String,
    /// The range of node ports for services of the types NodePort and LoadBalancer
    #[arg(long, value_name = "FIRST-LAST", default_value_t)]
    pub(super) service_node_port_range: PortRange,
}

impl ApiFlags {
    /// The proxies of outgoing connections.
    pub(super) fn egress(&self) -> anyhow::Result<EgressSelector> {
        match &self.egress_selector_config_file {
            Some(path) => egress::selector(path).context("--egress-selector-config-file"),
            None => Ok(EgressSelector::default()),
        }
    }

    /// The admission plugins with the configuration of their file.
    pub(super) fn admission_plugins(&self) -> anyhow::Result<Plugins> {
        let enabled = || self.enable_admission_plugins.iter().map(String::as_str);
        let disabled = self.disable_admission_plugins.iter().map(String::as_str);
        let plugins = Plugins::parse(enabled(), disabled)?;
        for name in Plugins::without_effect(enabled()) {
            tracing::warn!("--enable-admission-plugins: {name} has no effect");
        }
        let configuration = match &self.admission_control_config_file {
            Some(path) => admission::configuration(path)?,
            None => AdmissionConfiguration::default(),
        };
        Ok(plugins.configured(configuration)?)
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
