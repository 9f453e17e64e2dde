//! OpenAPI documents in Protobuf: the messages of `openapi.v2.Document` and `openapi.v3.Document`
//! (gnostic's), made from a document's JSON. Go clients of the API ask for them.
//!
//! The messages are tables in [`v2`] and [`v3`]: which member of an object has which field number, and
//! what stands in it. What has no field there (extensions, examples, values of enums) is YAML in a
//! message of its own, as upstream sends it.

mod v2;
mod v3;

use pintle_value::{Map, Value, json, yaml};

use crate::Error;
use crate::protobuf::wire::Backwards;

/// The message of a document of version 2, given as JSON.
pub fn v2_message(document: &[u8]) -> Result<Vec<u8>, Error> {
    message(&v2::DOCUMENT, document)
}

/// The message of a document of version 3, given as JSON.
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

/// A type of message, by the members of the object that it is made of.
struct Message {
    /// Members that have fields of their own: name, number, what it is.
    fields: &'static [(&'static str, u32, Kind)],
    /// Members whose names are data: they become messages of name and value. The first row counts whose
    /// keys are meant.
    named: &'static [(Keys, u32, Kind)],
}

/// Which members' names are data.
#[derive(Clone, Copy)]
enum Keys {
    /// Extensions of the format: `x-…`.
    Extensions,
    /// Paths: `/…`.
    Paths,
    /// All that have no field.
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

/// What stands in a field.
enum Kind {
    Text,
    Bool,
    Integer,
    Number,
    /// Any value, as YAML.
    Yaml,
    Message(&'static Message),
    /// One field for each item; one item may stand without its list.
    List(&'static Kind),
    /// A message with nothing but the field of this number.
    Wrapped(u32, &'static Kind),
    /// The one or the other: field 1, or a reference in field 2.
    OrReference(&'static Kind),
    /// The one or the other: field 1, or a truth value in field 2.
    OrBool(&'static Kind),
    /// A scalar default: a number, a truth value or a text, in the fields 1, 2 or 3.
    Scalar,
    /// One of several messages, in the field of its number, told by a member's text.
    Told(&'static str, &'static [(&'static str, u32, Kind)]),
}

/// Writes messages from their end to their beginning.
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

    /// Writes a field. As everywhere in this format's third syntax, zero values are not written.
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
            Kind::Told(by, kinds) => self.nested(tag, |writer| {
                let told = value.str_at(&[by]);
                if let Some((_, tag, kind)) = kinds.iter().find(|(text, ..)| Some(*text) == told) {
                    writer.field(*tag, kind, value);
                }
            }),
        }
    }

    /// Writes an item of a list: unlike a field, a text is there even if it is empty.
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

    /// Writes the value of one of several fields, which is there even if it is zero; what is no scalar
    /// has none.
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
