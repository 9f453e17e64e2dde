//! The types of expressions, and the declarations of values by callers.

use std::fmt;
use std::sync::Arc;

pub(crate) mod declaration;

pub(crate) use declaration::{Declaration, Object};

/// The maximum number of composite nodes of an expression's type. Types share their parts, so the
/// type of a short expression could have any number, and all walks are limited to this one.
pub(crate) const NODES_MAX: usize = 1_000;

/// The type of an expression.
#[derive(Clone, Debug)]
pub enum Type {
    /// A type that is only known at evaluation.
    Dyn,
    /// The type of an expression with an issue.
    Error,
    /// `null`.
    Null,
    /// `bool`.
    Bool,
    /// A 64-bit integer.
    Int,
    /// An unsigned 64-bit integer.
    Uint,
    /// A floating-point number.
    Double,
    /// Text.
    String,
    /// Bytes.
    Bytes,
    /// A timestamp.
    Timestamp,
    /// A duration.
    Duration,
    /// A list with items of one type.
    List(Arc<Self>),
    /// A map with keys of one type and values of one type.
    Map(Arc<(Self, Self)>),
    /// An object with declared fields.
    Object(Arc<Object>),
    /// A type of Kubernetes' libraries that is declared like an object but has no fields.
    Struct(&'static str),
    /// Any other type of Kubernetes' libraries.
    Opaque(&'static str),
    /// A type that expressions can construct for patches: `Object`, `Object.spec` etc., or
    /// `JSONPatch`.
    Made(Arc<str>),
    /// An optional value.
    Optional(Arc<Self>),
    /// The type of a type; `None` for the type of all types.
    Type(Option<Arc<Self>>),
    /// A type parameter.
    Param(u32),
}

impl Type {
    /// A list of `items`.
    pub fn list(items: Self) -> Self {
        Self::List(Arc::new(items))
    }

    /// A map.
    pub fn map(keys: Self, values: Self) -> Self {
        Self::Map(Arc::new((keys, values)))
    }

    /// An optional value.
    pub fn optional(inner: Self) -> Self {
        Self::Optional(Arc::new(inner))
    }

    pub(crate) fn type_of(inner: Self) -> Self {
        Self::Type(Some(Arc::new(inner)))
    }

    /// The type of a declaration.
    pub fn of(declared: &Declaration) -> Self {
        match declared {
            Declaration::Dyn { .. } | Declaration::IntOrString { .. } => Self::Dyn,
            Declaration::Bool => Self::Bool,
            Declaration::Int => Self::Int,
            Declaration::Double => Self::Double,
            Declaration::String { .. } => Self::String,
            Declaration::Bytes { .. } => Self::Bytes,
            Declaration::Duration => Self::Duration,
            Declaration::Date | Declaration::DateTime => Self::Timestamp,
            Declaration::List(list) => Self::list(Self::of(&list.items)),
            Declaration::Map(map) => Self::map(Self::String, Self::of(&map.values)),
            Declaration::Object(object) => Self::Object(Arc::clone(object)),
            Declaration::Nullable(inner) => Self::of(inner),
            Declaration::Optional(inner) => Self::optional(Self::of(inner)),
            Declaration::Composed(object) => Self::Object(Arc::clone(object)),
            Declaration::Typed(found) => found.clone(),
        }
    }

    pub(crate) fn is_dyn_or_error(&self) -> bool {
        matches!(self, Self::Dyn | Self::Error)
    }

    /// Whether the type has type arguments.
    pub(crate) fn is_composite(&self) -> bool {
        matches!(self, Self::List(_) | Self::Map(_) | Self::Optional(_) | Self::Type(Some(_)))
    }

    /// Whether both types are identical in all parts.
    pub(crate) fn is_exactly(&self, other: &Self) -> bool {
        self.is_exactly_within(other, &mut { NODES_MAX })
    }

    /// As [`Self::is_exactly`], visiting at most `left` composite nodes; larger types are unequal.
    pub(crate) fn is_exactly_within(&self, other: &Self, left: &mut usize) -> bool {
        if self.is_composite() {
            let Some(less) = left.checked_sub(1) else { return false };
            *left = less;
        }
        match (self, other) {
            (Self::List(a), Self::List(b)) | (Self::Optional(a), Self::Optional(b)) => {
                a.is_exactly_within(b, left)
            }
            (Self::Map(a), Self::Map(b)) => {
                a.0.is_exactly_within(&b.0, left) && a.1.is_exactly_within(&b.1, left)
            }
            (Self::Object(a), Self::Object(b)) => Arc::ptr_eq(a, b),
            (Self::Struct(a), Self::Struct(b)) | (Self::Opaque(a), Self::Opaque(b)) => a == b,
            (Self::Made(a), Self::Made(b)) => a == b,
            (Self::Type(a), Self::Type(b)) => match (a, b) {
                (Some(a), Some(b)) => a.is_exactly_within(b, left),
                (None, None) => true,
                _ => false,
            },
            (Self::Param(a), Self::Param(b)) => a == b,
            _ => std::mem::discriminant(self) == std::mem::discriminant(other),
        }
    }

    /// The type arguments.
    pub(crate) fn parameters(&self) -> Vec<&Self> {
        match self {
            Self::List(inner) | Self::Optional(inner) => vec![inner],
            Self::Map(pair) => vec![&pair.0, &pair.1],
            Self::Type(Some(inner)) => vec![inner],
            _ => Vec::new(),
        }
    }

    /// The type with its arguments replaced.
    pub(crate) fn map_parameters(&self, replace: &mut impl FnMut(&Self) -> Self) -> Self {
        match self {
            Self::List(inner) => Self::list(replace(inner)),
            Self::Optional(inner) => Self::optional(replace(inner)),
            Self::Map(pair) => Self::map(replace(&pair.0), replace(&pair.1)),
            Self::Type(Some(inner)) => Self::type_of(replace(inner)),
            other => other.clone(),
        }
    }
}

impl PartialEq for Type {
    fn eq(&self, other: &Self) -> bool {
        self.is_exactly(other)
    }
}

/// Displays the type as in error messages; the parts beyond the size limit are left out.
impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write(f, &mut { NODES_MAX })
    }
}

impl Type {
    /// Writes at most `left` composite nodes.
    fn write(&self, f: &mut fmt::Formatter<'_>, left: &mut usize) -> fmt::Result {
        if self.is_composite() {
            let Some(less) = left.checked_sub(1) else { return f.write_str("...") };
            *left = less;
        }
        let name = match self {
            Self::Dyn => "dyn",
            Self::Error => "!error!",
            Self::Null => "null",
            Self::Bool => "bool",
            Self::Int => "int",
            Self::Uint => "uint",
            Self::Double => "double",
            Self::String => "string",
            Self::Bytes => "bytes",
            Self::Timestamp => "timestamp",
            Self::Duration => "duration",
            Self::List(_) => "list",
            Self::Map(_) => "map",
            Self::Object(object) => object.name(),
            Self::Struct(name) | Self::Opaque(name) => name,
            Self::Made(name) => name,
            Self::Optional(_) => "optional_type",
            Self::Type(_) => "type",
            Self::Param(number) => return write!(f, "_var{number}"),
        };
        f.write_str(name)?;
        for (at, inner) in self.parameters().into_iter().enumerate() {
            f.write_str(if at == 0 { "(" } else { ", " })?;
            inner.write(f, left)?;
        }
        f.write_str(if self.is_composite() { ")" } else { "" })
    }
}
