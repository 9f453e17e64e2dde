//! Decodes messages to objects.
//!
//! The result is normalized as by [`decode`](crate::decode()): scalars are canonical, and
//! [`Members`] treats missing and zero values.

use std::ops::Range;

use pintle_value::{DEPTH_MAX, Map, Str, Value, json};

use super::{
    is_wrapped,
    wire::{Fields, Wire},
};
use crate::{
    Error, Presence, Scalar, Schema, Shape, TypeId,
    members::{Base, Members, Struct},
    zero::{is_zero, zero, zero_entry},
};

/// Decodes messages.
pub(super) struct Messages<'s, 'b> {
    schema: &'s Schema,
    /// The number of open lists and objects.
    depth: usize,
    members: Members,
    /// The nested messages of the structs that are being decoded, with the ranks of their fields.
    /// They are decoded at the end of their struct, because a message may come in parts, which are
    /// merged.
    parts: Vec<(u16, &'b [u8])>,
    /// The map entries of the structs that are being decoded, with the ranks of the maps' fields.
    entries: Vec<(u16, Str, Value)>,
}

/// A struct that is being decoded.
struct Open<'s> {
    of: Struct<'s>,
    base: Base,
    /// The first of its messages and entries.
    parts: usize,
    entries: usize,
}

impl<'s, 'b> Messages<'s, 'b> {
    pub(super) fn new(schema: &'s Schema) -> Self {
        let (parts, entries) = (Vec::new(), Vec::new());
        Self { schema, depth: 0, members: Members::default(), parts, entries }
    }

    pub(super) const fn schema(&self) -> &'s Schema {
        self.schema
    }

    pub(super) const fn depth(&self) -> usize {
        self.depth
    }

    /// Decodes a message of the struct type `ty`; other types have no messages.
    pub(super) fn read(&mut self, ty: TypeId, message: &'b [u8]) -> Result<Value, Error> {
        self.read_parts(ty, [message])
    }

    /// Decodes a message that came in parts.
    pub(super) fn read_parts(
        &mut self,
        ty: TypeId,
        parts: impl IntoIterator<Item = &'b [u8]>,
    ) -> Result<Value, Error> {
        let start = self.parts.len();
        self.parts.extend(parts.into_iter().map(|part| (0, part)));
        let value = self.joined(ty, start..self.parts.len())?;
        self.parts.truncate(start);
        Ok(value)
    }

    /// Decodes the message that consists of these [`parts`](Self::parts).
    fn joined(&mut self, ty: TypeId, parts: Range<usize>) -> Result<Value, Error> {
        let Some(of) = Struct::of(self.schema, ty) else { return Ok(zero(self.schema, ty)) };
        self.open()?;
        let (base, own_parts, entries) =
            (self.members.open(), self.parts.len(), self.entries.len());
        let open = Open { of, base, parts: own_parts, entries };
        for part in parts {
            self.embedded(&open, &[], self.parts[part].1)?;
        }
        self.structs(&open)?;
        self.maps(&open);
        self.close();
        Ok(self.members.close(self.schema, &of, base))
    }

    /// Decodes the embedded message at `inside`, whose members JSON has inline.
    fn embedded(&mut self, open: &Open<'s>, inside: &[u32], bytes: &'b [u8]) -> Result<(), Error> {
        for field in Fields::new(bytes) {
            let (tag, wire) = field?;
            match self.target_of_tag(&open.of, inside, tag) {
                Some(TagTarget::Field(rank)) => self.member(open, rank, wire)?,
                Some(TagTarget::Embedded(inside)) => {
                    self.embedded(open, inside, wire.bytes("embedded")?)?;
                }
                None => {}
            }
        }
        Ok(())
    }

    /// The meaning of a field number in the message at `inside`.
    #[inline]
    fn target_of_tag(&self, of: &Struct<'s>, inside: &[u32], tag: u32) -> Option<TagTarget<'s>> {
        let index = self.schema.index();
        if inside.is_empty()
            && let Some(rank) = index.rank_of_tag(of.ty, tag)
        {
            return Some(TagTarget::Field(rank));
        }
        index.tagged(of.ty).iter().find_map(|rank| {
            let field = of.field(*rank);
            let rest = field.inside.strip_prefix(inside)?;
            match rest.first() {
                None if field.tag == tag => Some(TagTarget::Field(*rank)),
                Some(first) if *first == tag => {
                    Some(TagTarget::Embedded(&field.inside[..=inside.len()]))
                }
                _ => None,
            }
        })
    }

    /// Begins a list or an object.
    pub(super) fn open(&mut self) -> Result<(), Error> {
        self.depth += 1;
        if self.depth > DEPTH_MAX { Err(pintle_value::Error::Depth.into()) } else { Ok(()) }
    }

    pub(super) const fn close(&mut self) {
        self.depth -= 1;
    }

    /// Decodes one field of a message.
    fn member(&mut self, open: &Open<'s>, rank: u16, wire: Wire<'b>) -> Result<(), Error> {
        let field = open.of.field(rank);
        let name = field.name.as_ref();
        match &self.schema.get(field.ty).shape {
            Shape::Struct { .. } => self.parts.push((rank, wire.bytes(name)?)),
            Shape::List { item, .. } if !is_wrapped(self.schema, open.of.ty, name) => {
                self.open()?;
                let base = open.base;
                self.items(*item, wire, name, |of, item| of.members.push(base, rank, item))?;
                self.close();
            }
            Shape::Map { value, .. } => {
                self.open()?;
                let (key, value) = self.entry(*value, wire.bytes(name)?, name)?;
                self.entries.push((rank, key, value));
                self.close();
            }
            Shape::Scalar(_) | Shape::List { .. } => {
                let value = self.value(field.ty, wire, name)?;
                // Go's encoder also writes zero values of plain fields.
                let is_left_out = field.presence == Presence::OmitZero
                    && is_zero(self.schema, field.ty, &value)
                    && !self.members.has(open.base, rank);
                if !is_left_out {
                    self.members.put(open.base, rank, value);
                }
            }
        }
        Ok(())
    }

    /// Decodes the nested messages of a struct after all its fields were read.
    fn structs(&mut self, open: &Open<'s>) -> Result<(), Error> {
        let end = self.parts.len();
        self.parts[open.parts..].sort_by_key(|(rank, _)| *rank);
        let mut start = open.parts;
        while start < end {
            let rank = self.parts[start].0;
            let same = self.parts[start..end].iter().take_while(|(other, _)| *other == rank);
            let next = start + same.count();
            let value = self.joined(open.of.field(rank).ty, start..next)?;
            self.members.put(open.base, rank, value);
            start = next;
        }
        self.parts.truncate(open.parts);
        Ok(())
    }

    /// Builds the maps of a struct after all its fields were read.
    fn maps(&mut self, open: &Open<'s>) {
        self.entries[open.entries..].sort_by_key(|(rank, ..)| *rank);
        let mut entries = self.entries.drain(open.entries..).peekable();
        while let Some((rank, ..)) = entries.peek() {
            let (rank, mut map) = (*rank, Vec::new());
            while let Some((_, key, value)) = entries.next_if(|(other, ..)| *other == rank) {
                map.push((key, value));
            }
            let map = Map::from_unsorted(map, |_| {});
            self.members.put(open.base, rank, Value::Object(map));
        }
    }

    /// Passes the next item of a list to `add`, or several if they are packed.
    fn items(
        &mut self,
        item: TypeId,
        wire: Wire<'b>,
        name: &str,
        mut add: impl FnMut(&mut Self, Value),
    ) -> Result<(), Error> {
        let double = match self.schema.get(item).shape {
            Shape::Scalar(Scalar::Bool | Scalar::Int32 | Scalar::Int64) => Some(false),
            Shape::Scalar(Scalar::Float64) => Some(true),
            _ => None,
        };
        match (wire, double) {
            (Wire::Bytes(bytes), Some(double)) => {
                for number in Fields::new(bytes).packed(double) {
                    let value = self.value(item, number?, name)?;
                    add(self, value);
                }
            }
            _ => {
                let value = self.value(item, wire, name)?;
                add(self, self.or_zero(item, value));
            }
        }
        Ok(())
    }

    /// Decodes an entry of a map: a message of key and value.
    fn entry(&mut self, ty: TypeId, bytes: &'b [u8], name: &str) -> Result<(Str, Value), Error> {
        let (mut key, mut value) = (Str::default(), None);
        for field in Fields::new(bytes) {
            match field? {
                (1, wire) => key = Str::from(&*json::text(wire.bytes(name)?)),
                (2, wire) => value = Some(self.value(ty, wire, name)?),
                _ => {}
            }
        }
        let value = value.unwrap_or_else(|| match self.schema.get(ty).shape {
            // Go begins with empty, non-nil lists and bytes.
            Shape::List { .. } => Value::Array(Vec::new()),
            Shape::Scalar(Scalar::Bytes) => Value::from(""),
            _ => Value::Null,
        });
        Ok((key, self.or_zero(ty, value)))
    }

    /// Replaces a missing value in a list or map by the zero value, as Go does.
    fn or_zero(&self, ty: TypeId, value: Value) -> Value {
        if value.is_null() { zero_entry(self.schema, ty) } else { value }
    }

    /// Decodes an item, the value of an entry, or a scalar. Returns `null` where Go has a zero
    /// value.
    fn value(&mut self, ty: TypeId, wire: Wire<'b>, name: &str) -> Result<Value, Error> {
        match &self.schema.get(ty).shape {
            Shape::Scalar(scalar) => self.scalar(*scalar, ty, wire, name),
            Shape::Struct { .. } => self.read(ty, wire.bytes(name)?),
            Shape::List { item, .. } => {
                self.open()?;
                let mut items = Vec::new();
                for field in Fields::new(wire.bytes(name)?) {
                    if let (1, wire) = field? {
                        self.items(*item, wire, name, |_, item| items.push(item))?;
                    }
                }
                self.close();
                Ok(Value::Array(items))
            }
            // Protobuf has no maps in lists or maps.
            Shape::Map { .. } => Ok(Value::Null),
        }
    }
}

/// The meaning of a field number in a message.
enum TagTarget<'s> {
    Field(u16),
    /// A message whose members JSON has inline; the path to it.
    Embedded(&'s [u32]),
}
