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
        let base = self.members.len();
        while let Some(key) = self.tokens.key()? {
            let Some(rank) = schema.index().rank(ty, fields, by_name, key) else {
                note(&mut self.problems, Problem::Unknown, &place.then(Step::Key(key)));
                self.tokens.skip()?;
                continue;
            };
            let field = &fields[usize::from(by_name[rank])];
            let place = place.then(Step::Field { name: &field.name, of });
            let value = self.value(field.ty, &place)?;
            self.member(base, rank, value, &place);
        }
        self.fill(base, ty);
        Ok(self.settle(base, fields, by_name))
    }

    /// Keeps a member of the struct whose members begin at `base`; a later one of the same name
    /// replaces it.
    fn member(&mut self, base: usize, rank: usize, value: Value, place: &Place<'_>) {
        let rank =
            u16::try_from(rank).expect("by_name has at most as many entries as u16 has values");
        let known = &mut self.members[base..];
        match known.iter_mut().find(|(other, _)| *other == rank) {
            Some((_, earlier)) => {
                *earlier = value;
                note(&mut self.problems, Problem::Duplicate, place);
            }
            None => self.members.push((rank, value)),
        }
    }

    /// Adds the missing members that are written all the same, and sorts all by name.
    fn fill(&mut self, base: usize, ty: TypeId) {
        let schema = self.schema;
        for &rank in schema.index().filled(ty) {
            if self.members[base..].iter().all(|(other, _)| *other != rank) {
                self.members.push((rank, Value::Null));
            }
        }
        let members = &mut self.members[base..];
        if !members.is_sorted_by_key(|(rank, _)| *rank) {
            members.sort_unstable_by_key(|(rank, _)| *rank);
        }
    }

    /// Makes the object of the members from `base` on.
    fn settle(&mut self, base: usize, fields: &[Field], by_name: &[u16]) -> Value {
        let schema = self.schema;
        let mut members = Vec::with_capacity(self.members.len() - base);
        for (rank, value) in self.members.drain(base..) {
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

/// A field's name for the tree; those of the built-in table cost no allocation however long they are.
fn name(field: &Field) -> Str {
    match field.name {
        std::borrow::Cow::Borrowed(name) => Str::const_new(name),
        std::borrow::Cow::Owned(ref name) => Str::from(name.as_str()),
    }
}
