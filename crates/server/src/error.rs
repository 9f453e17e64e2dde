//! Why a server does not start. Each says what to do about it.

use std::net::SocketAddr;
use std::path::PathBuf;

/// Why a server does not start.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The address is taken or not this machine's.
    #[error(
        "cannot listen on {address}: {why}; choose another --secure-port (0 takes a free one) or \
         --bind-address"
    )]
    Listen {
        /// The address.
        address: SocketAddr,
        /// What the system said.
        why: std::io::Error,
    },
    /// The system gives no thread for the server's own work.
    #[error("cannot start a thread: {0}")]
    Thread(std::io::Error),
    /// A file or directory cannot be read or written.
    #[error("cannot {action} {path}: {why}")]
    File {
        /// `read`, `write`, `create the directory`.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// What the system said.
        why: std::io::Error,
    },
    /// A certificate or key is not what it should be.
    #[error("{path}: {reason}")]
    Certificate {
        /// The file.
        path: PathBuf,
        /// What is wrong, and what to do.
        reason: String,
    },
    /// The objects of a file cannot be read or applied.
    #[error("{path}: {reason}")]
    Manifest {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// A certificate could not be made.
    #[error("cannot make a certificate: {0}")]
    MakeCertificate(String),
    /// TLS does not take what it was given.
    #[error("cannot set up TLS: {0}")]
    Tls(String),
    /// A flag's value makes no sense.
    #[error("--{flag}: {reason}")]
    Flag {
        /// The flag.
        flag: &'static str,
        /// What is wrong, and what to do.
        reason: String,
    },
    /// What a flag names cannot be used.
    #[error("--{flag}: {error}")]
    Named {
        /// The flag.
        flag: &'static str,
        /// What is wrong, and what to do.
        error: Box<Self>,
    },
    /// A flag of services makes no sense.
    #[error(transparent)]
    Effects(#[from] pintle_effects::Error),
    /// The store does not open: what its medium said.
    #[error(
        "cannot open the store in {path}: {reason}; put back a copy of the directory, choose another \
         --data-dir, or remove the directory to begin without any objects"
    )]
    OpenStore {
        /// The store's directory.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// The store does not open, or cannot be read.
    #[error(transparent)]
    Store(#[from] pintle_store::Error),
    /// etcd cannot be used, or does not answer.
    #[error("--etcd-servers: {0}")]
    Etcd(#[from] pintle_etcd::Error),
    /// An object that must be there from the beginning could not be made.
    #[error("cannot make an object that must be there from the beginning: {reason}")]
    Bootstrap {
        /// Which, and why.
        reason: String,
    },
    /// An object that the configuration names could not be applied.
    #[error("cannot apply {object}: {reason}")]
    Apply {
        /// Which.
        object: String,
        /// Why.
        reason: String,
    },
}

impl Error {
    /// The error of a file or directory that a flag names.
    pub(crate) fn of(self, flag: &'static str) -> Self {
        Self::Named { flag, error: Box::new(self) }
    }
}
