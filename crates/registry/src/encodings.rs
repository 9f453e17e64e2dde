//! Further encodings of committed objects. Each is computed on first use, cached with its object,
//! and shared by all readers and watchers (law 3).
//!
//! It must not know which requests need which encoding.
//!
//! Invariants:
//! - The encodings of all objects together take no more memory than the [`EncodingCache`] allows.
//! - No lock is held while another is taken.

pub(crate) mod cache;
mod content;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use once_cell::race::OnceBox;
use parking_lot::Mutex;
use pintle_store::Kind;
use pintle_value::Value;

use crate::table::{self, Printer, UnixSeconds};
use crate::{Object, Resource};
pub(crate) use cache::EncodingCache;
use content::Content;

/// The encodings of an object other than its stored JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extra {
    /// JSON of a version that is not the stored one.
    Json,
    /// Kubernetes' Protobuf.
    Protobuf,
    /// A PartialObjectMetadata in Protobuf.
    ProtobufMetadata,
    /// CBOR.
    Cbor,
    /// A PartialObjectMetadata in CBOR.
    CborMetadata,
    /// YAML. The object as an item of a list differs: its long lines are folded at another column.
    Yaml,
    /// YAML, as an item of a list.
    YamlItem,
    /// A PartialObjectMetadata in YAML.
    YamlMetadata,
    /// A PartialObjectMetadata in YAML, as an item of a list.
    YamlMetadataItem,
    /// A row of a Table.
    Row,
}

impl Extra {
    /// The encoding as an item of a list.
    #[must_use]
    pub const fn of_item(self) -> Self {
        match self {
            Self::Yaml => Self::YamlItem,
            Self::YamlMetadata => Self::YamlMetadataItem,
            other => other,
        }
    }

    /// Whether watches can be in this encoding.
    const fn is_watched(self) -> bool {
        match self {
            Self::Json
            | Self::Protobuf
            | Self::ProtobufMetadata
            | Self::Cbor
            | Self::CborMetadata => true,
            Self::Yaml
            | Self::YamlItem
            | Self::YamlMetadata
            | Self::YamlMetadataItem
            | Self::Row => false,
        }
    }
}

/// An encoding of an object in a resource's version.
#[derive(Debug)]
pub struct Encoded {
    /// The number of the resource.
    resource: u64,
    extra: Extra,
    kind: Kind,
    content: Content,
}

impl Encoded {
    /// Returns the object as a document of its own.
    pub fn document(&self) -> Bytes {
        self.content.bytes.slice(self.content.document.clone())
    }

    /// Returns the object as an item of a list, in encodings where the item is one slice of the
    /// document, as in Protobuf. In others, [`Encoded::write_item`] writes the item.
    pub fn item(&self) -> Bytes {
        self.content.bytes.slice(self.content.item.clone())
    }

    /// Writes the object as an item of a list.
    pub fn write_item(&self, out: &mut Vec<u8>) {
        let Content { bytes, frame, item, .. } = &self.content;
        out.extend_from_slice(&bytes[*frame..]);
        out.extend_from_slice(&bytes[item.clone()]);
    }

    /// Writes a row of a Table for the time of a request, without its object and its end.
    pub fn write_row(&self, now: UnixSeconds, out: &mut Vec<u8>) {
        table::write_at(&self.content.bytes, &self.content.ages, now, out);
    }

    /// Returns the watch frame of the write that made this version, if the write has the event type
    /// `kind` and watches can be in this encoding.
    pub fn frame(&self, kind: Kind) -> Option<Bytes> {
        let frame = || self.content.bytes.slice(..self.content.frame);
        (kind == self.kind && self.extra.is_watched()).then(frame)
    }

    /// Makes the row of a Table from an object.
    pub fn row(printer: &dyn Printer, object: &Value) -> Self {
        let content = Content::row(printer, object);
        Self { resource: 0, extra: Extra::Row, kind: Kind::Created, content }
    }

    fn of(resource: &Resource, object: &Object, extra: Extra) -> Self {
        let kind = object.kind();
        let content = Content::new(resource, object, extra);
        Self { resource: resource.number, extra, kind, content }
    }

    fn is(&self, resource: u64, extra: Extra) -> bool {
        self.resource == resource && self.extra == extra
    }

    /// Returns the memory of the encoding in bytes, with the structures that refer to it.
    fn size(&self) -> usize {
        const OVERHEAD: usize =
            size_of::<Encoded>() + size_of::<Arc<Encoded>>() + cache::ENTRY_BYTES;
        OVERHEAD + self.content.bytes.len() + size_of_val(&*self.content.ages)
    }
}

/// Returns the type of a write's watch event.
pub const fn event_type(kind: Kind) -> &'static str {
    match kind {
        Kind::Created => "ADDED",
        Kind::Updated => "MODIFIED",
        Kind::Deleted => "DELETED",
    }
}

/// The cached encodings of one version of an object. Most objects have no further encoding, so the
/// list is allocated for the first one, and its cell is one word. Copies share the list.
#[derive(Debug, Default)]
pub(crate) struct Encodings(OnceBox<Arc<List>>);

/// A list of encodings. The cache refers to it, because a reference to the object would keep the
/// memory of its JSON.
#[derive(Debug, Default)]
struct List {
    encoded: Mutex<Vec<Arc<Encoded>>>,
    /// The length of the object as a Protobuf list item, once it was encoded; 0 if unknown. A list
    /// writes the length before the item, and the encoding itself may have been evicted.
    message_len: AtomicUsize,
}

impl Clone for Encodings {
    fn clone(&self) -> Self {
        let copy = OnceBox::new();
        if let Some(list) = self.0.get() {
            let _ = copy.set(Box::new(list.clone()));
        }
        Self(copy)
    }
}

impl Encodings {
    /// Returns the cached encoding, or a new one that `make` makes; true if it is new. Concurrent
    /// callers wait, so that it is made once.
    fn get_or_make(
        &self,
        resource: u64,
        extra: Extra,
        make: impl FnOnce() -> Encoded,
    ) -> (Arc<Encoded>, bool) {
        let mut cached = self.list().encoded.lock();
        if let Some(encoded) = cached.iter().find(|encoded| encoded.is(resource, extra)) {
            return (encoded.clone(), false);
        }
        let encoded = Arc::new(make());
        cached.reserve_exact(1);
        cached.push(encoded.clone());
        (encoded, true)
    }

    /// Returns the cached encoding; `None` also while one is being made, so that threads that serve
    /// connections do not wait for it.
    fn cached(&self, resource: u64, extra: Extra) -> Option<Arc<Encoded>> {
        let cached = self.0.get()?.encoded.try_lock()?;
        cached.iter().find(|encoded| encoded.is(resource, extra)).cloned()
    }

    fn message_len(&self) -> Option<usize> {
        let len = self.0.get()?.message_len.load(Ordering::Relaxed);
        Some(len).filter(|len| *len > 0)
    }

    /// The list of the encodings.
    fn list(&self) -> &Arc<List> {
        self.0.get_or_init(Box::default)
    }
}

impl Resource {
    /// Returns the object in this resource's version and in a further encoding.
    pub fn encoded(&self, object: &Arc<Object>, extra: Extra) -> Arc<Encoded> {
        let make = || Encoded::of(self, object, extra);
        let (encoded, is_new) = object.encodings.get_or_make(self.number, extra, make);
        if is_new {
            if extra == Extra::Protobuf && self.is_stored_version() {
                let len = encoded.content.item.len();
                object.encodings.list().message_len.store(len, Ordering::Relaxed);
            }
            self.encoding_cache.insert(object.encodings.list(), &encoded);
        }
        encoded
    }

    /// Whether an encoding of an object is cached.
    pub fn has_encoded(&self, object: &Object, extra: Extra) -> bool {
        object.encodings.cached(self.number, extra).is_some()
    }

    /// Returns the length of an object as an item of a list ([`Encoded::item`]), if known. The
    /// length of a Protobuf message stays known after its encoding was evicted.
    pub fn item_len(&self, object: &Object, extra: Extra) -> Option<usize> {
        let of_cached =
            || object.encodings.cached(self.number, extra).map(|e| e.content.item.len());
        if extra == Extra::Protobuf && self.is_stored_version() {
            return object.encodings.message_len().or_else(of_cached);
        }
        of_cached()
    }
}

#[cfg(test)]
mod tests;
