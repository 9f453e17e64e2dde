//! Declarations of variables: types as a schema declares them, with additional information for
//! evaluation and cost, such as formats and maximum sizes.

use std::collections::BTreeMap;
use std::sync::Arc;

use pintle_value::Str;

use crate::types::Type;

/// The declaration of a variable, field, item or value, made by the caller from its schema.
///
/// Sizes are upstream's `MaxElements`: characters of text, items of a list, entries of a map. They
/// bound the estimated cost.
#[derive(Clone, Debug)]
pub enum Declaration {
    /// A JSON value whose type is only known at evaluation.
    Dyn {
        /// The maximum size.
        size_max: u64,
    },
    /// An integer or a string.
    IntOrString {
        /// The maximum size, if it is a string.
        size_max: u64,
    },
    /// `true` or `false`.
    Bool,
    /// An integer.
    Int,
    /// A number, which may be written as an integer.
    Double,
    /// Text.
    String {
        /// The maximum length.
        size_max: u64,
    },
    /// Bytes, in base64.
    Bytes {
        /// The maximum length.
        size_max: u64,
    },
    /// A duration in Go's format or that of OpenAPI.
    Duration,
    /// A date in the full-date format of RFC 3339.
    Date,
    /// A timestamp in the format of RFC 3339.
    DateTime,
    /// A list.
    List(Arc<List>),
    /// A map with text keys.
    Map(Arc<Map>),
    /// An object with declared fields.
    Object(Arc<Object>),
    /// A nullable value.
    Nullable(Arc<Self>),
    /// An optional value.
    Optional(Arc<Self>),
    /// Named values that are evaluated on demand ([`crate::Composition`]).
    Composed(Arc<Object>),
    /// The result of an expression, or a value that only functions can inspect.
    Typed(Type),
}

/// A list's declaration.
#[derive(Clone, Debug)]
pub struct List {
    /// The declaration of its items.
    pub items: Declaration,
    /// How lists are compared and added.
    pub merge: Merge,
    /// The maximum number of items.
    pub size_max: u64,
}

/// `x-kubernetes-list-type`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Merge {
    /// A plain list.
    Atomic,
    /// A set of scalars: the order is irrelevant, and adding inserts the missing items.
    Set,
    /// Objects with these keys: the order is irrelevant, and adding replaces objects with equal
    /// keys.
    Keys(Box<[Str]>),
}

/// A map's declaration.
#[derive(Clone, Debug)]
pub struct Map {
    /// The declaration of its values.
    pub values: Declaration,
    /// The maximum number of entries.
    pub size_max: u64,
}

/// An object's declaration. Objects have the same type if they have the same declaration.
#[derive(Debug)]
pub struct Object {
    name: Str,
    /// The fields sorted by their names in expressions.
    fields: Box<[Field]>,
    /// The indices of fields by their names in data.
    by_name: BTreeMap<Str, usize>,
}

/// A field of an object.
#[derive(Debug)]
pub struct Field {
    /// The name in expressions: escaped if the name in data is not an identifier.
    identifier: Str,
    name: Str,
    declaration: Declaration,
}

impl Object {
    /// An object type with a name (for messages) and its fields by their names in data. Fields
    /// whose names cannot be escaped are left out.
    pub fn new(
        name: impl Into<Str>,
        fields: impl IntoIterator<Item = (Str, Declaration)>,
    ) -> Arc<Self> {
        let named = |(name, declaration): (Str, Declaration)| {
            let identifier = crate::escape::escape(&name)?.into();
            Some(Field { identifier, name, declaration })
        };
        Self::of_fields(name, fields.into_iter().filter_map(named).collect())
    }

    /// Like [`Object::new`], for field names that are identifiers, which are not escaped.
    pub fn of_identifiers(
        name: impl Into<Str>,
        fields: impl IntoIterator<Item = (Str, Declaration)>,
    ) -> Arc<Self> {
        let named = |(name, declaration): (Str, Declaration)| Field {
            identifier: name.clone(),
            name,
            declaration,
        };
        Self::of_fields(name, fields.into_iter().map(named).collect())
    }

    fn of_fields(name: impl Into<Str>, mut fields: Vec<Field>) -> Arc<Self> {
        fields.sort_by(|a, b| a.identifier.cmp(&b.identifier));
        fields.dedup_by(|a, b| a.identifier == b.identifier);
        let by_name = fields.iter().enumerate().map(|(i, f)| (f.name.clone(), i)).collect();
        Arc::new(Self { name: name.into(), fields: fields.into(), by_name })
    }

    /// The name in messages.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The field for `identifier`. Reserved words may be unescaped.
    pub(crate) fn field(&self, identifier: &str) -> Option<&Field> {
        self.field_index(identifier).map(|at| &self.fields[at])
    }

    /// The field for this escaped identifier.
    pub(crate) fn escaped_field(&self, identifier: &str) -> Option<&Field> {
        self.field(identifier).filter(|field| field.identifier == identifier)
    }

    /// The index of the field for `identifier`, for access without searching.
    pub(crate) fn field_index(&self, identifier: &str) -> Option<usize> {
        let find =
            |name: &str| self.fields.binary_search_by(|f| f.identifier.as_str().cmp(name)).ok();
        find(identifier).or_else(|| {
            let reserved = crate::escape::is_reserved(identifier);
            reserved.then(|| find(&format!("__{identifier}__"))).flatten()
        })
    }

    pub(crate) fn field_at(&self, index: usize) -> &Field {
        &self.fields[index]
    }

    /// The field with this name in data.
    pub(crate) fn field_in_data(&self, name: &str) -> Option<&Field> {
        self.by_name.get(name).map(|i| &self.fields[*i])
    }
}

impl Field {
    pub(crate) fn identifier(&self) -> &str {
        &self.identifier
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn declaration(&self) -> &Declaration {
        &self.declaration
    }
}

impl Declaration {
    /// Text of any length that a request can have.
    pub const ANY_STRING: Self = Self::String { size_max: SIZE_MAX };

    /// A list.
    pub fn list(items: Self, merge: Merge, size_max: u64) -> Self {
        Self::List(Arc::new(List { items, merge, size_max }))
    }

    /// A map.
    pub fn map(values: Self, size_max: u64) -> Self {
        Self::Map(Arc::new(Map { values, size_max }))
    }

    /// The declaration without optionality and nullability.
    pub(crate) fn present(&self) -> &Self {
        match self {
            Self::Nullable(inner) | Self::Optional(inner) => inner.present(),
            other => other,
        }
    }

    /// The maximum size.
    pub(crate) fn size_max(&self) -> u64 {
        match self.present() {
            Self::Dyn { size_max }
            | Self::IntOrString { size_max }
            | Self::String { size_max }
            | Self::Bytes { size_max } => *size_max,
            Self::Duration | Self::DateTime => 32,
            Self::Date => 12,
            Self::List(list) => list.size_max,
            Self::Map(map) => map.size_max,
            _ => 0,
        }
    }
}

/// The length of the longest text that fits between quotes in a request of 3 MiB.
pub const SIZE_MAX: u64 = 3 * 1024 * 1024 - 2;
