//! Protobuf: the messages that are kept with the objects, and those that are made of other documents,
//! given as JSON of a known type. Only built-in kinds have it.

use std::sync::Arc;

use bytes::Bytes;
use pintle_registry::{Extra, Object};
use pintle_schema::{TypeId, builtin, protobuf};
use pintle_value::{Value, json};

use super::Rendering;
use crate::body::{Body, CHUNK_BYTES};
use crate::negotiation::{Form, MetaVersion};

const METADATA_TYPE: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.PartialObjectMetadata";

/// One object of the named type, given as JSON.
pub(crate) fn object(type_name: &str, object: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(object.len());
    protobuf::encode(builtin(), find(type_name), &read(object), &mut out);
    out
}

/// A list, given as its own metadata in JSON and the messages of its items without their envelopes.
pub(super) fn list(rendering: &Rendering, metadata: &[u8], items: Vec<Bytes>) -> Body {
    let resource = &rendering.resource;
    let (kind, api_version) = match rendering.form {
        Form::Object => (resource.list_kind.as_str(), resource.api_version()),
        _ => ("PartialObjectMetadataList", MetaVersion::V1.api_version().to_owned()),
    };
    let head = Value::from([
        ("kind", Value::from(kind)),
        ("apiVersion", Value::from(api_version)),
        ("metadata", read(metadata)),
    ]);
    let mut piece = Vec::with_capacity(1024);
    protobuf::list_head(builtin(), &head, items.iter().map(Bytes::len), &mut piece);
    Body::pieces(Box::new(Items { items: items.into_iter(), piece, ended: false }))
}

/// The pieces of a list's body.
struct Items {
    items: std::vec::IntoIter<Bytes>,
    /// Bytes of the next piece.
    piece: Vec<u8>,
    ended: bool,
}

impl Iterator for Items {
    type Item = Bytes;

    fn next(&mut self) -> Option<Bytes> {
        if self.ended {
            return None;
        }
        for item in self.items.by_ref() {
            protobuf::item_head(item.len(), &mut self.piece);
            self.piece.extend_from_slice(&item);
            if self.piece.len() >= CHUNK_BYTES {
                // The next piece is about as long as this one.
                let room = Vec::with_capacity(self.piece.len() + 4096);
                return Some(std::mem::replace(&mut self.piece, room).into());
            }
        }
        self.ended = true;
        self.piece.extend_from_slice(protobuf::LIST_TAIL);
        Some(std::mem::take(&mut self.piece).into())
    }
}

impl Rendering {
    /// The name of the type of the documents that this makes of the resource's objects.
    pub(crate) fn type_name(&self) -> &str {
        match self.form {
            Form::PartialObjectMetadata(_) | Form::PartialObjectMetadataList(_) => METADATA_TYPE,
            _ => &self.resource.schema.get(self.resource.ty).name,
        }
    }

    /// What of an object's messages is wanted: the forms that have one are these two.
    pub(crate) fn message(&self) -> Extra {
        match self.form {
            Form::PartialObjectMetadata(_) | Form::PartialObjectMetadataList(_) => Extra::Metadata,
            _ => Extra::Protobuf,
        }
    }

    /// The messages of a list's items.
    pub(super) fn items(&self, objects: &[Arc<Object>]) -> Vec<Bytes> {
        let extra = self.message();
        objects.iter().map(|object| self.resource.encoded(object, extra).item()).collect()
    }

    /// The message of a list's item, given as JSON.
    pub(super) fn item(&self, view: &[u8]) -> Bytes {
        let mut out = Vec::with_capacity(view.len());
        let message = protobuf::encode(builtin(), find(self.type_name()), &read(view), &mut out);
        Bytes::from(out).slice(message)
    }
}

/// What is read here was written here; a failure would show as an empty object.
fn read(object: &[u8]) -> Value {
    json::parse(object).unwrap_or_default()
}

fn find(type_name: &str) -> TypeId {
    builtin().find(type_name).expect("only kinds of the built-in table are offered in Protobuf")
}
