//! The layout of a shared database: its keys and values.
//!
//! The embedded store stores values as they are. A database that a kube-apiserver uses, too, has
//! keys and bytes on which both must agree; a store on such a database translates them by a
//! [`Layout`].

use std::time::Duration;

use bytes::Bytes;

use crate::{Key, Kind, Revision};

/// Translates keys to paths in a shared database, and values to the bytes that are stored there.
///
/// It is called for every record that is written, and for every record that another process wrote,
/// with arbitrary keys and bytes: it must bound its work and must not panic.
pub trait Layout: Send + Sync {
    /// Returns the path of a key below the database's prefix: `services/specs/default/a`.
    fn path(&self, key: &Key) -> String;

    /// Returns the key of a path; `None` if no collection has such a path.
    fn key(&self, path: &str) -> Option<Key>;

    /// Encodes a value for storage; the value is the body of an unfilled [`crate::Template`], and
    /// `kind` is that of the write.
    fn encode(&self, key: &Key, value: &[u8], kind: Kind) -> Result<Bytes, Mismatch>;

    /// Decodes stored bytes to a value. In collections whose values contain a revision, it contains
    /// `revision`.
    fn decode(&self, key: &Key, stored: &[u8], revision: Revision) -> Result<Bytes, Mismatch>;

    /// Whether a key's stored bytes have the form in which [`Layout::encode`] would write them: its
    /// version and its encoding. Bytes that cannot be decoded are left as they are.
    fn is_current(&self, key: &Key, stored: &[u8]) -> bool;

    /// Returns the time after which the database deletes a key's value by itself.
    fn lifetime(&self, key: &Key) -> Option<Duration>;
}

/// The error of bytes or of a value that a [`Layout`] cannot translate.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{} in {} cannot be translated: {why}", key.item, key.collection)]
pub struct Mismatch {
    /// The key of the bytes or the value.
    pub key: Key,
    /// Why they cannot be translated.
    pub why: String,
}
