//! Configuration of serving certificates.

use std::path::PathBuf;

/// A serving certificate for some host names: `--tls-sni-cert-key`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedServingFiles {
    /// The certificate chain, as PEM.
    pub certificate: PathBuf,
    /// Its key, as PEM.
    pub key: PathBuf,
    /// Host names (with `*` as the first label for a domain) or IP addresses; if empty, the names
    /// of the certificate.
    pub names: Vec<String>,
}
