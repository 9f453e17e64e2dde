//! Decodes bytes to trees in one pass, guided by a schema.
//!
//! The result equals what upstream's Go types would encode after decoding the body: unknown fields
//! are dropped, quantities and times are canonical, zero values are dropped or written as
//! [`Presence`](crate::Presence) says. A patched tree goes through the same code as a stream of
//! tokens ([`conform`]), so it cannot differ from a body with the same content.
//!
//! The precedence of errors is Go's. Go checks the syntax before it decodes; then a type with its
//! own decoder fails at once, and other errors are reported after everything was read. So the order
//! is: syntax, `FirstErrors::scalar`, `FirstErrors::other`.

pub mod base64;
mod conversion;
pub mod duplicates;
mod field_path;
mod props_or;
mod scalar;
mod structs;
mod structural;
#[cfg(test)]
mod tests;

use pintle_value::{
    Map, Str, TreeReader, Value, json,
    token::{Kind, Token, Tokens, taken_from},
    yaml,
};

use crate::{
    Error, PROBLEMS_MAX, Problem, Problems, Schema, Shape, TypeId, Unknown,
    members::Members,
    zero::{zero, zero_entry},
};
pub use conversion::conversion_error;
use field_path::{FieldPath, Step};
use structs::Successors;

/// The text formats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// JSON.
    Json,
    /// YAML, one document.
    Yaml,
}

/// A decoded object.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Decoded {
    /// The object, normalized as upstream's typed round trip does.
    pub value: Value,
    /// Unknown and duplicate fields in upstream's order (see [`decode`]), each once. There are at
    /// most [`PROBLEMS_MAX`] of the text, of the object, and of the metadata of embedded objects.
    pub problems: Vec<Problem>,
}

/// Decodes an object of the type `ty`.
///
/// Problems are reported in document order where a built-in type guides the decoding of JSON.
/// Otherwise upstream reports duplicate members first, and then unknown ones in its decoded tree,
/// whose members are sorted. For YAML it likewise reports the first type error in sorted order.
pub fn decode(schema: &Schema, ty: TypeId, bytes: &[u8], format: Format) -> Result<Decoded, Error> {
    match format {
        Format::Json => {
            let text = json::text(bytes);
            let decoded = Decoder::new(schema, json::Reader::new(&text)).root(ty)?;
            if decoded.problems.is_empty() || !schema.is_structural(ty) {
                return Ok(decoded);
            }
            let (tree, duplicates) = duplicates::read(bytes)?;
            sorted(schema, ty, tree, duplicates)
        }
        Format::Yaml => {
            let reader = yaml::Reader::new(yaml::text(bytes)?)?;
            let repeated = reader.duplicates().map(Problem::Repeated);
            let repeated: Vec<Problem> = repeated.take(PROBLEMS_MAX).collect();
            // Of duplicate members upstream decodes only the last.
            if repeated.is_empty() {
                match Decoder::new(schema, reader).root(ty) {
                    Ok(decoded) if decoded.problems.is_empty() => return Ok(decoded),
                    Ok(_) | Err(Error::Type { .. }) => {}
                    Err(error) => return Err(error),
                }
            }
            sorted(schema, ty, yaml::parse(bytes)?, repeated)
        }
    }
}

/// Decodes the sorted tree of a text, and adds its problems to those of the text.
fn sorted(
    schema: &Schema,
    ty: TypeId,
    mut tree: Value,
    mut problems: Vec<Problem>,
) -> Result<Decoded, Error> {
    problems.extend(conform(schema, ty, &mut tree)?);
    Ok(Decoded { value: tree, problems })
}

/// Checks and normalizes a tree (the result of a patch) as [`decode`] does bytes. After an error
/// the tree is unchanged.
pub fn conform(schema: &Schema, ty: TypeId, value: &mut Value) -> Result<Vec<Problem>, Error> {
    let decoded = Decoder::new(schema, TreeReader::new(value)).root(ty)?;
    *value = decoded.value;
    Ok(decoded.problems)
}

/// A syntax error stops the decoder at once; other errors are recorded while it continues.
type Result<T, E = pintle_value::Error> = std::result::Result<T, E>;

struct Decoder<'s, T> {
    schema: &'s Schema,
    tokens: T,
    /// Whether the object is of a structural type, in which only the metadata has a built-in type.
    is_structural: bool,
    problems: Problems,
    /// The problems in the metadata of embedded objects, which upstream reports last.
    embedded: Problems,
    errors: FirstErrors,
    members: Members,
    successors: Successors,
    /// The items of the lists and the entries of the maps that are being decoded, innermost last.
    /// Each list or map can thus be allocated once, at its final size.
    items: Vec<Value>,
    entries: Vec<(Str, Value)>,
}

/// The first error of each precedence.
#[derive(Default)]
struct FirstErrors {
    /// An error of a type with its own decoder: a time, a quantity, an integer or string.
    scalar: Option<Error>,
    /// Any other error.
    other: Option<Error>,
}

impl<'s, T: Tokens> Decoder<'s, T> {
    fn new(schema: &'s Schema, tokens: T) -> Self {
        Self {
            schema,
            tokens,
            is_structural: false,
            problems: Problems::default(),
            embedded: Problems::default(),
            errors: FirstErrors::default(),
            members: Members::default(),
            successors: Successors::default(),
            items: Vec::new(),
            entries: Vec::new(),
        }
    }

    fn root(mut self, ty: TypeId) -> Result<Decoded, Error> {
        self.is_structural = self.schema.is_structural(ty);
        let value = self.value(ty, &FieldPath::ROOT)?;
        self.tokens.end()?;
        if let Some(error) = self.errors.scalar.or(self.errors.other) {
            return Err(error);
        }
        let value = if value.is_null() { zero(self.schema, ty) } else { value };
        let mut problems = self.problems.into_vec();
        if self.is_structural {
            problems.sort_by_key(|problem| !problem.path().starts_with("metadata."));
        }
        problems.append(&mut self.embedded.into_vec());
        Ok(Decoded { value, problems })
    }

    /// Decodes the next value as one of type `ty`. Returns `null` for a missing value, which the
    /// caller replaces as its type requires. Most values are scalars, so what the others need is not
    /// inlined here.
    fn value(&mut self, ty: TypeId, path: &FieldPath<'_>) -> Result<Value> {
        let schema = self.schema;
        if schema.is_structural(ty) {
            return self.structural(ty, path);
        }
        match &schema.get(ty).shape {
            Shape::Scalar(scalar) => self.scalar(*scalar, ty, path),
            Shape::Struct { fields, unknown: Unknown::Keep, .. } if fields.is_empty() => {
                self.untyped_object(ty, path)
            }
            Shape::Struct { .. } => self.structure(ty, path),
            Shape::Map { value, .. } => self.map(ty, *value, path),
            Shape::List { item, .. } => self.list(ty, *item, path),
        }
    }

    #[inline(never)]
    fn list(&mut self, ty: TypeId, item_ty: TypeId, path: &FieldPath<'_>) -> Result<Value> {
        if !self.begins(Kind::Array, ty, path)? {
            return Ok(Value::Null);
        }
        self.items(item_ty, path)
    }

    /// Decodes the items of a list that has begun.
    fn items(&mut self, item_ty: TypeId, path: &FieldPath<'_>) -> Result<Value> {
        let base = self.items.len();
        while self.tokens.item()? {
            let item = self.value(item_ty, &path.then(Step::Index(self.items.len() - base)))?;
            let item = self.entry(item_ty, item);
            self.items.push(item);
        }
        Ok(self.list_from(base))
    }

    #[inline(never)]
    fn map(&mut self, ty: TypeId, value_ty: TypeId, path: &FieldPath<'_>) -> Result<Value> {
        if !self.begins(Kind::Object, ty, path)? {
            return Ok(Value::Null);
        }
        let base = self.entries.len();
        while let Some(key) = self.tokens.key()? {
            let key = Str::from(key);
            let value = self.value(value_ty, &path.then(Step::Key(&key)))?;
            let value = self.entry(value_ty, value);
            self.entries.push((key, value));
        }
        Ok(self.map_from(base, path))
    }

    /// Replaces `null` in a list or map by the zero value.
    fn entry(&self, ty: TypeId, value: Value) -> Value {
        if value.is_null() { zero_entry(self.schema, ty) } else { value }
    }

    /// Decodes a value of any type, unchanged.
    fn untyped(&mut self, path: &FieldPath<'_>) -> Result<Value> {
        match self.tokens.value()? {
            Token::Array => self.untyped_items(path),
            Token::Object => self.untyped_members(path),
            scalar => scalar.scalar(),
        }
    }

    fn untyped_items(&mut self, path: &FieldPath<'_>) -> Result<Value> {
        let base = self.items.len();
        while self.tokens.item()? {
            let item = self.untyped(&path.then(Step::Index(self.items.len() - base)))?;
            self.items.push(item);
        }
        Ok(self.list_from(base))
    }

    /// Ends a list whose items begin at `base`.
    fn list_from(&mut self, base: usize) -> Value {
        Value::Array(taken_from(&mut self.items, base))
    }

    /// Decodes an object with arbitrary members, unchanged.
    #[inline(never)]
    fn untyped_object(&mut self, ty: TypeId, path: &FieldPath<'_>) -> Result<Value> {
        if !self.begins(Kind::Object, ty, path)? {
            return Ok(Value::Null);
        }
        self.untyped_members(path)
    }

    fn untyped_members(&mut self, path: &FieldPath<'_>) -> Result<Value> {
        let base = self.entries.len();
        while let Some(key) = self.tokens.key()? {
            let key = Str::from(key);
            let value = self.untyped(&path.then(Step::Key(&key)))?;
            self.entries.push((key, value));
        }
        Ok(self.map_from(base, path))
    }

    /// Ends a map whose entries begin at `base`.
    fn map_from(&mut self, base: usize, path: &FieldPath<'_>) -> Value {
        let duplicate = |key: &Str| {
            self.problems.add(|| Problem::Duplicate(path.then(Step::Key(key)).dotted()));
        };
        let entries = taken_from(&mut self.entries, base);
        Value::Object(Map::from_unsorted(entries, duplicate))
    }

    /// Whether the next value begins as `wanted`. `null` does not; another value is an error.
    fn begins(&mut self, wanted: Kind, ty: TypeId, path: &FieldPath<'_>) -> Result<bool> {
        let found = self.tokens.value()?.kind();
        if found == wanted {
            return Ok(true);
        }
        if found != Kind::Null {
            self.mismatch(found, ty, path)?;
        }
        Ok(false)
    }

    /// Skips a value that is not of the type `ty`, and records the error if it is the first.
    fn mismatch(&mut self, found: Kind, ty: TypeId, path: &FieldPath<'_>) -> Result<Value> {
        self.tokens.skip_rest(found)?;
        let error = self.type_error(found.name().to_owned(), ty, path);
        self.errors.other.get_or_insert(error);
        Ok(Value::Null)
    }

    fn type_error(&self, found: String, ty: TypeId, path: &FieldPath<'_>) -> Error {
        Error::Type { found, path: path.in_go_error(), expected: path.go_type(self.schema, ty) }
    }
}
