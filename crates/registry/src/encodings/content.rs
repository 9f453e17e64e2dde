//! The bytes of an encoding.

use std::ops::Range;

use bytes::Bytes;
use pintle_schema::{encode, protobuf};
use pintle_store::Kind;
use pintle_value::{Value, cbor, json, yaml};

use super::{Extra, event_type};
use crate::object::{FRAME_TAIL, frame_head};
use crate::table::{Age, Printed, Printer};
use crate::{Object, Resource};

/// The bytes of an encoding: the watch frame of the write that made the object's version, with the
/// object in it. An encoding that watches do not use has only the object.
#[derive(Debug, Default)]
pub(super) struct Content {
    pub(super) bytes: Bytes,
    /// The length of the frame, or of the object without one. The bytes after it are the beginning
    /// of the object as an item of a list, where that differs from its beginning as a document.
    pub(super) frame: usize,
    /// The object as a document of its own.
    pub(super) document: Range<usize>,
    /// The rest of the object as an item of a list, after its beginning.
    pub(super) item: Range<usize>,
    /// The cells of a row that depend on the time of the request.
    pub(super) ages: Box<[Age]>,
}

impl Content {
    /// Encodes an object in a resource's version.
    pub(super) fn new(resource: &Resource, object: &Object, extra: Extra) -> Self {
        let kind = object.kind();
        match extra {
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
        }
    }

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

    /// Makes the row of a Table.
    pub(super) fn row(printer: &dyn Printer, object: &Value) -> Self {
        let Printed { json, ages } = Printed::of(&printer.row(object));
        Self { ages: ages.into(), ..Self::text(|out| *out = json) }
    }

    /// Makes an encoding without a frame, in which an item of a list equals a document.
    fn text(write: impl FnOnce(&mut Vec<u8>)) -> Self {
        let mut bytes = Vec::new();
        write(&mut bytes);
        let all = 0..bytes.len();
        Self { frame: all.end, document: all.clone(), item: all, ..Self::of(bytes) }
    }

    /// Takes the bytes without spare capacity.
    pub(super) fn of(bytes: Vec<u8>) -> Self {
        Self { bytes: Bytes::from(bytes.into_boxed_slice()), ..Self::default() }
    }
}

/// Decodes an object and converts it to a resource's version. Callers refuse unreadable objects
/// before ([`Object::check`]). If an unreadable object arrives nevertheless, the tree has only its
/// type, name, namespace and resource version.
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
        let bytes = object.json();
        resource.metadata(&bytes).and_then(|bytes| json::parse(&bytes).ok())
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
