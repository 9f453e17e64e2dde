//! Kubernetes' Protobuf encoding, guided by a schema: `k8s\0`, then a message `runtime.Unknown`
//! that names the object's kind and contains the object's own message.
//!
//! There are no message types: the field numbers are in the [`Schema`]
//! ([`Field::tag`](crate::Field), and [`Field::inside`](crate::Field) for the messages that JSON
//! lacks), so a tree decoded from Protobuf cannot differ from one decoded from JSON. `scalar` and
//! `props_or` handle the types whose encodings differ.
//!
//! Must not know: custom resources. Their schemas have no field numbers, so all their fields would
//! be lost; the server does not offer them in Protobuf (MT-13).
//!
//! Invariants: declared lengths are not trusted, and no message is nested deeper than
//! [`DEPTH_MAX`](pintle_value::DEPTH_MAX). Unknown fields are skipped.

mod encode;
mod message;
mod props_or;
mod scalar;
#[cfg(test)]
mod tests;
pub(crate) mod wire;

use std::ops::Range;

use pintle_value::{Map, Value, json};

use crate::{Error, Schema, TypeId};
use encode::Encoder;
use message::Messages;
use wire::{Backwards, Fields};

/// The prefix of every object.
const PREFIX: &[u8] = b"k8s\0";
const NO_PREFIX: &str = "provided data does not appear to be a protobuf message, expected prefix \
                         [107 56 115 0]";

/// The field numbers of `runtime.Unknown`.
mod unknown {
    pub(super) const TYPE_META: u32 = 1;
    pub(super) const RAW: u32 = 2;
    pub(super) const CONTENT_ENCODING: u32 = 3;
    pub(super) const CONTENT_TYPE: u32 = 4;
}

/// The field numbers of `runtime.TypeMeta`, and their names in JSON.
const TYPE_META: [(u32, &str); 2] = [(1, "apiVersion"), (2, "kind")];

/// Decodes an object of the type `ty`, normalized as by [`decode`](crate::decode()). The result has
/// the `kind` and `apiVersion` that the bytes name. If that kind is not the type's, the message is
/// not read, because it would be misinterpreted: the other members are those of the zero value.
pub fn decode(schema: &Schema, ty: TypeId, bytes: &[u8]) -> Result<Value, Error> {
    if bytes.is_empty() {
        return Err(Error::Protobuf("empty data".into()));
    }
    let Some(envelope) = bytes.strip_prefix(PREFIX) else {
        return Err(Error::Protobuf(NO_PREFIX.into()));
    };
    if envelope.is_empty() {
        return Err(Error::Protobuf("empty body".into()));
    }
    let (type_meta, raw) = open(envelope)?;
    let kind = type_meta.get("kind").and_then(Value::as_str);
    let is_its_kind = kind.is_none_or(|kind| schema.get(ty).name.rsplit('.').next() == Some(kind));
    let mut value = Messages::new(schema).read(ty, if is_its_kind { raw } else { &[] })?;
    if let Value::Object(members) = &mut value {
        for (name, text) in type_meta {
            if is_type_member(schema, ty, &name) {
                members.insert(name, text);
            }
        }
    }
    Ok(value)
}

/// The `apiVersion` and `kind` of an encoded object; `""` if they are missing.
pub fn type_meta(bytes: &[u8]) -> Result<(String, String), Error> {
    let envelope = bytes.strip_prefix(PREFIX).ok_or(Error::Protobuf(NO_PREFIX.into()))?;
    let (type_meta, _) = open(envelope)?;
    let [api_version, kind] = ["apiVersion", "kind"]
        .map(|name| type_meta.get(name).and_then(Value::as_str).unwrap_or_default().to_owned());
    Ok((api_version, kind))
}

/// Whether bytes begin with the prefix of this encoding.
pub fn is_message(bytes: &[u8]) -> bool {
    bytes.starts_with(PREFIX)
}

/// Encodes an object of the type `ty`; its `kind` and `apiVersion` go into the envelope. Returns
/// the range of the object's own message in `out`.
pub fn encode(schema: &Schema, ty: TypeId, value: &Value, out: &mut Vec<u8>) -> Range<usize> {
    write(schema, value, out, |encoder| encoder.message(ty, value.as_object()))
}

/// The part of an encoded object that is its encoding as a list item, given the range of its own
/// message. It includes the head before the message, because the envelope and the list use the same
/// field number.
pub const fn list_item(message: Range<usize>) -> Range<usize> {
    const _: () = assert!(unknown::RAW == LIST_ITEMS);
    message.start - wire::head_bytes(LIST_ITEMS, message.end - message.start)..message.end
}

/// Writes the beginning of a list, up to its items: `list` has all other members, and the items
/// take `items_bytes`. Each item follows as [`list_item`] cuts it, and [`LIST_TAIL`] ends the list.
pub fn list_head(schema: &Schema, list: &Value, items_bytes: usize, out: &mut Vec<u8>) {
    const META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ListMeta";
    let mut encoder = Encoder::new(schema);
    if let Some(meta) = schema.find(META) {
        encoder.struct_field(1, meta, list.get("metadata").and_then(Value::as_object));
    }
    let mut meta = Vec::new();
    encoder.out.finish(&mut meta);
    out.extend_from_slice(PREFIX);
    let mut envelope = Backwards::default();
    type_meta_field(&mut envelope, list);
    envelope.finish(out);
    wire::head(unknown::RAW, meta.len() + items_bytes, out);
    out.extend_from_slice(&meta);
}

/// The field number of a list's items.
const LIST_ITEMS: u32 = 2;

/// The end of a list: the empty rest of its envelope.
pub const LIST_TAIL: &[u8] = &[
    (unknown::CONTENT_ENCODING as u8) << 3 | wire::wire_type::BYTES,
    0,
    (unknown::CONTENT_TYPE as u8) << 3 | wire::wire_type::BYTES,
    0,
];

/// Writes a watch event, preceded by its length (OAS-15). The object is encoded as by [`encode()`].
pub fn encode_event(event_type: &str, object: &[u8], out: &mut Vec<u8>) {
    let mut event = Backwards::default();
    let end = event.begin();
    event.bytes(1, object); // RawExtension.raw
    event.end(2, end);
    event.bytes(1, event_type.as_bytes());
    let begin = out.len();
    out.extend_from_slice(&[0; 4]);
    event.finish(out);
    let len = u32::try_from(out.len() - begin - 4).unwrap_or(u32::MAX); // objects are far shorter
    out[begin..begin + 4].copy_from_slice(&len.to_be_bytes());
}

/// Returns the type and the object's bytes of an event, which comes without its length.
pub fn read_event(event: &[u8]) -> Result<(String, &[u8]), Error> {
    let (mut event_type, mut object) = (String::new(), &[][..]);
    for field in Fields::new(event) {
        match field? {
            (1, wire) => event_type = json::text(wire.bytes("type")?).into_owned(),
            (2, wire) => {
                for field in Fields::new(wire.bytes("object")?) {
                    if let (1, wire) = field? {
                        object = wire.bytes("raw")?;
                    }
                }
            }
            _ => {}
        }
    }
    Ok((event_type, object))
}

/// Writes the envelope of an object, with the content that `message` writes.
fn write(
    schema: &Schema,
    value: &Value,
    out: &mut Vec<u8>,
    message: impl FnOnce(&mut Encoder<'_>),
) -> Range<usize> {
    let mut encoder = Encoder::new(schema);
    // The parts are written from the end to the beginning.
    encoder.out.bytes(unknown::CONTENT_TYPE, b"");
    encoder.out.bytes(unknown::CONTENT_ENCODING, b"");
    let end = encoder.out.begin();
    message(&mut encoder);
    let from_end = end.bytes()..encoder.out.begin().bytes();
    encoder.out.end(unknown::RAW, end);
    type_meta_field(&mut encoder.out, value);
    out.extend_from_slice(PREFIX);
    encoder.out.finish(out);
    out.len() - from_end.end..out.len() - from_end.start
}

fn type_meta_field(out: &mut Backwards, value: &Value) {
    let end = out.begin();
    for (tag, name) in TYPE_META.iter().rev() {
        out.bytes(*tag, value.str_at(&[name]).unwrap_or_default().as_bytes());
    }
    out.end(unknown::TYPE_META, end);
}

/// Returns the type metadata of the envelope, and the object's message.
fn open(envelope: &[u8]) -> Result<(Map, &[u8]), Error> {
    let (mut type_meta, mut raw) = (Map::new(), &[][..]);
    for field in Fields::new(envelope) {
        let (tag, wire) = field?;
        match tag {
            unknown::TYPE_META => {
                for field in Fields::new(wire.bytes("TypeMeta")?) {
                    let (tag, wire) = field?;
                    let Some((_, name)) = TYPE_META.iter().find(|(t, _)| *t == tag) else {
                        continue;
                    };
                    type_meta.insert(*name, &*json::text(wire.bytes(name)?));
                }
            }
            unknown::RAW => raw = wire.bytes("Raw")?,
            _ => {}
        }
    }
    type_meta.retain(|_, text| text.as_str() != Some(""));
    Ok((type_meta, raw))
}

/// Whether the type has the member, which Protobuf has only in the envelope.
fn is_type_member(schema: &Schema, ty: TypeId, name: &str) -> bool {
    schema.field(ty, name).is_some_and(|field| field.tag == 0)
}

/// Whether a struct's field does not contain its list directly, but a message whose field 1 is the
/// list. Lists in maps are encoded so (`ExtraValue`). In Go, such a list has a named type.
fn is_wrapped(schema: &Schema, holder: TypeId, field: &str) -> bool {
    field == "verbs"
        && schema.get(holder).name == "io.k8s.apimachinery.pkg.apis.meta.v1.APIResource"
}
