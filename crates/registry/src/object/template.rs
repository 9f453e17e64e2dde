//! How an object is encoded for the store: its JSON within the frame of a watch event, with a hole
//! for the resource version.

use std::ops::Range;

use pintle_store::{Kind, Template};
use pintle_value::{Value, json};

use super::{Object, ObjectHead};
use crate::ResourceDefinition;

/// Returns the range of the object in a watch frame of `len` bytes.
pub(super) const fn framed(kind: Kind, len: usize) -> Range<usize> {
    frame_head(kind).len()..len.saturating_sub(FRAME_TAIL.len())
}

/// The initial capacity for an object's bytes, its field sets excepted. Most objects are smaller,
/// for example a ConfigMap of 1 KB.
const LIKELY_BYTES: usize = 2048;

/// The likely length of an object: its field sets, and as much again for the fields in them.
fn likely_bytes(object: &Value) -> usize {
    let entries = object.at(&["metadata", "managedFields"]).and_then(Value::as_array);
    let sets = entries.into_iter().flatten().map(|entry| match entry.get("fieldsV1") {
        Some(Value::Raw(set)) => set.len(),
        _ => 0,
    });
    LIKELY_BYTES + 2 * sets.sum::<usize>()
}

/// Encodes an object of the stored form for the store, within its watch frame.
pub(crate) fn template(definition: &ResourceDefinition, object: &Value, kind: Kind) -> Template {
    let head = frame_head(kind);
    let mut bytes = Vec::with_capacity(likely_bytes(object));
    bytes.extend_from_slice(head);
    let hole = pintle_schema::encode::write_object(
        &definition.schema,
        definition.stored_type(),
        object,
        &mut bytes,
    );
    let body = head.len()..bytes.len();
    bytes.extend_from_slice(FRAME_TAIL);
    Template::framed(bytes, body, hole)
}

/// Encodes a stored object with the metadata of a [`Head`] for the store, within its watch frame.
/// The other members are copied. `None` if it is unknown where the object has its metadata.
pub(crate) fn template_with_metadata(
    definition: &ResourceDefinition,
    stored: &Object,
    changed: &ObjectHead,
    kind: Kind,
) -> Option<Template> {
    let (head, json) = (frame_head(kind), stored.abridged());
    let old = Some(changed.metadata.clone()).filter(|_| changed.is_located())?;
    let metadata = changed.tree.get("metadata")?;
    let mut bytes = Vec::with_capacity(head.len() + stored.size() + LIKELY_GROWTH);
    bytes.extend_from_slice(head);
    bytes.extend_from_slice(&json[..old.start]);
    let (schema, ty) = (&definition.schema, definition.stored_type());
    let hole = pintle_schema::encode::write_metadata(schema, ty, metadata, &mut bytes)?;
    bytes.extend_from_slice(&json[old.end..]);
    let body = head.len()..bytes.len();
    bytes.extend_from_slice(FRAME_TAIL);
    Some(Template::framed(bytes, body, Some(hole)))
}

/// Makes the template of the removal of a stored object, which does not change it: a copy with a
/// hole in place of its resource version. `None` if it has none.
pub(crate) fn template_unchanged(stored: &Object) -> Option<Template> {
    let (head, json) = (frame_head(Kind::Deleted), stored.json());
    let (before, after) = around_version(&json)?;
    let mut bytes = Vec::with_capacity(head.len() + json.len() + FRAME_TAIL.len());
    bytes.extend_from_slice(head);
    bytes.extend_from_slice(before);
    bytes.extend_from_slice(b"\"\"");
    let hole = bytes.len() - 1;
    bytes.extend_from_slice(after);
    let body = head.len()..bytes.len();
    bytes.extend_from_slice(FRAME_TAIL);
    Some(Template::framed(bytes, body, Some(hole)))
}

/// Returns an object's JSON before and after its resource version, whose quotes are in neither.
/// `None` if it has none.
pub(super) fn around_version(json: &[u8]) -> Option<(&[u8], &[u8])> {
    let version = json::at(json, &["metadata", "resourceVersion"])?;
    Some((&json[..version.start], &json[version.end..]))
}

/// The room for members that a deletion adds to the metadata, and for the frame.
const LIKELY_GROWTH: usize = 160;

/// Returns the bytes of a watch frame before the object.
pub const fn frame_head(kind: Kind) -> &'static [u8] {
    match kind {
        Kind::Created => br#"{"type":"ADDED","object":"#,
        Kind::Updated => br#"{"type":"MODIFIED","object":"#,
        Kind::Deleted => br#"{"type":"DELETED","object":"#,
    }
}

/// The bytes of a watch frame after the object.
pub const FRAME_TAIL: &[u8] = b"}\n";
