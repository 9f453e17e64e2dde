//! Encryption at rest: the conversion of values for a medium.
//!
//! Followers and readers have plain values; only the medium has encrypted ones.

use std::fmt::Debug;

use bytes::Bytes;

use crate::Key;

/// Encrypts values for storage and decrypts them.
///
/// It is called for every value that is written or read, from any thread, and must not panic on any
/// bytes.
pub trait Transformer: Debug + Send + Sync {
    /// Encrypts a value at a path, which is authenticated if the method supports it.
    fn to_storage(&self, key: &Key, path: &[u8], value: Bytes) -> Result<Bytes, TransformError>;

    /// Decrypts a value that is stored at a path.
    fn to_value(
        &self,
        key: &Key,
        path: &[u8],
        stored: Bytes,
    ) -> Result<Transformed, TransformError>;

    /// Returns a number that differs, almost certainly, for transformers with other keys or
    /// methods.
    fn fingerprint(&self) -> u64;
}

/// A decrypted value.
#[derive(Clone, PartialEq, Eq)]
pub struct Transformed {
    /// The value.
    pub value: Bytes,
    /// Whether it would be stored with another method or key now.
    pub is_stale: bool,
}

/// Makes the placeholder for a value that cannot be decrypted: the reason, which is not JSON, so
/// that it is never taken for an object. The stored bytes cannot stand in: they may be a plain
/// value that has to be encrypted.
pub fn undecryptable(why: &TransformError) -> Bytes {
    format!("{UNDECRYPTABLE}{why}").into()
}

/// Returns why the value of a record could not be decrypted; `None` if it is no placeholder.
pub fn why_undecryptable(value: &[u8]) -> Option<&str> {
    std::str::from_utf8(value.strip_prefix(UNDECRYPTABLE.as_bytes())?).ok()
}

const UNDECRYPTABLE: &str = "undecryptable: ";

/// The error of a value that cannot be encrypted or decrypted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct TransformError(pub String);
