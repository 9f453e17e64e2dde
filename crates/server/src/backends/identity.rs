//! Who this server is to a backend.

use std::path::PathBuf;

use crate::pki::{self, Credentials};
use crate::{Error, trust};

/// A certificate and its key, and where they come from.
pub(crate) enum Identity {
    /// They were made by an authority of the server's own.
    Own(Credentials),
    /// They are in files, which flags name.
    Files { certificate: PathBuf, key: PathBuf, flags: [&'static str; 2] },
}

impl Identity {
    /// Files that flags name, or the server's own.
    pub(super) fn new(
        files: Option<&(PathBuf, PathBuf)>,
        flags: [&'static str; 2],
        own: Credentials,
    ) -> Self {
        match files {
            None => Self::Own(own),
            Some((certificate, key)) => {
                Self::Files { certificate: certificate.clone(), key: key.clone(), flags }
            }
        }
    }

    /// Whether it may change.
    pub(super) const fn is_in_files(&self) -> bool {
        matches!(self, Self::Files { .. })
    }

    /// As TLS needs it.
    pub(super) fn read(&self) -> Result<trust::Identity, Error> {
        let credentials = match self {
            Self::Own(credentials) => credentials.clone(),
            Self::Files { certificate, key, flags: [certificate_flag, key_flag] } => Credentials {
                certificate_pem: pki::read(certificate)
                    .map_err(|error| error.of(certificate_flag))?,
                key_pem: pki::read(key).map_err(|error| error.of(key_flag))?,
            },
        };
        trust::Identity::read(&credentials).map_err(Error::Tls)
    }
}
