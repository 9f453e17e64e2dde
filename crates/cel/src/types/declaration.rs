//! What a variable holds: types as a schema declares them, with what evaluation and the cost need to
//! know beyond the type, such as formats and greatest sizes.

use std::collections::BTreeMap;
use std::sync::Arc;

use pintle_value::Str;

use crate::types::Type;

/// The type of a variable, field, item or value, made by the caller from its schema.
///
/// Sizes are upstream's `MaxElements`: characters of text, items of a list, entries of a map. They
/// bound the estimated cost.
#[derive(Clone, Debug)]
pub enum Declaration {
    /// Any JSON value, its type unknown until evaluation.
    Dyn {
        /// The greatest size.
        size_max: u64,
    },
    /// An integer or a string.
    IntOrString {
        /// The greatest size, if it is a string.
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
        /// The greatest length.
        size_max: u64,
    },
    /// Bytes, written in base64.
    Bytes {
        /// The greatest length.
        size_max: u64,
    },
    /// A duration, written as Go's or as OpenAPI's format has it.
    Duration,
    /// A day, written as RFC 3339's full date.
    Date,
    /// A point in time, written as RFC 3339 has it.
    DateTime,
    /// A list.
    List(Arc<List>),
    /// A map with text as keys.
    Map(Arc<Map>),
    /// An object with known fields.
    Object(Arc<Object>),
    /// What may be `null`.
    Nullable(Arc<Self>),
    /// What may be absent: the value of the variable is an optional.
    Optional(Arc<Self>),
    /// Named values that are found when they are wanted ([`crate::Composition`]).
    Composed(Arc<Object>),
    /// What an expression comes to, or what only functions look into.
    Typed(Type),
}

/// A list's declaration.
#[derive(Clone, Debug)]
pub struct List {
    /// What its items are.
    pub items: Declaration,
    /// What lists are equal, and what adding one to another does.
    pub merge: Merge,
    /// The greatest number of items.
    pub size_max: u64,
}

/// `x-kubernetes-list-type`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Merge {
    /// A list as it stands.
    Atomic,
    /// A set of scalars: order doesn't count, and adding adds what is missing.
    Set,
    /// Objects with these keys: order doesn't count, and adding replaces those with equal keys.
    Keys(Box<[Str]>),
}

/// A map's declaration.
#[derive(Clone, Debug)]
pub struct Map {
    /// What its values are.
    pub values: Declaration,
    /// The greatest number of entries.
    pub size_max: u64,
}

/// An object's declaration. Objects are of the same type if they have the same declaration.
#[derive(Debug)]
pub struct Object {
    name: Str,
    /// By the name that expressions use, sorted.
    fields: Box<[Field]>,
    /// The indices of fields by their names in data.
    by_name: BTreeMap<Str, usize>,
}

/// A field of an object.
#[derive(Debug)]
pub struct Field {
    /// The name that expressions use: escaped where it is no identifier.
    identifier: Str,
    name: Str,
    declaration: Declaration,
}

impl Object {
    /// An object type with a name (for messages) and its fields by their names in data. Fields whose
    /// names can't be escaped are no part of the type.
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

    /// As [`Object::new`], where the names of fields are identifiers, so that none is escaped.
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

    /// The name for messages.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The field that expressions call `identifier`. Words of the language can be written as they are.
    pub(crate) fn field(&self, identifier: &str) -> Option<&Field> {
        self.field_index(identifier).map(|at| &self.fields[at])
    }

    /// The field with this identifier, which is escaped.
    pub(crate) fn escaped_field(&self, identifier: &str) -> Option<&Field> {
        self.field(identifier).filter(|field| field.identifier == identifier)
    }

    /// The index of that field, by which it is found without searching.
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

    /// The field that data call `name`.
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

    /// The declaration without what only says that it may be absent or `null`.
    pub(crate) fn present(&self) -> &Self {
        match self {
            Self::Nullable(inner) | Self::Optional(inner) => inner.present(),
            other => other,
        }
    }

    /// The greatest size.
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

/// The longest text of a request: what a request of 3 MiB has room for between quotes.
pub const SIZE_MAX: u64 = 3 * 1024 * 1024 - 2;
