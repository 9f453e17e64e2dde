//! Messages to the members of objects.

use pintle_value::{DEPTH_MAX, Map, Str, Value, json};

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
        let Some(mut found) = Found::of(self.schema, ty, members) else { return Ok(()) };
        let result = self.embedded(ty, &[], bytes, &mut found);
        *members = found.into_members();
        result
    }

    /// Reads the message within a message that `inside` leads to, whose members JSON has inline.
    fn embedded(
        &mut self,
        ty: TypeId,
        inside: &[u32],
        bytes: &[u8],
        found: &mut Found<'s>,
    ) -> Result<(), Error> {
        let ranks = self.schema.index().tagged(ty);
        let mut places = Places { ranks, inside, last: 0 };
        self.open()?;
        for field in Fields::new(bytes) {
            let (tag, wire) = field?;
            match places.find(found, tag) {
                Some(Place::Field(rank)) => self.member(ty, rank, wire, found)?,
                Some(Place::Embedded(inside)) => {
                    self.embedded(ty, inside, wire.bytes("embedded")?, found)?;
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

    /// Adds what one field of a message says to what was found.
    fn member(
        &mut self,
        holder: TypeId,
        rank: u16,
        wire: Wire<'_>,
        found: &mut Found<'s>,
    ) -> Result<(), Error> {
        let field = found.field(rank);
        let name = field.name.as_ref();
        match &self.schema.get(field.ty).shape {
            Shape::Struct { .. } => {
                let members = found.entry(rank, Value::object).make_object();
                self.read(field.ty, wire.bytes(name)?, members)
            }
            Shape::List { .. } if is_wrapped(self.schema, holder, name) => {
                let list = self.value(field.ty, wire, name)?;
                *found.entry(rank, Value::default) = list;
                Ok(())
            }
            Shape::List { item, .. } => {
                let list = found.entry(rank, || Value::Array(Vec::new()));
                list.as_array_mut().map_or(Ok(()), |items| self.items(*item, wire, name, items))
            }
            Shape::Map { value, .. } => {
                let map = found.entry(rank, Value::object).make_object();
                self.entry(*value, wire.bytes(name)?, name, map)
            }
            Shape::Scalar(_) => {
                let value = self.value(field.ty, wire, name)?;
                self.set(field, rank, value, found);
                Ok(())
            }
        }
    }

    /// Sets a scalar. Go's encoder writes zero values of plain fields too.
    fn set(&self, field: &Field, rank: u16, value: Value, found: &mut Found<'s>) {
        let missing = match field.presence {
            Presence::OmitZero => is_zero(self.schema, field.ty, &value),
            _ => value.is_null(),
        };
        if missing {
            found.remove(rank);
        } else {
            *found.entry(rank, Value::default) = value;
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

/// The members of a struct that were found, by the ranks of their names, in any order: a few numbers
/// are found and sorted sooner than as many names.
struct Found<'s> {
    fields: &'s [Field],
    by_name: &'s [u16],
    values: Vec<(u16, Value)>,
}

impl<'s> Found<'s> {
    /// Goes on with the members of a struct; `None` for other types.
    fn of(schema: &'s Schema, ty: TypeId, members: &mut Map) -> Option<Self> {
        let Shape::Struct { fields, by_name, .. } = &schema.get(ty).shape else { return None };
        let before = std::mem::take(members).into_iter().filter_map(|(name, value)| {
            Some((schema.index().rank(ty, fields, by_name, &name)?, value))
        });
        Some(Self { fields, by_name, values: before.collect() })
    }

    fn field(&self, rank: u16) -> &'s Field {
        &self.fields[usize::from(self.by_name[usize::from(rank)])]
    }

    /// Where a value is; one that comes again comes at once.
    fn position(&self, rank: u16) -> Option<usize> {
        self.values.iter().rposition(|(other, _)| *other == rank)
    }

    /// The value of a field, made if there is none.
    fn entry(&mut self, rank: u16, make: impl FnOnce() -> Value) -> &mut Value {
        let at = self.position(rank).unwrap_or_else(|| {
            self.values.push((rank, make()));
            self.values.len() - 1
        });
        &mut self.values[at].1
    }

    fn remove(&mut self, rank: u16) {
        if let Some(at) = self.position(rank) {
            self.values.swap_remove(at);
        }
    }

    fn into_members(mut self) -> Map {
        self.values.sort_unstable_by_key(|(rank, _)| *rank);
        let name =
            |rank| Str::from(&*self.fields[usize::from(self.by_name[usize::from(rank)])].name);
        Map::from_sorted(self.values.into_iter().map(|(rank, value)| (name(rank), value)).collect())
    }
}

/// What the numbers in a message stand for.
struct Places<'s, 'i> {
    /// The fields in the order of their numbers, by the ranks of their names.
    ranks: &'s [u16],
    /// The way to the message.
    inside: &'i [u32],
    /// What was found last. Fields are written in order, so that the next one is near.
    last: usize,
}

enum Place<'s> {
    Field(u16),
    /// A message whose members JSON has inline; the way to it.
    Embedded(&'s [u32]),
}

impl Places<'_, '_> {
    fn find<'s>(&mut self, of: &Found<'s>, tag: u32) -> Option<Place<'s>> {
        let found = (self.last..self.ranks.len()).chain(0..self.last).find_map(|at| {
            let field = of.field(self.ranks[at]);
            let rest = match self.inside {
                [] => &*field.inside,
                inside => field.inside.strip_prefix(inside)?,
            };
            let place = match rest.first() {
                None if field.tag == tag => Place::Field(self.ranks[at]),
                Some(first) if *first == tag => {
                    Place::Embedded(&field.inside[..=self.inside.len()])
                }
                _ => return None,
            };
            Some((at, place))
        });
        let (at, place) = found?;
        self.last = at;
        Some(place)
    }
}
