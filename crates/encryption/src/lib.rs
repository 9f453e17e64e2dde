//! Encryption at rest, as kube-apiserver v1.36 does it: an EncryptionConfiguration names the
//! providers that encrypt the values of each resource. The stored bytes are exactly upstream's.
//!
//! Makes a [`pintle_store::Transformer`] of a configuration. It must not know where values are
//! stored, files, or requests.
//!
//! Invariants:
//! - The first provider of a resource writes; all of them read. A value that none of them can read
//!   is an error, never an empty or a plain value.
//! - No error and no debug output contains a key or a decrypted value.

mod cbc;
mod chain;
mod configuration;
mod gcm;
mod kms;
mod measures;
mod providers;
mod random;
mod resource;
mod secretbox;

pub use configuration::{Configuration, Key, Kms, Provider, ResourceRule};
pub use kms::{Direction, Envelope, KeyService, SealedSource, Seed, check_key_id};
pub use measures::{Measures, TRANSFORMATION_BOUNDS};
pub use providers::{Envelopes, Providers};
pub use resource::GroupResource;

/// Why a configuration or a value cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The configuration is invalid; the text is upstream's, if upstream has one.
    #[error("{0}")]
    Configuration(String),
    /// The value cannot be decrypted; the text is upstream's, if upstream has one.
    #[error("{0}")]
    Undecryptable(&'static str),
    /// The value cannot be encrypted.
    #[error("{0}")]
    Unencryptable(&'static str),
    /// A KMS plugin failed, returned invalid data, or was given data that is not its own; the text
    /// is upstream's, if upstream has one.
    #[error("{0}")]
    KeyService(String),
}

impl Error {
    const TOO_SHORT: Self =
        Self::Undecryptable("the stored data was shorter than the required size");
}
