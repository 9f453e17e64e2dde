//! The client certificate of this server for a backend.

use std::path::PathBuf;
use std::sync::Arc;

use crate::pki::{Credentials, RenewedCredentials};
use crate::{Error, trust};

/// A client certificate and its source.
pub(crate) enum Identity {
    /// Issued by the server's own CA.
    Own(RenewedCredentials),
    /// Read from files that flags name.
    Files { certificate: PathBuf, key: PathBuf, flags: [&'static str; 2] },
}

impl Identity {
    /// Uses the files that flags name, or the server's own certificate.
    pub(super) fn new(
        files: Option<&(PathBuf, PathBuf)>,
        flags: [&'static str; 2],
        own: RenewedCredentials,
    ) -> Self {
        match files {
            None => Self::Own(own),
            Some((certificate, key)) => {
                Self::Files { certificate: certificate.clone(), key: key.clone(), flags }
            }
        }
    }

    /// The current certificate and key.
    ///
    /// # Errors
    /// A file cannot be used.
    pub(super) fn credentials(&self) -> Result<Arc<Credentials>, Error> {
        match self {
            Self::Own(credentials) => Ok(credentials.load_full()),
            Self::Files { certificate, key, flags } => {
                Credentials::read(certificate, key, *flags).map(Arc::new)
            }
        }
    }
}

/// Parses credentials for TLS.
pub(super) fn identity(credentials: &Credentials) -> Result<trust::Identity, Error> {
    trust::Identity::read(credentials).map_err(Error::Tls)
}
