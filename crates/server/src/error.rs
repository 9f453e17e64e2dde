//! Errors at start. If there is a remedy, the message names it.

use std::net::SocketAddr;
use std::path::PathBuf;

/// Why a server does not start.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The address is in use or not this machine's.
    #[error(
        "cannot listen on {address}: {why}; choose another --secure-port (0 takes a free one) or \
         --bind-address"
    )]
    Listen {
        /// The address.
        address: SocketAddr,
        /// The error of the operating system.
        why: std::io::Error,
    },
    /// A thread cannot be started.
    #[error("cannot start a thread: {0}")]
    Thread(std::io::Error),
    /// A file or directory cannot be read or written.
    #[error("cannot {action} {path}: {why}")]
    File {
        /// `read`, `write`, `create the directory`.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// The error of the operating system.
        why: std::io::Error,
    },
    /// A file is where a directory must be.
    #[error("{path} is a file, not a directory; choose another directory, or move the file away")]
    NotDirectory {
        /// The file.
        path: PathBuf,
    },
    /// A certificate or key is invalid.
    #[error("{path}: {reason}")]
    Certificate {
        /// The file.
        path: PathBuf,
        /// The reason and a remedy.
        reason: String,
    },
    /// The objects of a file cannot be read or applied.
    #[error("{path}: {reason}")]
    Manifest {
        /// The file.
        path: PathBuf,
        /// The reason.
        reason: String,
    },
    /// A certificate could not be made.
    #[error("cannot make a certificate: {0}")]
    MakeCertificate(String),
    /// TLS cannot be configured.
    #[error("cannot set up TLS: {0}")]
    Tls(String),
    /// A flag's value is invalid.
    #[error("--{flag}: {reason}")]
    Flag {
        /// The flag.
        flag: &'static str,
        /// The reason and a remedy.
        reason: String,
    },
    /// The file that a flag names cannot be used.
    #[error("--{flag}: {error}")]
    Named {
        /// The flag.
        flag: &'static str,
        /// The reason and a remedy.
        error: Box<Self>,
    },
    /// A flag of services is invalid.
    #[error(transparent)]
    Effects(#[from] pintle_effects::Error),
    /// The store cannot be opened.
    #[error(
        "cannot open the store in {path}: {reason}; put back a copy of the directory, or restore a \
         snapshot into another --data-dir; an empty one begins without any objects"
    )]
    OpenStore {
        /// The store's directory.
        path: PathBuf,
        /// The reason.
        reason: String,
    },
    /// The store cannot be opened or read.
    #[error(transparent)]
    Store(#[from] pintle_store::Error),
    /// A bootstrap object cannot be created.
    #[error("cannot create or update a bootstrap object: {reason}")]
    Bootstrap {
        /// The object and the reason.
        reason: String,
    },
    /// An object of the configuration cannot be applied.
    #[error("cannot apply {object}: {reason}")]
    Apply {
        /// The object.
        object: String,
        /// The reason.
        reason: String,
    },
}

impl Error {
    /// Adds the name of the flag that names the file or directory.
    pub(crate) fn of(self, flag: &'static str) -> Self {
        Self::Named { flag, error: Box::new(self) }
    }
}
