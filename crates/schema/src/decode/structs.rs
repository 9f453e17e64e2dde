//! Decodes structs.

use pintle_value::{
    Value,
    token::{Kind, Tokens},
};

use super::{Decoder, FieldPath, Result, Step};
use crate::{Problem, TypeId, members::Struct};

impl<T: Tokens> Decoder<'_, T> {
    /// Decodes the next value as a struct.
    #[inline(never)]
    pub(super) fn structure(&mut self, ty: TypeId, path: &FieldPath<'_>) -> Result<Value> {
        if !self.begins(Kind::Object, ty, path)? {
            return Ok(Value::Null);
        }
        self.members_of(ty, path)
    }

    /// Decodes the members of a struct that has begun.
    pub(super) fn members_of(&mut self, ty: TypeId, path: &FieldPath<'_>) -> Result<Value> {
        let schema = self.schema;
        let Some(of) = Struct::of(schema, ty) else { return self.untyped_members(path) };
        let base = self.members.open();
        let mut last = None;
        while let Some(rank) = self.next_field(&of, last, path)? {
            last = Some(rank);
            let field = of.field(rank);
            let path = path.then(Step::Field { name: &field.name, of: of.name });
            let value = self.value(field.ty, &path)?;
            if !self.members.put(base, rank, value) {
                self.problems.add(|| Problem::Duplicate(path.dotted()));
            }
        }
        Ok(self.members.close(schema, &of, base))
    }

    /// Reads the key of the next member that the struct declares, and returns its rank. The member
    /// before had the rank `last`.
    #[inline]
    fn next_field(
        &mut self,
        of: &Struct<'_>,
        last: Option<u16>,
        path: &FieldPath<'_>,
    ) -> Result<Option<u16>> {
        let next = self.successors.of(of.ty, last);
        if of.by_rank(*next).is_some_and(|field| self.tokens.key_is(&field.name)) {
            return Ok(Some(*next));
        }
        while let Some(key) = self.tokens.key()? {
            if let Some(rank) = of.rank(key) {
                *next = rank;
                return Ok(Some(rank));
            }
            let is_embedded = self.is_structural && !path.is_in("metadata");
            let problems = if is_embedded { &mut self.embedded } else { &mut self.problems };
            problems.add(|| Problem::Unknown(path.then(Step::Key(key)).dotted()));
            self.tokens.skip()?;
        }
        Ok(None)
    }
}

/// For each field, the one that followed it last, by rank. Objects of a type mostly have the same
/// members in the same order, and it is faster to compare a key with a name than to read it and
/// look it up.
///
/// The table is small: fields share entries, so an entry is only a guess.
pub(super) struct Successors([u16; ENTRIES]);

const ENTRIES: usize = 256;

impl Default for Successors {
    fn default() -> Self {
        Self([0; ENTRIES])
    }
}

impl Successors {
    /// The successor of the field of a rank, or the first field.
    #[inline]
    fn of(&mut self, ty: TypeId, last: Option<u16>) -> &mut u16 {
        let last = last.map_or(0, |rank| usize::from(rank) + 1);
        &mut self.0[(31 * ty.0 as usize + last) % ENTRIES]
    }
}
