//! Messages to the members of objects.

use pintle_value::{DEPTH_MAX, Map, Value, json};

use super::{
    is_wrapped,
    wire::{Fields, Wire},
};
use crate::{Error, Field, Presence, Scalar, Schema, Shape, TypeId, zero::is_zero};

/// Reads messages.
pub(super) struct Messages<'s> {
    schema: &'s Schema,
    /// How many messages are open.
    depth: usize,
}

impl<'s> Messages<'s> {
    pub(super) const fn new(schema: &'s Schema) -> Self {
        Self { schema, depth: 0 }
    }

    pub(super) const fn schema(&self) -> &'s Schema {
        self.schema
    }

    /// Reads a message of the struct type `ty` into `members`; other types have none. A message that
    /// comes in two parts is one.
    pub(super) fn read(
        &mut self,
        ty: TypeId,
        bytes: &[u8],
        members: &mut Map,
    ) -> Result<(), Error> {
        self.embedded(ty, &[], bytes, members)
    }

    /// Reads the message within a message that `inside` leads to, whose members JSON has inline.
    fn embedded(
        &mut self,
        ty: TypeId,
        inside: &[u32],
        bytes: &[u8],
        members: &mut Map,
    ) -> Result<(), Error> {
        let Shape::Struct { fields, .. } = &self.schema.get(ty).shape else { return Ok(()) };
        self.open()?;
        for field in Fields::new(bytes) {
            let (tag, wire) = field?;
            match place(fields, inside, tag) {
                Some(Place::Field(field)) => self.member(ty, field, wire, members)?,
                Some(Place::Embedded(inside)) => {
                    self.embedded(ty, inside, wire.bytes("embedded")?, members)?;
                }
                None => {}
            }
        }
        self.close();
        Ok(())
    }

    pub(super) fn open(&mut self) -> Result<(), Error> {
        self.depth += 1;
        if self.depth > DEPTH_MAX { Err(pintle_value::Error::Depth.into()) } else { Ok(()) }
    }

    pub(super) const fn close(&mut self) {
        self.depth -= 1;
    }

    /// Adds what one field of a message says to the members.
    fn member(
        &mut self,
        holder: TypeId,
        field: &Field,
        wire: Wire<'_>,
        members: &mut Map,
    ) -> Result<(), Error> {
        let name = field.name.as_ref();
        match &self.schema.get(field.ty).shape {
            Shape::Struct { .. } => {
                let bytes = wire.bytes(name)?;
                self.read(field.ty, bytes, members.entry_object(name))
            }
            Shape::List { .. } if is_wrapped(self.schema, holder, name) => {
                let list = self.value(field.ty, wire, name)?;
                members.insert(name, list);
                Ok(())
            }
            Shape::List { item, .. } => {
                let list = members.entry_or(name, || Value::Array(Vec::new()));
                list.as_array_mut().map_or(Ok(()), |items| self.items(*item, wire, name, items))
            }
            Shape::Map { value, .. } => {
                self.entry(*value, wire.bytes(name)?, name, members.entry_object(name))
            }
            Shape::Scalar(_) => {
                let value = self.value(field.ty, wire, name)?;
                let missing = match field.presence {
                    Presence::OmitZero => is_zero(self.schema, field.ty, &value),
                    _ => value.is_null(),
                };
                // Go's encoder writes zero values of plain fields too.
                if missing {
                    members.remove(name)
                } else {
                    members.insert(name, value)
                };
                Ok(())
            }
        }
    }

    /// Adds the next item of a list, or the next few, if they are packed.
    fn items(
        &mut self,
        item: TypeId,
        wire: Wire<'_>,
        name: &str,
        items: &mut Vec<Value>,
    ) -> Result<(), Error> {
        let double = match self.schema.get(item).shape {
            Shape::Scalar(Scalar::Bool | Scalar::Int32 | Scalar::Int64) => Some(false),
            Shape::Scalar(Scalar::Float64) => Some(true),
            _ => None,
        };
        match (wire, double) {
            (Wire::Bytes(bytes), Some(double)) => {
                for number in Fields::new(bytes).packed(double) {
                    items.push(self.value(item, number?, name)?);
                }
            }
            _ => items.push(self.value(item, wire, name)?),
        }
        Ok(())
    }

    /// Adds an entry of a map: a message of key and value.
    fn entry(&mut self, ty: TypeId, bytes: &[u8], name: &str, map: &mut Map) -> Result<(), Error> {
        // Go begins with a struct, and with lists and bytes that are empty and not nil.
        let nothing = match self.schema.get(ty).shape {
            Shape::Struct { .. } => Value::Object(Map::new()),
            Shape::List { .. } => Value::Array(Vec::new()),
            Shape::Scalar(Scalar::Bytes) => Value::from(""),
            _ => Value::Null,
        };
        let (mut key, mut value) = (Default::default(), nothing);
        for field in Fields::new(bytes) {
            match field? {
                (1, wire) => key = json::text(wire.bytes(name)?),
                (2, wire) => value = self.value(ty, wire, name)?,
                _ => {}
            }
        }
        map.insert(&*key, value);
        Ok(())
    }

    /// A value that stands alone: an item, the value of an entry, a scalar. `null` where Go has a zero
    /// value, which is added later.
    pub(super) fn value(&mut self, ty: TypeId, wire: Wire<'_>, name: &str) -> Result<Value, Error> {
        let schema = self.schema;
        match &schema.get(ty).shape {
            Shape::Scalar(scalar) => self.scalar(*scalar, ty, wire, name),
            Shape::Struct { .. } => {
                let mut members = Map::new();
                self.read(ty, wire.bytes(name)?, &mut members)?;
                Ok(Value::Object(members))
            }
            Shape::List { item, .. } => {
                let mut items = Vec::new();
                for field in Fields::new(wire.bytes(name)?) {
                    if let (1, wire) = field? {
                        self.items(*item, wire, name, &mut items)?;
                    }
                }
                Ok(Value::Array(items))
            }
            // Protobuf has no maps in lists or maps.
            Shape::Map { .. } => Ok(Value::Null),
        }
    }
}

/// What a number stands for in a message.
enum Place<'s> {
    Field(&'s Field),
    /// A message whose members JSON has inline; the way to it.
    Embedded(&'s [u32]),
}

/// What the number `tag` stands for in the message that `inside` leads to.
fn place<'s>(fields: &'s [Field], inside: &[u32], tag: u32) -> Option<Place<'s>> {
    fields.iter().find_map(|field| {
        let rest = field.inside.strip_prefix(inside)?;
        match rest.first() {
            None if field.tag == tag => Some(Place::Field(field)),
            Some(first) if *first == tag => Some(Place::Embedded(&field.inside[..=inside.len()])),
            _ => None,
        }
    })
}
