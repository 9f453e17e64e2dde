//! What becomes of values on their way to a medium, and back: encryption at rest.
//!
//! Followers and readers have plain values; only the medium has the others.

use std::fmt::Debug;

use bytes::Bytes;

use crate::Key;

/// Turns values into what is stored of them, and back.
///
/// It is asked for every value that is written or read, from any thread, and must not panic whatever bytes
/// it is given.
pub trait Transformer: Debug + Send + Sync {
    /// What is stored of a value at a path, which is authenticated where the method of encryption can.
    fn to_storage(&self, key: &Key, path: &[u8], value: Bytes) -> Result<Bytes, TransformError>;

    /// The value of what is stored at a path.
    fn to_value(
        &self,
        key: &Key,
        path: &[u8],
        stored: Bytes,
    ) -> Result<Transformed, TransformError>;

    /// Differs, with near certainty, from that of a transformer that writes with other keys or methods.
    fn fingerprint(&self) -> u64;
}

/// A value as it was before it was stored.
#[derive(Clone, PartialEq, Eq)]
pub struct Transformed {
    /// The value.
    pub value: Bytes,
    /// Whether it would be stored with another method or key now.
    pub is_stale: bool,
}

/// What a record has instead of a value that cannot be decrypted: the reason, which is not JSON, so that
/// nobody takes it for an object. The stored bytes will not do: they may be a value that is not encrypted but
/// has to be.
pub fn undecryptable(why: &TransformError) -> Bytes {
    format!("{UNDECRYPTABLE}{why}").into()
}

/// Why the value of a record could not be decrypted; `None` where it could.
pub fn why_undecryptable(value: &[u8]) -> Option<&str> {
    std::str::from_utf8(value.strip_prefix(UNDECRYPTABLE.as_bytes())?).ok()
}

const UNDECRYPTABLE: &str = "undecryptable: ";

/// Why a value cannot be stored, or read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct TransformError(pub String);
