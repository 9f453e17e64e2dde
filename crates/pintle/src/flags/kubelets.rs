//! Flags about kubelets.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use pintle_server::KubeletClient;

use super::duration;

#[derive(Args, Debug)]
#[command(next_help_heading = "Kubelets")]
pub(super) struct KubeletFlags {
    /// The types of node addresses to use for connections to kubelets, in order of preference
    #[arg(
        long,
        value_name = "TYPE,…",
        value_delimiter = ',',
        default_value = "Hostname,InternalDNS,InternalIP,ExternalDNS,ExternalIP"
    )]
    kubelet_preferred_address_types: Vec<String>,
    /// The authority that signs the serving certificates of kubelets, as PEM [default: serving
    /// certificates of kubelets are not verified]
    #[arg(long, value_name = "FILE")]
    kubelet_certificate_authority: Option<PathBuf>,
    /// The client certificate for connections to kubelets, as PEM [default: a certificate of the
    /// server's own authority]
    #[arg(long, value_name = "FILE", requires = "kubelet_client_key")]
    kubelet_client_certificate: Option<PathBuf>,
    /// The key of --kubelet-client-certificate, as PEM
    #[arg(long, value_name = "FILE", requires = "kubelet_client_certificate")]
    kubelet_client_key: Option<PathBuf>,
    /// Accepted without effect, as by kube-apiserver
    #[arg(long, value_name = "DURATION", default_value = "5s", value_parser = duration)]
    kubelet_timeout: Duration,
}

impl KubeletFlags {
    /// The connection to kubelets.
    pub(super) fn client(self) -> KubeletClient {
        KubeletClient {
            preferred_address_types: self.kubelet_preferred_address_types,
            certificate_authority: self.kubelet_certificate_authority,
            client_files: self.kubelet_client_certificate.zip(self.kubelet_client_key),
        }
    }
}
