//! OpenAPI documents in Protobuf: the messages `openapi.v2.Document` and `openapi.v3.Document` (of
//! gnostic), converted from a document's JSON. Go clients request them.
//!
//! The tables [`v2`] and [`v3`] define the messages: the field number and the type of each member
//! of an object. Values of any type (extensions, examples, enum values) are YAML in a message of
//! their own, as upstream sends them.

mod v2;
mod v3;

use pintle_value::{Map, Value, json, yaml};

use crate::Error;
use crate::protobuf::wire::Backwards;

/// Converts an OpenAPI 2 document from JSON.
pub fn v2_message(document: &[u8]) -> Result<Vec<u8>, Error> {
    message(&v2::DOCUMENT, document)
}

/// Converts an OpenAPI 3 document from JSON.
pub fn v3_message(document: &[u8]) -> Result<Vec<u8>, Error> {
    message(&v3::DOCUMENT, document)
}

fn message(ty: &'static Message, document: &[u8]) -> Result<Vec<u8>, Error> {
    let document = json::parse(document)?;
    let (mut writer, mut out) = (Writer::default(), Vec::with_capacity(1024));
    if let Some(members) = document.as_object() {
        writer.message(ty, members);
    }
    writer.out.finish(&mut out);
    Ok(out)
}

/// A message type, by the members of the corresponding JSON object.
struct Message {
    /// Members with a field of their own: name, number, type.
    fields: &'static [(&'static str, u32, Kind)],
    /// Members whose names are data; each becomes a message of name and value. The first matching
    /// row counts.
    named: &'static [(Keys, u32, Kind)],
}

/// A set of members whose names are data.
#[derive(Clone, Copy)]
enum Keys {
    /// Extensions: `x-…`.
    Extensions,
    /// Paths: `/…`.
    Paths,
    /// All members without a field.
    Others,
}

impl Keys {
    fn cover(self, key: &str) -> bool {
        match self {
            Self::Extensions => key.starts_with("x-"),
            Self::Paths => key.starts_with('/'),
            Self::Others => true,
        }
    }
}

/// The type of a field.
enum Kind {
    Text,
    Bool,
    Integer,
    Number,
    /// Any value, as YAML.
    Yaml,
    Message(&'static Message),
    /// One field for each item. A single item may come without a list.
    List(&'static Kind),
    /// A message with a single field of this number.
    Wrapped(u32, &'static Kind),
    /// A union: field 1, or a reference in field 2.
    OrReference(&'static Kind),
    /// A union: field 1, or a boolean in field 2.
    OrBool(&'static Kind),
    /// A scalar default: a number, a boolean or a text, in field 1, 2 or 3.
    Scalar,
    /// One of several messages, selected by the text of a member.
    ByMember(&'static str, &'static [(&'static str, u32, Kind)]),
}

/// Writes messages backwards, from the end to the beginning.
#[derive(Default)]
struct Writer {
    out: Backwards,
}

impl Writer {
    /// Writes the fields of a message.
    fn message(&mut self, ty: &'static Message, members: &Map) {
        let mut fields: Vec<_> = members
            .iter()
            .filter_map(|(key, value)| {
                let own = ty.fields.iter().find(|(name, ..)| *name == key.as_str());
                if let Some((_, tag, kind)) = own {
                    return Some((*tag, kind, None, value));
                }
                let (_, tag, kind) = ty.named.iter().find(|(keys, ..)| keys.cover(key))?;
                Some((*tag, kind, Some(key.as_str()), value))
            })
            .collect();
        fields.sort_by_key(|(tag, ..)| *tag);
        for (tag, kind, name, value) in fields.into_iter().rev() {
            match name {
                None => self.field(tag, kind, value),
                Some(name) => self.nested(tag, |writer| {
                    writer.field(2, kind, value);
                    writer.text(1, name);
                }),
            }
        }
    }

    /// Writes a field. As in all of proto3, zero values are not written.
    fn field(&mut self, tag: u32, kind: &'static Kind, value: &Value) {
        match kind {
            Kind::Text => self.text(tag, value.as_str().unwrap_or_default()),
            Kind::Bool if value.as_bool() == Some(true) => self.out.varint(tag, 1),
            Kind::Bool => {}
            Kind::Integer => match value.as_int() {
                Some(0) | None => {}
                Some(number) => self.out.varint(tag, number.cast_unsigned()),
            },
            Kind::Number => match number(value) {
                Some(number) if number != 0.0 => self.out.double(tag, number),
                _ => {}
            },
            Kind::Yaml => self.nested(tag, |writer| {
                let mut text = Vec::new();
                yaml::write(value, &mut text);
                writer.out.bytes(2, &text);
            }),
            Kind::Message(ty) => self.nested(tag, |writer| {
                if let Some(members) = value.as_object() {
                    writer.message(ty, members);
                }
            }),
            Kind::List(item) => match value.as_array() {
                Some(items) => items.iter().rev().for_each(|value| self.item(tag, item, value)),
                None => self.item(tag, item, value),
            },
            Kind::Wrapped(inside, kind) => {
                self.nested(tag, |writer| writer.field(*inside, kind, value));
            }
            Kind::OrReference(kind) => self.nested(tag, |writer| match value.get("$ref") {
                Some(_) => writer.field(2, &REFERENCE, value),
                None => writer.field(1, kind, value),
            }),
            Kind::OrBool(kind) => self.nested(tag, |writer| match value.as_bool() {
                Some(truth) => writer.out.varint(2, u64::from(truth)),
                None => writer.field(1, kind, value),
            }),
            Kind::Scalar => self.nested(tag, |writer| writer.scalar(value)),
            Kind::ByMember(by, kinds) => self.nested(tag, |writer| {
                let representable = value.str_at(&[by]);
                if let Some((_, tag, kind)) =
                    kinds.iter().find(|(text, ..)| Some(*text) == representable)
                {
                    writer.field(*tag, kind, value);
                }
            }),
        }
    }

    /// Writes an item of a list. Unlike a field, an empty text is written.
    fn item(&mut self, tag: u32, kind: &'static Kind, value: &Value) {
        match kind {
            Kind::Text => self.out.bytes(tag, value.as_str().unwrap_or_default().as_bytes()),
            _ => self.field(tag, kind, value),
        }
    }

    fn text(&mut self, tag: u32, text: &str) {
        if !text.is_empty() {
            self.out.bytes(tag, text.as_bytes());
        }
    }

    /// Writes the value of a union of scalars, even if it is zero. Other values are not written.
    fn scalar(&mut self, value: &Value) {
        match value {
            Value::Bool(truth) => self.out.varint(2, u64::from(*truth)),
            Value::String(text) => self.out.bytes(3, text.as_bytes()),
            _ => {
                if let Some(number) = number(value) {
                    self.out.double(1, number);
                }
            }
        }
    }

    fn nested(&mut self, tag: u32, write: impl FnOnce(&mut Self)) {
        let end = self.out.begin();
        write(self);
        self.out.end(tag, end);
    }
}

static REFERENCE: Kind = Kind::Message(&Message { fields: &[("$ref", 1, Kind::Text)], named: &[] });

fn number(value: &Value) -> Option<f64> {
    match value {
        Value::Float(number) => Some(*number),
        value => value.as_int().map(|number| number as f64),
    }
}

#[cfg(test)]
mod tests;
