//! Further encodings of committed objects. Each is made on first use, cached with its object, and
//! shared by all readers and watchers (law 3).
//!
//! It must not know who asks for which encoding, and why.
//!
//! Invariants:
//! - The encodings of all objects together take no more memory than the [`EncodingCache`] allows.
//! - No lock is held while another is taken.

pub(crate) mod cache;

use std::ops::Range;
use std::sync::{Arc, OnceLock, Weak};

use bytes::Bytes;
use parking_lot::Mutex;
use pintle_schema::{encode, protobuf};
use pintle_store::Kind;
use pintle_value::{Value, cbor, json, yaml};

pub(crate) use cache::EncodingCache;

use crate::object::{FRAME_TAIL, frame_head};
use crate::table::{self, Age, Printed, Printer, UnixSeconds};
use crate::{Object, Resource};

/// The encodings of an object besides its stored JSON.
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
    /// YAML. As an item of a list it differs, as long lines are folded at another column.
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

/// The bytes of an encoding: the watch frame of the write that made the object's version, with the
/// object in it. In encodings without watches, only the object.
#[derive(Debug, Default)]
struct Content {
    bytes: Bytes,
    /// The length of the frame, or of the object without one. The bytes after it are the beginning
    /// of the object as an item of a list, where that differs from its beginning as a document.
    frame: usize,
    /// The object as a document of its own.
    document: Range<usize>,
    /// The rest of the object as an item of a list, after its beginning.
    item: Range<usize>,
    /// The cells of a row that depend on the time of the request.
    ages: Box<[Age]>,
}

impl Encoded {
    /// Returns the object as a document of its own.
    pub fn document(&self) -> Bytes {
        self.content.bytes.slice(self.content.document.clone())
    }

    /// Returns the object as an item of a list, in encodings where the item begins as the document
    /// does: Protobuf messages.
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

    /// Returns the watch frame of the write that made this version, if it has the event type
    /// `kind`.
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
        let content = match extra {
            Extra::Json => Content::json(resource, object),
            Extra::Protobuf => Content::message(kind, |out| {
                protobuf::encode(&resource.schema, resource.ty, &shown(resource, object), out)
            }),
            Extra::ProtobufMetadata => Content::message(kind, |out| {
                let schema = pintle_schema::builtin();
                let ty = schema.find(METADATA_TYPE).expect("the built-in table has it");
                protobuf::encode(schema, ty, &partial(resource, object), out)
            }),
            Extra::Cbor => Content::cbor(kind, &shown(resource, object), resource.typed_items),
            Extra::CborMetadata => Content::cbor(kind, &partial(resource, object), true),
            Extra::Yaml => Content::text(|out| yaml::write(&shown(resource, object), out)),
            Extra::YamlItem => Content::text(|out| {
                let mut tree = shown(resource, object);
                if !resource.typed_items {
                    unstamp(&mut tree);
                }
                yaml::write_item(&tree, out);
            }),
            Extra::YamlMetadata => {
                Content::text(|out| yaml::write(&partial(resource, object), out))
            }
            Extra::YamlMetadataItem => {
                Content::text(|out| yaml::write_item(&partial(resource, object), out))
            }
            Extra::Row => Content::row(&*resource.printer, &shown(resource, object)),
        };
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

impl Content {
    fn json(resource: &Resource, object: &Object) -> Self {
        let mut bytes = Vec::with_capacity(object.size());
        bytes.extend_from_slice(frame_head(object.kind()));
        let begin = bytes.len();
        encode::write(&resource.schema, resource.ty, &shown(resource, object), &mut bytes);
        let document = begin..bytes.len();
        bytes.extend_from_slice(FRAME_TAIL);
        Self { frame: bytes.len(), item: document.clone(), document, ..Self::of(bytes) }
    }

    /// Makes an encoding with `write`, which returns the range of the object in its envelope.
    fn message(kind: Kind, write: impl FnOnce(&mut Vec<u8>) -> Range<usize>) -> Self {
        let (mut message, mut bytes) = (Vec::with_capacity(1024), Vec::new());
        let item = protobuf::list_item(write(&mut message));
        protobuf::encode_event(event_type(kind), &message, &mut bytes);
        let (begin, frame) = (bytes.len() - message.len(), bytes.len());
        let item = begin + item.start..begin + item.end;
        Self { frame, document: begin..frame, item, ..Self::of(bytes) }
    }

    /// Makes a CBOR encoding; `is_typed` tells whether items of a list have `apiVersion` and
    /// `kind`.
    fn cbor(kind: Kind, object: &Value, is_typed: bool) -> Self {
        let (mut document, mut bytes) = (Vec::with_capacity(1024), Vec::new());
        let rest = cbor::write_object(object, &mut document);
        cbor::write_event(event_type(kind), &document, &mut bytes);
        let (begin, frame) = (bytes.len() - document.len(), bytes.len());
        let item = if is_typed {
            begin + cbor::MAGIC.len()..frame
        } else {
            cbor::write_map_head(rest.members, &mut bytes);
            begin + rest.range.start..frame
        };
        Self { frame, document: begin..frame, item, ..Self::of(bytes) }
    }

    fn row(printer: &dyn Printer, object: &Value) -> Self {
        let Printed { json, ages } = Printed::of(&printer.row(object));
        Self { ages: ages.into(), ..Self::text(|out| *out = json) }
    }

    /// Makes an encoding without a frame, which is the same as an item of a list.
    fn text(write: impl FnOnce(&mut Vec<u8>)) -> Self {
        let mut bytes = Vec::new();
        write(&mut bytes);
        let all = 0..bytes.len();
        Self { frame: all.end, document: all.clone(), item: all, ..Self::of(bytes) }
    }

    /// Takes the bytes without spare capacity.
    fn of(bytes: Vec<u8>) -> Self {
        Self { bytes: Bytes::from(bytes.into_boxed_slice()), ..Self::default() }
    }
}

/// Decodes an object and converts it to a resource's version. Callers refuse unreadable objects
/// before ([`Object::check`]); if one arrives nevertheless, the tree has its name and is not empty.
fn shown(resource: &Resource, object: &Object) -> Value {
    resource.tree(object).unwrap_or_else(|_| object.identity(resource))
}

/// Removes the members that [`Resource::stamp`] sets.
fn unstamp(tree: &mut Value) {
    let object = tree.make_object();
    object.remove("kind");
    object.remove("apiVersion");
}

/// The type of a PartialObjectMetadata.
const METADATA_TYPE: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.PartialObjectMetadata";

/// Returns a PartialObjectMetadata of the object.
fn partial(resource: &Resource, object: &Object) -> Value {
    let metadata = if resource.is_stored_version() {
        let bytes = object.json_bytes();
        resource.metadata(bytes).and_then(|bytes| json::parse(&bytes).ok())
    } else {
        None
    };
    let converted = || {
        let mut object = shown(resource, object);
        resource.remove_internal_annotation(&mut object);
        object.get("metadata").cloned()
    };
    let metadata = metadata.or_else(converted);
    Value::from([
        ("kind", Value::from("PartialObjectMetadata")),
        ("apiVersion", Value::from("meta.k8s.io/v1")),
        ("metadata", metadata.unwrap_or_default()),
    ])
}

/// Returns the type of a write's watch event.
pub const fn event_type(kind: Kind) -> &'static str {
    match kind {
        Kind::Created => "ADDED",
        Kind::Updated => "MODIFIED",
        Kind::Deleted => "DELETED",
    }
}

/// The cached encodings of one object. Most objects have none, so the list is made with the first
/// one.
#[derive(Debug, Default)]
pub(crate) struct Encodings(OnceLock<Box<Mutex<Vec<Arc<Encoded>>>>>);

impl Encodings {
    /// Returns the cached encoding, or a new one that `make` makes; true if it is new. Concurrent
    /// callers wait, so that it is made once.
    fn get_or_make(
        &self,
        resource: u64,
        extra: Extra,
        make: impl FnOnce() -> Encoded,
    ) -> (Arc<Encoded>, bool) {
        let mut cached = self.0.get_or_init(Box::default).lock();
        if let Some(encoded) = cached.iter().find(|encoded| encoded.is(resource, extra)) {
            return (encoded.clone(), false);
        }
        let encoded = Arc::new(make());
        cached.reserve_exact(1);
        cached.push(encoded.clone());
        (encoded, true)
    }

    /// Returns the cached encoding.
    fn cached(&self, resource: u64, extra: Extra) -> Option<Arc<Encoded>> {
        let cached = self.0.get()?.lock();
        cached.iter().find(|encoded| encoded.is(resource, extra)).cloned()
    }

    /// Drops an evicted encoding.
    fn forget(&self, gone: &Weak<Encoded>) {
        let Some(cached) = self.0.get() else { return };
        cached.lock().retain(|encoded| !std::ptr::eq(Arc::as_ptr(encoded), gone.as_ptr()));
    }
}

impl Resource {
    /// Returns the object in this resource's version and in a further encoding.
    pub fn encoded(&self, object: &Arc<Object>, extra: Extra) -> Arc<Encoded> {
        let make = || Encoded::of(self, object, extra);
        let (encoded, is_new) = object.encodings.get_or_make(self.number, extra, make);
        if is_new {
            if extra == Extra::Protobuf && self.is_stored_version() {
                object.remember_message_len(encoded.content.item.len());
            }
            self.encoding_cache.insert(object, &encoded);
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
            return object.message_len().or_else(of_cached);
        }
        of_cached()
    }
}

#[cfg(test)]
mod tests;
