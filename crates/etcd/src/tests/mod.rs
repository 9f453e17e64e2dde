//! Tests of the whole store.
//!
//! - `campaign`: stores on a `model` of etcd with random faults.
//! - `faults`: single faults of the model, in a fixed order.
//! - `server`: real etcd servers, if etcd is installed.
//! - `conformance`: the suite of `pintle-store`, on a real server.
//! - `store`: behaviour beyond the suite.
//! - `tls`: certificates on both sides.

mod campaign;
mod conformance;
mod faults;
mod model;
mod server;
mod store;
mod tls;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use pintle_store::{Key, Kind, Layout, Mismatch, Revision};

/// A layout with the path `collection/item`. Values are bytes; the revision is set in `"rv":""`.
#[derive(Default)]
struct Plain {
    /// The lifetime of all keys of the collection `fleeting`.
    lifetime: Option<Duration>,
}

const GAP: &str = "\"rv\":\"";

impl Layout for Plain {
    fn path(&self, key: &Key) -> String {
        format!("{}/{}", key.collection, key.item)
    }

    fn key(&self, path: &str) -> Option<Key> {
        let (collection, item) = path.split_once('/')?;
        Some(Key { collection: collection.into(), item: item.into() })
    }

    fn encode(&self, key: &Key, value: &[u8], _: Kind) -> Result<Bytes, Mismatch> {
        let why = || Mismatch { key: key.clone(), why: "it is unwritable".to_owned() };
        if value == b"unwritable" { Err(why()) } else { Ok(Bytes::copy_from_slice(value)) }
    }

    fn decode(&self, key: &Key, stored: &[u8], revision: Revision) -> Result<Bytes, Mismatch> {
        let text = std::str::from_utf8(stored)
            .map_err(|why| Mismatch { key: key.clone(), why: why.to_string() })?;
        Ok(match text.find(GAP) {
            Some(at) => {
                let (before, after) = text.split_at(at + GAP.len());
                format!("{before}{revision}{after}").into()
            }
            None => Bytes::copy_from_slice(stored),
        })
    }

    fn is_current(&self, _: &Key, _: &[u8]) -> bool {
        true
    }

    fn lifetime(&self, key: &Key) -> Option<Duration> {
        self.lifetime.filter(|_| &*key.collection == "fleeting")
    }
}

pub(crate) fn plain() -> Arc<dyn Layout> {
    Arc::new(Plain::default())
}
