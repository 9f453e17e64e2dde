//! Builds objects of struct types while they are decoded. Members arrive in any order; at the end,
//! missing and zero ones are treated as their [`Presence`] says. Every decoder builds structs with
//! [`Members`], so the results are identical.

use std::borrow::Cow;

use pintle_value::{Map, Str, Value};

use crate::{
    Field, Presence, Schema, Shape, Type, TypeId,
    table::Names,
    zero::{is_zero, zero},
};

/// A struct type: its id and name, its fields, and their indices sorted by name.
#[derive(Clone, Copy)]
pub(crate) struct Struct<'s> {
    pub(crate) ty: TypeId,
    pub(crate) name: &'s str,
    names: Names<'s>,
    /// The fields that are written even if they are missing, by name.
    always_written: &'s [u16],
}

impl<'s> Struct<'s> {
    /// The struct type with this id; `None` for other shapes.
    #[inline]
    pub(crate) fn of(schema: &'s Schema, ty: TypeId) -> Option<Self> {
        let Type { name, shape: Shape::Struct { fields, by_name, .. } } = schema.get(ty) else {
            return None;
        };
        let index = schema.index();
        let (names, always_written) = (index.names(ty, fields, by_name), index.always_written(ty));
        Some(Self { ty, name, names, always_written })
    }

    /// The field of a rank.
    #[inline]
    pub(crate) fn field(&self, rank: u16) -> &'s Field {
        self.names.field(rank)
    }

    /// The field of a rank that may be too high.
    #[inline]
    pub(crate) fn by_rank(&self, rank: u16) -> Option<&'s Field> {
        self.names.by_rank(rank)
    }

    /// The rank of the field `name`.
    #[inline]
    pub(crate) fn rank(&self, name: &str) -> Option<u16> {
        self.names.rank(name)
    }
}

/// The members of the structs that are being decoded, innermost last. Each has the rank of its
/// field; those of a struct are sorted by it.
#[derive(Default)]
pub(crate) struct Members {
    members: Vec<(u16, Value)>,
}

/// The beginning of a struct's part of [`Members`].
#[derive(Clone, Copy)]
pub(crate) struct Base(usize);

impl Members {
    /// Begins a struct.
    pub(crate) const fn open(&self) -> Base {
        Base(self.members.len())
    }

    /// Sets a member, replacing an earlier one of the same name. Returns whether it is the first.
    #[inline]
    pub(crate) fn put(&mut self, base: Base, rank: u16, value: Value) -> bool {
        // Most members arrive in order.
        if self.members[base.0..].last().is_none_or(|(last, _)| *last < rank) {
            self.members.push((rank, value));
            return true;
        }
        self.put_before_last(base, rank, value)
    }

    fn put_before_last(&mut self, base: Base, rank: u16, value: Value) -> bool {
        let place = self.find(base, rank);
        match place {
            Ok(at) => self.members[at].1 = value,
            Err(at) => self.members.insert(at, (rank, value)),
        }
        place.is_err()
    }

    /// Whether a member is present.
    pub(crate) fn has(&self, base: Base, rank: u16) -> bool {
        self.find(base, rank).is_ok()
    }

    /// Appends an item to a list.
    pub(crate) fn push(&mut self, base: Base, rank: u16, item: Value) {
        let at = self.find(base, rank).unwrap_or_else(|at| {
            self.members.insert(at, (rank, Value::Array(Vec::new())));
            at
        });
        if let Value::Array(items) = &mut self.members[at].1 {
            items.push(item);
        }
    }

    /// Ends a struct and returns its object.
    pub(crate) fn close(&mut self, schema: &Schema, of: &Struct<'_>, base: Base) -> Value {
        for &rank in of.always_written {
            if let Err(at) = self.find(base, rank) {
                self.members.insert(at, (rank, Value::Null));
            }
        }
        let given = &mut self.members[base.0..];
        let mut members = Vec::with_capacity(given.len());
        for (rank, value) in given {
            let field = of.field(*rank);
            if value.is_null() {
                match field.presence {
                    Presence::Pointer | Presence::OmitZero | Presence::Distinct => continue,
                    Presence::Always => *value = zero(schema, field.ty),
                    Presence::Null => {}
                }
            } else if field.presence == Presence::OmitZero && is_zero(schema, field.ty, value) {
                continue;
            }
            members.push((name(field), std::mem::take(value)));
        }
        self.members.truncate(base.0);
        Value::Object(Map::from_sorted(members))
    }

    /// The index of a member, or the index at which it would be inserted. The search runs
    /// backwards, because most members arrive in order, and is short, because built-in types have
    /// few fields; those of structural types are decoded as the entries of a map.
    fn find(&self, base: Base, rank: u16) -> Result<usize, usize> {
        let given = &self.members[base.0..];
        match given.iter().rposition(|(other, _)| *other <= rank) {
            Some(at) if given[at].0 == rank => Ok(base.0 + at),
            Some(at) => Err(base.0 + at + 1),
            None => Err(base.0),
        }
    }
}

/// The name of a field as a key. Names of the built-in table are not allocated, however long.
fn name(field: &Field) -> Str {
    match &field.name {
        Cow::Borrowed(name) if name.len() > size_of::<Str>() => Str::const_new(name),
        name => Str::from(&**name),
    }
}
