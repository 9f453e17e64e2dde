//! How kube-apiserver v1.36 keeps objects in etcd: its keys, and its bytes, both ways.
//!
//! Purpose: a Pintle and a kube-apiserver on one etcd read what the other wrote, and neither rewrites
//! what it would not change. So an object is stored as the same bytes that upstream stores.
//!
//! What is particular to a kind (prefix, encoding, stored version) stands in its definition; here is what
//! all have in common. Custom resources need no definition: they are JSON under their group and plural.
//!
//! Must not know: etcd, transactions, requests.
//!
//! Invariants:
//! - `key(path(k)) == k` and `path(key(p)) == p`: no two keys have one path.
//! - Nothing that a path or bytes say makes anything panic, or nests deeper than objects may.

mod bytes;
mod custom;
mod paths;

use std::sync::Arc;
use std::time::Duration;

use ::bytes::Bytes;
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

/// The encoding of objects of built-in kinds, except those with an encoding of their own. Either is read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MediaType {
    /// `application/vnd.kubernetes.protobuf`
    #[default]
    Protobuf,
    /// `application/json`
    Json,
}

/// How a built-in kind is stored.
struct Kind {
    collection: Arc<str>,
    /// Its stored version, in which Pintle keeps it, too.
    stored: ResourceDefinition,
    /// All its versions: another release may have stored objects in any of them.
    versions: Vec<ResourceDefinition>,
}

/// How long upstream keeps the address of an API server that does not renew it.
const SERVER_LEASE: Duration = Duration::from_secs(15);

impl Upstream {
    /// The layout that writes objects with an encoding, and events with a lifetime.
    pub fn new(media_type: MediaType, event_ttl: Duration) -> Self {
        Self { paths: Paths::of(pintle_kinds::stored()), media_type, event_ttl }
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
