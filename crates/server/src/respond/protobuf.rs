//! Protobuf, made from JSON of a known type. Only built-in kinds have it.

use bytes::Bytes;
use pintle_schema::{TypeId, builtin, protobuf};
use pintle_value::{Value, json};

use super::Rendering;
use crate::negotiation::{Form, MetaVersion};

const METADATA_TYPE: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.PartialObjectMetadata";

/// One object of the named type, given as JSON.
pub(crate) fn object(type_name: &str, object: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(object.len());
    protobuf::encode(builtin(), find(type_name), &read(object), &mut out);
    out
}

/// A list, given as its own metadata and its items, all in JSON.
pub(super) fn list(
    rendering: &Rendering,
    metadata: &[u8],
    views: impl Iterator<Item = Bytes>,
) -> Vec<u8> {
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
    let views: Vec<Bytes> = views.collect();
    let items = views.iter().rev().map(|view| read(view));
    let mut out = Vec::new();
    protobuf::encode_list(builtin(), find(rendering.type_name()), &head, items, &mut out);
    out
}

impl Rendering {
    /// The name of the type of the documents that this makes of the resource's objects.
    pub(crate) fn type_name(&self) -> &str {
        match self.form {
            Form::PartialObjectMetadata(_) | Form::PartialObjectMetadataList(_) => METADATA_TYPE,
            _ => &self.resource.schema.get(self.resource.ty).name,
        }
    }
}

/// What is read here was written here; a failure would show as an empty object.
fn read(object: &[u8]) -> Value {
    json::parse(object).unwrap_or_default()
}

fn find(type_name: &str) -> TypeId {
    builtin().find(type_name).expect("only kinds of the built-in table are offered in Protobuf")
}
