//! The types that are a schema or something else, which upstream decodes apart: what is unknown or
//! comes twice in them is not told, and a refusal in them is the first.

use std::mem;

use pintle_value::{
    Value,
    token::{Token, Tokens},
};

use super::{Decoder, FieldPath, Refusals, Result};
use crate::{
    Error,
    alternative::{Alternative, Other},
};

impl<T: Tokens> Decoder<'_, T> {
    /// The next value as one of such a type.
    pub(super) fn alternative(&mut self, of: Alternative, path: &FieldPath<'_>) -> Result<Value> {
        let problems = mem::take(&mut self.problems);
        let refusals = mem::take(&mut self.refusals);
        let value = self.one_of(of, path)?;
        let Refusals { scalar, other } = mem::replace(&mut self.refusals, refusals);
        self.problems = problems;
        if let Some(refusal) = scalar.or(other) {
            self.refusals.scalar.get_or_insert(refusal);
        }
        Ok(value)
    }

    fn one_of(&mut self, of: Alternative, path: &FieldPath<'_>) -> Result<Value> {
        match (self.tokens.value()?, of.other) {
            (Token::Object, _) => self.members_of(of.schema, path),
            (Token::Array, Other::Schemas | Other::Strings) => match of.item(self.schema) {
                // Without items it is neither.
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
                    self.refusals.scalar.get_or_insert(Error::NeitherBoolNorSchema);
                }
                Ok(Value::Null)
            }
        }
    }
}
