//! Builds objects of struct types while they are decoded. Members arrive in any order; at the end,
//! missing and zero ones are treated as their [`Presence`] says. Every decoder builds structs with
//! [`Members`], so the results are identical.

use pintle_value::{Map, Str, Value};

use crate::{
    Field, Presence, Schema, TypeId,
    zero::{is_zero, zero},
};

/// A struct type: its id, its fields, and their indices sorted by name.
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

/// The members of the structs that are being decoded, innermost last.
#[derive(Default)]
pub(crate) struct Members {
    /// Each member with the rank of its field.
    members: Vec<(u16, Value)>,
    /// A bit for each rank: whether the member is present.
    present: Vec<u64>,
    /// The members of the struct that ends, by rank: the rank in the upper half, the index in the
    /// lower. Sorting these is faster than moving values.
    order: Vec<u32>,
}

/// The beginning of a struct's part of [`Members`].
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

    /// Sets a member, replacing an earlier one of the same name. Returns whether it is the first.
    pub(crate) fn put(&mut self, base: Base, rank: u16, value: Value) -> bool {
        let first = self.mark(base, rank);
        if first {
            self.members.push((rank, value));
        } else if let Some(earlier) = self.earlier(base, rank) {
            *earlier = value;
        }
        first
    }

    /// Whether a member is present.
    pub(crate) fn has(&self, base: Base, rank: u16) -> bool {
        self.present[base.present + usize::from(rank / 64)] & 1 << (rank % 64) != 0
    }

    /// Appends an item to a list.
    pub(crate) fn push(&mut self, base: Base, rank: u16, item: Value) {
        if self.mark(base, rank) {
            self.members.push((rank, Value::Array(Vec::new())));
        }
        if let Some(Value::Array(items)) = self.earlier(base, rank) {
            items.push(item);
        }
    }

    /// Ends a struct and returns its object.
    pub(crate) fn close(&mut self, schema: &Schema, of: &Struct<'_>, base: Base) -> Value {
        for &rank in schema.index().always_written(of.ty) {
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

    /// Returns an earlier value. The search runs backwards, as a repeated member usually follows
    /// soon.
    fn earlier(&mut self, base: Base, rank: u16) -> Option<&mut Value> {
        let mut given = self.members[base.members..].iter_mut().rev();
        given.find(|(other, _)| *other == rank).map(|(_, value)| value)
    }

    /// Marks a member as present. Returns whether it was absent.
    fn mark(&mut self, base: Base, rank: u16) -> bool {
        let word = &mut self.present[base.present + usize::from(rank / 64)];
        let bit = 1 << (rank % 64);
        let first = *word & bit == 0;
        *word |= bit;
        first
    }
}

/// The name of a field as a key. Names of the built-in table are not allocated, however long.
fn name(field: &Field) -> Str {
    match field.name {
        std::borrow::Cow::Borrowed(name) => Str::const_new(name),
        std::borrow::Cow::Owned(ref name) => Str::from(name.as_str()),
    }
}
