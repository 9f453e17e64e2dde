//! What can be told a server about kubelets.

use std::path::PathBuf;

/// How kubelets are reached: `--kubelet-…`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KubeletClient {
    /// The types of a node's addresses, the one that is tried first before others.
    pub preferred_address_types: Vec<String>,
    /// The authority of kubelets' serving certificates; where there is none, anyone is believed to be the
    /// kubelet that is meant, as upstream has it.
    pub certificate_authority: Option<PathBuf>,
    /// A client certificate and its key, instead of one of the server's own authority.
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
