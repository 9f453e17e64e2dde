//! Who this server is to a backend.

use std::path::PathBuf;
use std::sync::Arc;

use crate::pki::{Credentials, RenewedCredentials};
use crate::{Error, trust};

/// A certificate and its key, and where they come from.
pub(crate) enum Identity {
    /// They are made by an authority of the server's own.
    Own(RenewedCredentials),
    /// They are in files, which flags name.
    Files { certificate: PathBuf, key: PathBuf, flags: [&'static str; 2] },
}

impl Identity {
    /// Files that flags name, or the server's own.
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

    /// The certificate and the key of now.
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

/// Credentials as TLS needs them.
pub(super) fn identity(credentials: &Credentials) -> Result<trust::Identity, Error> {
    trust::Identity::read(credentials).map_err(Error::Tls)
}
