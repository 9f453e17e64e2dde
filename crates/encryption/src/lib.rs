//! Encryption at rest, as kube-apiserver v1.36 has it: an EncryptionConfiguration says by which
//! providers the values of which resources are encrypted, and values become the very bytes that upstream
//! stores.
//!
//! Purpose: from a configuration to a [`pintle_store::Transformer`].
//!
//! Must not know: where values are stored, files, requests.
//!
//! Invariants:
//! - The first provider of a resource writes, all of them read. What none of them can read is an error,
//!   never an empty or a plain value.
//! - No error, and no debug output, has a key or a decrypted value in it.

mod cbc;
mod chain;
mod configuration;
mod gcm;
mod kms;
mod measures;
mod providers;
mod resource;
mod secretbox;

pub use configuration::{Configuration, Key, Kms, Provider, ResourceRule};
pub use kms::{Envelope, KeyService, SealedSource, Seed, check_key_id};
pub use measures::{Measures, TRANSFORMATION_BOUNDS};
pub use providers::{Envelopes, Providers};
pub use resource::GroupResource;

/// Why a configuration, or a value, cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The configuration is not one that can be used; in upstream's words.
    #[error("{0}")]
    Configuration(String),
    /// A value cannot be decrypted; in upstream's words.
    #[error("{0}")]
    Undecryptable(&'static str),
    /// A value cannot be encrypted.
    #[error("{0}")]
    Unencryptable(&'static str),
    /// A KMS plugin does not do what it should, or what it was given is no work of its; in upstream's words.
    #[error("{0}")]
    KeyService(String),
}
