//! Objects of struct types while they are read: members by rank, in any order, and at the end what
//! becomes of those that are missing or zero. Each encoding makes its structs here, so that they come
//! out the same.

use pintle_value::{Map, Str, Value};

use crate::{
    Field, Presence, Schema, TypeId,
    zero::{is_zero, zero},
};

/// A struct type: its id, its fields, and the indices of these sorted by name.
#[derive(Clone, Copy)]
pub(crate) struct Struct<'s> {
    pub(crate) ty: TypeId,
    pub(crate) fields: &'s [Field],
    pub(crate) by_name: &'s [u16],
}

impl<'s> Struct<'s> {
    /// The field of a rank.
    #[inline]
    pub(crate) fn field(&self, rank: u16) -> &'s Field {
        &self.fields[usize::from(self.by_name[usize::from(rank)])]
    }
}

/// The members of the structs that are being read, innermost last.
#[derive(Default)]
pub(crate) struct Members {
    /// Each with the rank of its field.
    members: Vec<(u16, Value)>,
    /// Bits by rank: which members there are.
    present: Vec<u64>,
    /// The members of the struct that ends, by rank: the rank, and in the lower half the index. Sorting these is
    /// faster than moving values.
    order: Vec<u32>,
}

/// Where a struct's part of [`Members`] begins.
#[derive(Clone, Copy)]
pub(crate) struct Base {
    members: usize,
    present: usize,
}

impl Members {
    /// Begins a struct.
    pub(crate) fn open(&mut self, of: &Struct<'_>) -> Base {
        let base = Base { members: self.members.len(), present: self.present.len() };
        self.present.resize(base.present + of.by_name.len().div_ceil(64), 0);
        base
    }

    /// Sets a member, which replaces an earlier one of the same name; whether it is the first.
    pub(crate) fn put(&mut self, base: Base, rank: u16, value: Value) -> bool {
        let first = self.mark(base, rank);
        if first {
            self.members.push((rank, value));
        } else if let Some(earlier) = self.earlier(base, rank) {
            *earlier = value;
        }
        first
    }

    /// Whether a member is there.
    pub(crate) fn has(&self, base: Base, rank: u16) -> bool {
        self.present[base.present + usize::from(rank / 64)] & 1 << (rank % 64) != 0
    }

    /// Adds an item to a list.
    pub(crate) fn push(&mut self, base: Base, rank: u16, item: Value) {
        if self.mark(base, rank) {
            self.members.push((rank, Value::Array(Vec::new())));
        }
        if let Some(Value::Array(items)) = self.earlier(base, rank) {
            items.push(item);
        }
    }

    /// Ends a struct: the object of its members.
    pub(crate) fn close(&mut self, schema: &Schema, of: &Struct<'_>, base: Base) -> Value {
        for &rank in schema.index().filled(of.ty) {
            if self.mark(base, rank) {
                self.members.push((rank, Value::Null));
            }
        }
        self.present.truncate(base.present);
        let given = &mut self.members[base.members..];
        self.order.clear();
        self.order.extend((0..).zip(&*given).map(|(at, (rank, _))| u32::from(*rank) << 16 | at));
        self.order.sort_unstable();
        let mut members = Vec::with_capacity(given.len());
        for entry in &self.order {
            let (rank, value) = std::mem::take(&mut given[usize::from(*entry as u16)]);
            let field = of.field(rank);
            let member = match (field.presence, value) {
                (Presence::Pointer | Presence::OmitZero | Presence::Distinct, Value::Null) => {
                    continue;
                }
                (Presence::OmitZero, value) if is_zero(schema, field.ty, &value) => continue,
                (Presence::Always, Value::Null) => zero(schema, field.ty),
                (_, value) => value,
            };
            members.push((name(field), member));
        }
        self.members.truncate(base.members);
        Value::Object(Map::from_sorted(members))
    }

    /// Where an earlier value is. One that comes again comes soon.
    fn earlier(&mut self, base: Base, rank: u16) -> Option<&mut Value> {
        let mut given = self.members[base.members..].iter_mut().rev();
        given.find(|(other, _)| *other == rank).map(|(_, value)| value)
    }

    /// Notes that a member is there; whether it was not before.
    fn mark(&mut self, base: Base, rank: u16) -> bool {
        let word = &mut self.present[base.present + usize::from(rank / 64)];
        let bit = 1 << (rank % 64);
        let first = *word & bit == 0;
        *word |= bit;
        first
    }
}

/// A field's name for the tree; those of the built-in table cost no allocation however long they are.
fn name(field: &Field) -> Str {
    match field.name {
        std::borrow::Cow::Borrowed(name) => Str::const_new(name),
        std::borrow::Cow::Owned(ref name) => Str::from(name.as_str()),
    }
}
