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
        while let Some(key) = self.tokens.key()? {
            let Some(rank) = of.rank(key) else {
                let is_embedded = self.is_structural && !path.is_in("metadata");
                let problems = if is_embedded { &mut self.embedded } else { &mut self.problems };
                problems.add(|| Problem::Unknown(path.then(Step::Key(key)).dotted()));
                self.tokens.skip()?;
                continue;
            };
            let field = of.field(rank);
            let path = path.then(Step::Field { name: &field.name, of: of.name });
            let value = self.value(field.ty, &path)?;
            if !self.members.put(base, rank, value) {
                self.problems.add(|| Problem::Duplicate(path.dotted()));
            }
        }
        Ok(self.members.close(schema, &of, base))
    }
}
