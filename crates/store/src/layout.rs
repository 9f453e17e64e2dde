//! How a database that other programs share keeps records.
//!
//! The embedded store keeps values as they are. A database that a kube-apiserver works on, too, has keys
//! and bytes that both must agree on; a store on such a database translates by a [`Layout`].

use std::time::Duration;

use bytes::Bytes;

use crate::{Key, Kind, Revision};

/// Translates keys to paths in a shared database, and values to the bytes that are stored there.
///
/// It is asked for every record that is written, and for every record that another process wrote, also
/// of keys and bytes that nobody expects: it must bound its work, and must not panic.
pub trait Layout: Send + Sync {
    /// The path of a key below the database's prefix: `services/specs/default/a`.
    fn path(&self, key: &Key) -> String;

    /// The key of a path; `None` if no collection has such a path.
    fn key(&self, path: &str) -> Option<Key>;

    /// The bytes to store for a value, which is the body of a [`crate::Template`] that is not filled;
    /// `kind` is that of the write.
    fn encode(&self, key: &Key, value: &[u8], kind: Kind) -> Result<Bytes, Mismatch>;

    /// The value of stored bytes, with its revision where values of the collection contain it.
    fn decode(&self, key: &Key, stored: &[u8], revision: Revision) -> Result<Bytes, Mismatch>;

    /// Whether a key's stored bytes have the form in which [`Layout::encode`] would write them: its version and its
    /// encoding. Bytes that cannot be read are left as they are.
    fn is_current(&self, key: &Key, stored: &[u8]) -> bool;

    /// After how long the database deletes the value of a key by itself.
    fn lifetime(&self, key: &Key) -> Option<Duration>;
}

/// Bytes or a value that a [`Layout`] cannot translate.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{} in {} cannot be translated: {why}", key.item, key.collection)]
pub struct Mismatch {
    /// Whose bytes or value.
    pub key: Key,
    /// What is wrong with it.
    pub why: String,
}
