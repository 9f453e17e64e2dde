//! Flags about kubelets.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use pintle_server::KubeletClient;

use super::duration;

#[derive(Args, Debug)]
#[command(next_help_heading = "Kubelets")]
pub(super) struct KubeletFlags {
    /// The types of a node's addresses by which its kubelet is reached, the best one first
    #[arg(
        long,
        value_name = "TYPE,…",
        value_delimiter = ',',
        default_value = "Hostname,InternalDNS,InternalIP,ExternalDNS,ExternalIP"
    )]
    kubelet_preferred_address_types: Vec<String>,
    /// The authority of kubelets' serving certificates, as PEM [default: anyone is believed to be the
    /// kubelet that is meant]
    #[arg(long, value_name = "FILE")]
    kubelet_certificate_authority: Option<PathBuf>,
    /// A client certificate for kubelets, as PEM [default: one of our own authority]
    #[arg(long, value_name = "FILE", requires = "kubelet_client_key")]
    kubelet_client_certificate: Option<PathBuf>,
    /// The key of --kubelet-client-certificate, as PEM
    #[arg(long, value_name = "FILE", requires = "kubelet_client_certificate")]
    kubelet_client_key: Option<PathBuf>,
    /// Accepted and without effect, as kube-apiserver has it
    #[arg(long, value_name = "DURATION", default_value = "5s", value_parser = duration)]
    kubelet_timeout: Duration,
}

impl KubeletFlags {
    /// How kubelets are reached.
    pub(super) fn client(self) -> KubeletClient {
        KubeletClient {
            preferred_address_types: self.kubelet_preferred_address_types,
            certificate_authority: self.kubelet_certificate_authority,
            client_files: self.kubelet_client_certificate.zip(self.kubelet_client_key),
        }
    }
}
