//! Structs: members by name, and what becomes of those that are missing or zero.

use pintle_value::{
    Map, Str, Value,
    token::{Kind, Tokens},
};

use super::{Decoder, Place, Result, Step, note};
use crate::{
    Field, Presence, Problem, Shape, TypeId,
    zero::{is_zero, zero},
};

impl<T: Tokens> Decoder<'_, T> {
    /// The next value as a struct.
    pub(super) fn structure(&mut self, ty: TypeId, place: &Place<'_>) -> Result<Value> {
        if !self.begins(Kind::Object, ty, place)? {
            return Ok(Value::Null);
        }
        let schema = self.schema;
        let of = &schema.get(ty).name;
        let Shape::Struct { fields, by_name, .. } = &schema.get(ty).shape else {
            return self.untyped_members(place);
        };
        let base = self.members.open(by_name.len());
        while let Some(key) = self.tokens.key()? {
            let Some(rank) = schema.index().rank(ty, fields, by_name, key) else {
                let is_embedded = self.is_structural && !place.is_in("metadata");
                let problems = if is_embedded { &mut self.embedded } else { &mut self.problems };
                note(problems, Problem::Unknown, &place.then(Step::Key(key)));
                self.tokens.skip()?;
                continue;
            };
            let field = &fields[usize::from(by_name[usize::from(rank)])];
            let place = place.then(Step::Field { name: &field.name, of });
            let value = self.value(field.ty, &place)?;
            if !self.members.put(base, rank, value) {
                note(&mut self.problems, Problem::Duplicate, &place);
            }
        }
        for &rank in schema.index().filled(ty) {
            self.members.put_if_absent(base, rank);
        }
        Ok(self.settle(base, fields, by_name))
    }

    /// Makes the object of the members from `base` on.
    fn settle(&mut self, base: Base, fields: &[Field], by_name: &[u16]) -> Value {
        let schema = self.schema;
        let given = self.members.close(base);
        let mut members = Vec::with_capacity(given.len());
        for (rank, value) in given {
            let field = &fields[usize::from(by_name[usize::from(rank)])];
            let kept = match (field.presence, value) {
                (Presence::Pointer | Presence::OmitZero, Value::Null) => continue,
                (Presence::OmitZero, value) if is_zero(schema, field.ty, &value) => continue,
                (Presence::Always, Value::Null) => zero(schema, field.ty),
                (_, value) => value,
            };
            members.push((name(field), kept));
        }
        Value::Object(Map::from_sorted(members))
    }
}

/// The members of the structs that are being read, innermost last.
#[derive(Default)]
pub(super) struct Members {
    /// Each with the rank of its field.
    members: Vec<(u16, Value)>,
    /// Bits by rank: which members there are.
    present: Vec<u64>,
}

/// Where a struct's part of [`Members`] begins.
#[derive(Clone, Copy)]
pub(super) struct Base {
    members: usize,
    present: usize,
}

impl Members {
    /// Begins a struct of so many fields.
    fn open(&mut self, fields: usize) -> Base {
        let base = Base { members: self.members.len(), present: self.present.len() };
        self.present.resize(base.present + fields.div_ceil(64), 0);
        base
    }

    /// Sets a member, which replaces an earlier one of the same name; whether it is the first.
    fn put(&mut self, base: Base, rank: u16, value: Value) -> bool {
        let first = self.mark(base, rank);
        if first {
            self.members.push((rank, value));
        } else if let Some((_, earlier)) =
            self.members[base.members..].iter_mut().find(|(other, _)| *other == rank)
        {
            *earlier = value;
        }
        first
    }

    fn put_if_absent(&mut self, base: Base, rank: u16) {
        if self.mark(base, rank) {
            self.members.push((rank, Value::Null));
        }
    }

    /// Notes that a member is there; whether it was not before.
    fn mark(&mut self, base: Base, rank: u16) -> bool {
        let word = &mut self.present[base.present + usize::from(rank / 64)];
        let bit = 1 << (rank % 64);
        let first = *word & bit == 0;
        *word |= bit;
        first
    }

    /// Ends a struct: its members, sorted by name.
    fn close(&mut self, base: Base) -> std::vec::Drain<'_, (u16, Value)> {
        self.present.truncate(base.present);
        let members = &mut self.members[base.members..];
        if !members.is_sorted_by_key(|(rank, _)| *rank) {
            members.sort_unstable_by_key(|(rank, _)| *rank);
        }
        self.members.drain(base.members..)
    }
}

/// A field's name for the tree; those of the built-in table cost no allocation however long they are.
fn name(field: &Field) -> Str {
    match field.name {
        std::borrow::Cow::Borrowed(name) => Str::const_new(name),
        std::borrow::Cow::Owned(ref name) => Str::from(name.as_str()),
    }
}
