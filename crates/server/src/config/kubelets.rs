//! Configuration of the client of kubelets.

use std::path::PathBuf;

/// The client of kubelets: `--kubelet-…`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KubeletClient {
    /// The types of node addresses, in order of preference.
    pub preferred_address_types: Vec<String>,
    /// The CA of kubelets' serving certificates. Without one, kubelets' certificates are not
    /// verified, as in upstream.
    pub certificate_authority: Option<PathBuf>,
    /// A client certificate and its key, instead of one from the server's own CA.
    pub client_files: Option<(PathBuf, PathBuf)>,
}

impl Default for KubeletClient {
    fn default() -> Self {
        let types = ["Hostname", "InternalDNS", "InternalIP", "ExternalDNS", "ExternalIP"];
        Self {
            preferred_address_types: types.map(str::to_owned).to_vec(),
            certificate_authority: None,
            client_files: None,
        }
    }
}
