//! The certificates that the listener shows.

use std::path::PathBuf;

/// A serving certificate for names that clients ask for: `--tls-sni-cert-key`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedServingFiles {
    /// The certificate with those behind it, as PEM.
    pub certificate: PathBuf,
    /// Its key, as PEM.
    pub key: PathBuf,
    /// Names of hosts, `*` in place of the first label for all of a domain, or addresses of the server; where
    /// there are none, the names of the certificate count.
    pub names: Vec<String>,
}
