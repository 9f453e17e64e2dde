//! Decodes values of structural types (see [`Schema`](crate::Schema)). Undeclared members are
//! dropped or kept as the type says. A value of a wrong type is kept, because validation rejects it
//! later, but its members are undeclared. But a wrong type in the type or object metadata of an
//! embedded object is an error.

use pintle_meta::field;
use pintle_value::{
    Path, Str, Value, json,
    token::{Kind, Token, Tokens},
};

use super::{Decoder, FieldPath, Result, Step};
use crate::{Error, Problem, Scalar, Shape, Type, TypeId, Unknown};

impl<T: Tokens> Decoder<'_, T> {
    /// Decodes the next value, of a structural or another type.
    #[inline(never)]
    pub(super) fn structural(&mut self, ty: TypeId, path: &FieldPath<'_>) -> Result<Value> {
        let begun = match self.tokens.value()? {
            Token::Array => Kind::Array,
            Token::Object => Kind::Object,
            scalar => return scalar.scalar(),
        };
        match (&self.schema.get(ty).shape, begun) {
            (Shape::Struct { .. }, Kind::Object) => self.structural_members(ty, path),
            (Shape::Map { value, .. }, Kind::Object) => {
                let base = self.entries.len();
                while let Some(key) = self.tokens.key()? {
                    let key = Str::from(key);
                    let value = self.value(*value, &path.then(Step::Key(&key)))?;
                    self.entries.push((key, value));
                }
                Ok(self.map_from(base, path))
            }
            (Shape::List { item: ty, .. }, Kind::Array) => {
                let base = self.items.len();
                while self.tokens.item()? {
                    let at = path.then(Step::Index(self.items.len() - base));
                    let item = self.value(*ty, &at)?;
                    self.items.push(item);
                }
                Ok(self.list_from(base))
            }
            (Shape::Scalar(Scalar::Any) | Shape::Struct { unknown: Unknown::Keep, .. }, _) => {
                match begun {
                    Kind::Array => self.untyped_items(path),
                    _ => self.untyped_members(path),
                }
            }
            (_, Kind::Array) => self.undeclared_items(path),
            _ => self.undeclared_members(path),
        }
    }

    /// Decodes a list where the type has none. As in upstream, nothing in it is declared.
    fn undeclared_items(&mut self, path: &FieldPath<'_>) -> Result<Value> {
        let base = self.items.len();
        while self.tokens.item()? {
            let at = path.then(Step::Index(self.items.len() - base));
            let item = match self.tokens.value()? {
                Token::Array => self.undeclared_items(&at)?,
                Token::Object => self.undeclared_members(&at)?,
                scalar => scalar.scalar()?,
            };
            self.items.push(item);
        }
        Ok(self.list_from(base))
    }

    /// Decodes an object where the type has none: all its members are undeclared.
    fn undeclared_members(&mut self, path: &FieldPath<'_>) -> Result<Value> {
        while let Some(key) = self.tokens.key()? {
            self.problems.add(|| Problem::Unknown(path.then(Step::Key(key)).dotted()));
            self.tokens.skip()?;
        }
        Ok(Value::object())
    }

    fn structural_members(&mut self, ty: TypeId, path: &FieldPath<'_>) -> Result<Value> {
        let of = self.schema.get(ty);
        let Shape::Struct { unknown, .. } = &of.shape else { return self.untyped_members(path) };
        let embedded = !path.is_root() && self.is_object(of);
        let base = self.entries.len();
        while let Some(key) = self.tokens.key()? {
            let key = Str::from(key);
            let value = match (of.field(&key), unknown) {
                (Some(_), _) if embedded && matches!(&*key, "apiVersion" | "kind") => {
                    let path = path.then(Step::Embedded(&key));
                    let value = self.untyped(&path)?;
                    if value.as_str().is_none() {
                        self.record_embedded_error(&path, &value, "must be a string");
                    }
                    value
                }
                (Some(field), _) if embedded && !self.schema.is_structural(field.ty) => {
                    match self.metadata(field.ty, &path.then(Step::Embedded(&key)))? {
                        Value::Null => Value::object(), // upstream writes the empty metadata
                        metadata => metadata,
                    }
                }
                (Some(field), _) => {
                    let path = path.then(Step::Field { name: &field.name, of: &of.name });
                    let value = self.value(field.ty, &path)?;
                    if value.is_null() && !self.schema.is_structural(field.ty) {
                        continue; // a built-in type treats null as absent
                    }
                    value
                }
                (None, Unknown::Keep) => self.untyped(&path.then(Step::Key(&key)))?,
                (None, Unknown::Drop) => {
                    self.problems.add(|| Problem::Unknown(path.then(Step::Key(&key)).dotted()));
                    self.tokens.skip()?;
                    continue;
                }
            };
            self.entries.push((key, value));
        }
        Ok(self.map_from(base, path))
    }

    /// Whether a structural type is that of whole objects, whose metadata has the built-in type.
    fn is_object(&self, of: &Type) -> bool {
        of.field("metadata").is_some_and(|metadata| !self.schema.is_structural(metadata.ty))
    }

    /// Decodes the metadata of an embedded object. Its errors contain the whole metadata.
    fn metadata(&mut self, ty: TypeId, path: &FieldPath<'_>) -> Result<Value> {
        let text = self.tokens.json()?;
        let mut decoder = Decoder::new(self.schema, json::Reader::new(&text));
        decoder.is_structural = true;
        let value = decoder.value(ty, path)?;
        self.problems.append(decoder.problems);
        self.embedded.append(decoder.embedded);
        if let Some(why) = decoder.errors.scalar.or(decoder.errors.other) {
            self.record_embedded_error(path, &json::parse(text.as_bytes())?, &why.to_string());
        }
        Ok(value)
    }

    fn record_embedded_error(&mut self, path: &FieldPath<'_>, value: &Value, why: &str) {
        self.errors.other.get_or_insert_with(|| {
            let error = field::Error::invalid(&Path::new(&path.dotted()), value, why);
            Error::Embedded(error.to_string())
        });
    }
}
