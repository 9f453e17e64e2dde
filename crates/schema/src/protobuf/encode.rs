//! Encodes trees as Protobuf messages, byte for byte like upstream's generated code: fields ordered
//! by number, with zero values of non-pointer fields, maps ordered by key.
//!
//! Trees are expected to be normalized, but any tree can be encoded: a value that does not match
//! its field is written as the field's zero value.

use base64::{Engine, engine::general_purpose::STANDARD};
use pintle_meta::{duration, time};
use pintle_value::{Map, Value, json};

use super::{is_wrapped, wire::Backwards};
use crate::{
    Field, Presence, Scalar, Schema, Shape, TypeId,
    props_or::{self, Other, PropsOr},
};

/// Writes messages backwards, from the last field to the first, so that the length of a nested
/// message is known when its head is written.
pub(super) struct Encoder<'s> {
    schema: &'s Schema,
    pub(super) out: Backwards,
}

impl<'s> Encoder<'s> {
    pub(super) fn new(schema: &'s Schema) -> Self {
        Self { schema, out: Backwards::default() }
    }

    /// Writes the fields of a struct; without members, those of the zero value.
    pub(super) fn message(&mut self, ty: TypeId, members: Option<&Map>) {
        let Shape::Struct { fields, by_name, .. } = &self.schema.get(ty).shape else { return };
        let fields = Tagged { fields, by_name, ranks: self.schema.index().tagged(ty), level: 0 };
        self.fields(ty, fields, members);
    }

    /// Writes a field that is a struct.
    pub(super) fn struct_field(&mut self, tag: u32, ty: TypeId, members: Option<&Map>) {
        let end = self.out.begin();
        self.message(ty, members);
        self.out.end(tag, end);
    }

    /// Writes the fields of one message, and its embedded messages, whose fields JSON has inline.
    fn fields(&mut self, ty: TypeId, mut fields: Tagged<'s>, members: Option<&Map>) {
        while let Some(field) = fields.last() {
            match field.inside.get(fields.level) {
                Some(&tag) => {
                    let embedded = fields.split_off(tag);
                    let end = self.out.begin();
                    self.fields(ty, embedded, members);
                    self.out.end(tag, end);
                }
                None => {
                    fields.pop();
                    let value = members.and_then(|members| members.get(&field.name));
                    self.field(ty, field, value.filter(|value| !value.is_null()));
                }
            }
        }
    }

    fn field(&mut self, holder: TypeId, field: &Field, value: Option<&Value>) {
        let pointer = matches!(field.presence, Presence::Pointer | Presence::Null);
        match (&self.schema.get(field.ty).shape, value) {
            (Shape::List { .. }, Some(value)) if is_wrapped(self.schema, holder, &field.name) => {
                self.value(field.tag, field.ty, Some(value));
            }
            (Shape::List { item, .. }, Some(Value::Array(items))) => {
                self.items(field.tag, *item, items);
            }
            (Shape::Map { value: ty, .. }, Some(Value::Object(members))) => {
                for (key, value) in members.iter().rev() {
                    let end = self.out.begin();
                    self.value(2, *ty, Some(value).filter(|value| !value.is_null()));
                    self.out.bytes(1, key.as_bytes());
                    self.out.end(field.tag, end);
                }
            }
            (Shape::List { .. } | Shape::Map { .. }, _) => {}
            (_, None) if pointer => {}
            (_, value) => self.value(field.tag, field.ty, value),
        }
    }

    fn items(&mut self, tag: u32, ty: TypeId, items: &[Value]) {
        for item in items.iter().rev() {
            self.value(tag, ty, Some(item).filter(|item| !item.is_null()));
        }
    }

    /// Writes an item, the value of an entry, or a scalar; without a value, the type's zero value.
    fn value(&mut self, tag: u32, ty: TypeId, value: Option<&Value>) {
        match &self.schema.get(ty).shape {
            Shape::Scalar(scalar) => self.scalar(tag, *scalar, ty, value),
            Shape::Struct { .. } => self.struct_field(tag, ty, value.and_then(Value::as_object)),
            Shape::List { item, .. } => {
                let end = self.out.begin();
                self.items(1, *item, value.and_then(Value::as_array).unwrap_or_default());
                self.out.end(tag, end);
            }
            // Protobuf has no maps in lists or maps.
            Shape::Map { .. } => {}
        }
    }

    fn scalar(&mut self, tag: u32, scalar: Scalar, ty: TypeId, value: Option<&Value>) {
        let text = value.and_then(Value::as_str).unwrap_or_default();
        let int = value.and_then(Value::as_int).unwrap_or_default();
        match scalar {
            Scalar::String => self.out.bytes(tag, text.as_bytes()),
            Scalar::Bool => {
                let is_true = value.and_then(Value::as_bool).unwrap_or_default();
                self.out.varint(tag, u64::from(is_true));
            }
            Scalar::Int32 | Scalar::Int64 => self.out.varint(tag, int.cast_unsigned()),
            Scalar::Float64 => {
                let number =
                    if let Some(Value::Float(number)) = value { *number } else { int as f64 };
                self.out.double(tag, number);
            }
            // Go does not write nil.
            Scalar::Bytes if value.is_none() => {}
            Scalar::Bytes => self.out.bytes(tag, &STANDARD.decode(text).unwrap_or_default()),
            Scalar::Any if let Some(of) = props_or::of(self.schema, ty) => {
                let end = self.out.begin();
                self.props_or(&of, value);
                self.out.end(tag, end);
            }
            _ => {
                let end = self.out.begin();
                self.scalar_message(scalar, value, text, int);
                self.out.end(tag, end);
            }
        }
    }

    /// Writes the message of a scalar that is a message.
    fn scalar_message(&mut self, scalar: Scalar, value: Option<&Value>, text: &str, int: i64) {
        match scalar {
            Scalar::Quantity => {
                self.out.bytes(1, if text.is_empty() { b"0" } else { text.as_bytes() });
            }
            Scalar::Time => self.timestamp(time::parse(text).ok(), time::SECOND),
            Scalar::MicroTime => self.timestamp(time::parse_micro(text).ok(), 1),
            Scalar::Duration => {
                let nanos = duration::parse(text).unwrap_or_default();
                self.out.varint(1, nanos.cast_unsigned());
            }
            Scalar::IntOrString => {
                self.out.bytes(3, text.as_bytes());
                self.out.varint(2, int.cast_unsigned());
                self.out.varint(1, u64::from(matches!(value, Some(Value::String(_)))));
            }
            _ => {
                if let Some(value) = value {
                    let mut text = Vec::new();
                    json::write(value, &mut text);
                    self.out.bytes(1, &text);
                }
            }
        }
    }

    /// Writes a time, truncated to `precision` microseconds; Go's zero time has no fields.
    fn timestamp(&mut self, micros: Option<i64>, precision: i64) {
        let Some(micros) = micros else { return };
        let (seconds, rest) = (micros.div_euclid(time::SECOND), micros.rem_euclid(time::SECOND));
        self.out.varint(2, ((rest - rest % precision) * 1000).cast_unsigned());
        self.out.varint(1, seconds.cast_unsigned());
    }

    fn props_or(&mut self, of: &PropsOr, value: Option<&Value>) {
        let schema = value.and_then(Value::as_object);
        let items = value.and_then(Value::as_array).unwrap_or_default();
        let write_schema = |encoder: &mut Self| {
            if schema.is_some() {
                encoder.struct_field(of.schema_tag, of.schema, schema);
            }
        };
        match of.other {
            Other::Bool => {
                write_schema(self);
                let allows = schema.is_some() || value.and_then(Value::as_bool) == Some(true);
                self.out.varint(of.other_tag, u64::from(allows));
            }
            Other::Schemas => {
                self.items(of.other_tag, of.schema, items);
                write_schema(self);
            }
            Other::Strings => {
                for item in items.iter().rev() {
                    self.out.bytes(of.other_tag, item.as_str().unwrap_or_default().as_bytes());
                }
                write_schema(self);
            }
        }
    }
}

/// Fields of a struct ordered by their numbers, preceded by those of the enclosing messages.
#[derive(Clone, Copy)]
struct Tagged<'s> {
    fields: &'s [Field],
    by_name: &'s [u16],
    ranks: &'s [u16],
    /// The number of messages within the struct's own that contain these fields.
    level: usize,
}

impl<'s> Tagged<'s> {
    fn field(&self, rank: u16) -> &'s Field {
        &self.fields[usize::from(self.by_name[usize::from(rank)])]
    }

    fn last(&self) -> Option<&'s Field> {
        self.ranks.last().map(|rank| self.field(*rank))
    }

    fn pop(&mut self) {
        self.ranks = self.ranks.split_last().map_or(&[], |(_, rest)| rest);
    }

    /// Splits off the trailing fields that the message `tag` contains.
    fn split_off(&mut self, tag: u32) -> Self {
        let others = |rank: &u16| self.field(*rank).inside.get(self.level) != Some(&tag);
        let at = self.ranks.iter().rposition(others).map_or(0, |at| at + 1);
        let (rest, split) = self.ranks.split_at(at);
        self.ranks = rest;
        Self { ranks: split, level: self.level + 1, ..*self }
    }
}
