//! Encodes documents of built-in types from JSON to Protobuf. (Messages of stored objects come from
//! the registry's encoding cache.)

use bytes::Bytes;
use pintle_schema::{Schema, TypeId, builtin, protobuf, with_removed};
use pintle_value::Value;

use super::{Rendering, parse_own};
use crate::negotiation::{Form, MetaVersion};

const METADATA_TYPE: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.PartialObjectMetadata";

/// Encodes one object of the named type from JSON.
pub(crate) fn object(type_name: &str, object: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(object.len());
    let (schema, ty) = find(type_name);
    protobuf::encode(schema, ty, &parse_own(object), &mut out);
    out
}

/// The bytes before the items of a list, given its metadata in JSON and the length of the items.
pub(super) fn list_head(rendering: &Rendering, metadata: &[u8], items_bytes: usize) -> Vec<u8> {
    let resource = &rendering.resource;
    let (kind, api_version) = match rendering.form {
        Form::Object => (resource.list_kind.as_str(), resource.api_version()),
        _ => ("PartialObjectMetadataList", MetaVersion::V1.api_version().to_owned()),
    };
    let list = Value::from([
        ("kind", Value::from(kind)),
        ("apiVersion", Value::from(api_version)),
        ("metadata", parse_own(metadata)),
    ]);
    let mut head = Vec::with_capacity(1024);
    protobuf::list_head(builtin(), &list, items_bytes, &mut head);
    head
}

/// Encodes a list item of the named type from JSON.
pub(super) fn item(type_name: &str, item: &[u8]) -> Bytes {
    let mut out = Vec::with_capacity(item.len());
    let (schema, ty) = find(type_name);
    let message = protobuf::encode(schema, ty, &parse_own(item), &mut out);
    Bytes::from(out).slice(protobuf::list_item(message))
}

impl Rendering {
    /// The type name of the documents into which the resource's objects are rendered.
    pub(crate) fn type_name(&self) -> &str {
        match self.form {
            Form::PartialObjectMetadata(_) | Form::PartialObjectMetadataList(_) => METADATA_TYPE,
            _ => &self.resource.schema.get(self.resource.ty).name,
        }
    }
}

/// The type of this name. The types of removed versions are loaded only if no current type has the
/// name.
fn find(type_name: &str) -> (&'static Schema, TypeId) {
    let of = |schema: &'static Schema| Some((schema, schema.find(type_name)?));
    let found = of(builtin()).or_else(|| of(with_removed()));
    found.expect("only built-in kinds, of any release, are offered in Protobuf")
}
