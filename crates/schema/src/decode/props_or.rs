//! Decodes the union types (see [`PropsOr`]). Upstream decodes their content separately: unknown
//! and duplicate fields in it are not reported, and an error in it takes precedence.

use std::mem;

use pintle_value::{
    Value,
    token::{Token, Tokens},
};

use super::{Decoder, FieldPath, FirstErrors, Result};
use crate::{
    Error,
    props_or::{Other, PropsOr},
};

impl<T: Tokens> Decoder<'_, T> {
    /// Decodes the next value as one of a union type.
    pub(super) fn props_or(&mut self, of: PropsOr, path: &FieldPath<'_>) -> Result<Value> {
        let problems = mem::take(&mut self.problems);
        let errors = mem::take(&mut self.errors);
        let value = self.one_of(of, path)?;
        let FirstErrors { scalar, other } = mem::replace(&mut self.errors, errors);
        self.problems = problems;
        if let Some(error) = scalar.or(other) {
            self.errors.scalar.get_or_insert(error);
        }
        Ok(value)
    }

    fn one_of(&mut self, of: PropsOr, path: &FieldPath<'_>) -> Result<Value> {
        match (self.tokens.value()?, of.other) {
            (Token::Object, _) => self.members_of(of.schema, path),
            (Token::Array, Other::Schemas | Other::Strings) => match of.item(self.schema) {
                // An empty list is dropped.
                Some(item) => Ok(match self.items(item, path)? {
                    Value::Array(items) if items.is_empty() => Value::Null,
                    items => items,
                }),
                None => self.untyped_items(path),
            },
            (Token::Bool(allows), Other::Bool) => Ok(Value::Bool(allows)),
            (Token::Null, _) => Ok(Value::Null),
            (token, other) => {
                let found = token.kind();
                self.tokens.skip_rest(found)?;
                if other == Other::Bool {
                    self.errors.scalar.get_or_insert(Error::NeitherBoolNorSchema);
                }
                Ok(Value::Null)
            }
        }
    }
}
