//! The storage layout of kube-apiserver v1.36 in etcd: converts keys and bytes in both directions.
//!
//! With it, a Pintle and a kube-apiserver on the same etcd read each other's objects, and neither
//! rewrites unchanged objects. For this, the layout stores an object as the same bytes as upstream.
//!
//! Facts about a kind (prefix, encoding, stored version) are in its definition; this crate has what
//! all kinds share. Custom resources need no definition: they are JSON under their group and
//! plural.
//!
//! Must not know: etcd, transactions, requests.
//!
//! Invariants:
//! - `key(path(k)) == k` and `path(key(p)) == p`: no two keys have the same path.
//! - No path and no bytes can cause a panic, or a result that is nested deeper than objects may be.

mod bytes;
mod custom;
mod paths;

use std::sync::Arc;
use std::time::Duration;

use ::bytes::Bytes;
use pintle_kinds::RuntimeConfig;
use pintle_registry::ResourceDefinition;
use pintle_store::{Key, Kind as Write, Layout, Mismatch, Revision};
use pintle_value::cbor;

use paths::Paths;

/// The layout of kube-apiserver v1.36.
pub struct Upstream {
    paths: Paths,
    media_type: MediaType,
    event_ttl: Duration,
}

/// The encoding in which objects of built-in kinds are written, except kinds with an encoding of
/// their own. Objects in both encodings can be read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MediaType {
    /// `application/vnd.kubernetes.protobuf`
    #[default]
    Protobuf,
    /// `application/json`
    Json,
}

/// The storage of a built-in kind.
struct Kind {
    collection: Arc<str>,
    /// The kind's stored version, which Pintle's own store uses, too.
    stored: ResourceDefinition,
    /// The versions of the kind that this server knows. Another release may have stored an object
    /// in any of them, or in a version that is no longer served.
    versions: Vec<ResourceDefinition>,
}

/// The lifetime of the address of an API server that does not renew it, as in upstream.
const SERVER_LEASE: Duration = Duration::from_secs(15);

impl Upstream {
    /// A layout of the kinds that a server with this configuration stores. It writes objects with
    /// this encoding, and events with this lifetime.
    pub fn new(config: &RuntimeConfig, media_type: MediaType, event_ttl: Duration) -> Self {
        Self { paths: Paths::of(pintle_kinds::stored(config)), media_type, event_ttl }
    }
}

impl Layout for Upstream {
    fn path(&self, key: &Key) -> String {
        self.paths.path(key)
    }

    fn key(&self, path: &str) -> Option<Key> {
        self.paths.key(path)
    }

    fn encode(&self, key: &Key, value: &[u8], write: Write) -> Result<Bytes, Mismatch> {
        let encoded = match self.paths.kind(&key.collection) {
            Some(kind) => kind.encode(value, self.media_type, write),
            None if paths::is_custom(&key.collection) => custom::encode(value),
            None => return Ok(Bytes::copy_from_slice(value)),
        };
        encoded.map(Bytes::from).map_err(|why| Mismatch { key: key.clone(), why })
    }

    fn decode(&self, key: &Key, stored: &[u8], revision: Revision) -> Result<Bytes, Mismatch> {
        let decoded = match self.paths.kind(&key.collection) {
            Some(kind) => kind.decode(stored, revision),
            None if paths::is_custom(&key.collection) => custom::decode(stored, revision),
            None => return Ok(Bytes::copy_from_slice(stored)),
        };
        decoded.map(Bytes::from).map_err(|why| Mismatch { key: key.clone(), why })
    }

    fn is_current(&self, key: &Key, stored: &[u8]) -> bool {
        match self.paths.kind(&key.collection) {
            Some(kind) => kind.is_current(stored, self.media_type),
            None => !(paths::is_custom(&key.collection) && stored.starts_with(cbor::MAGIC)),
        }
    }

    fn lifetime(&self, key: &Key) -> Option<Duration> {
        match &*key.collection {
            "events" => Some(self.event_ttl),
            "masterleases" | "peerserverleases" => Some(SERVER_LEASE),
            _ => None,
        }
    }
}
