//! Values during evaluation. Values from bindings borrow their trees, together with the declaration
//! that says how to read them; nothing is copied before it is used.

mod convert;
mod equal;
mod list;
pub(crate) mod made;
mod map;
mod opaque;
mod order;

use std::fmt;
use std::sync::Arc;

use crate::context::Context;
use crate::error::EvalError;
use crate::time::Timestamp;
use crate::types::Type;

pub(crate) use convert::{constant, lift, to_json};
pub(crate) use list::List;
pub(crate) use made::Made;
pub(crate) use map::{Key, Map, Owned};
pub(crate) use opaque::Opaque;
pub(crate) use order::compare;

/// The maximum nesting of concatenations in a value that is built from other named values; walking
/// them is recursive.
const CHAIN_MAX: u32 = 4_000;

/// The result of an evaluation step.
pub(crate) type Eval<'a> = Result<Val<'a>, EvalError>;

/// A value.
#[derive(Clone, Debug)]
pub(crate) enum Val<'a> {
    Null,
    Bool(bool),
    Int(i64),
    Uint(u64),
    Double(f64),
    String(Text<'a>),
    Bytes(Arc<[u8]>),
    Timestamp(Timestamp),
    /// Nanoseconds.
    Duration(i64),
    /// A type, by its name.
    Type(&'static str),
    List(List<'a>),
    Map(Map<'a>),
    Optional(Option<Arc<Val<'a>>>),
    Opaque(Arc<Opaque>),
    Made(Arc<Made<'a>>),
}

/// Text, borrowed or shared.
#[derive(Clone)]
pub(crate) enum Text<'a> {
    Borrowed(&'a str),
    Shared(Arc<str>),
}

impl std::ops::Deref for Text<'_> {
    type Target = str;

    fn deref(&self) -> &str {
        match self {
            Self::Borrowed(text) => text,
            Self::Shared(text) => text,
        }
    }
}

impl fmt::Debug for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, f)
    }
}

impl<'a> Text<'a> {
    /// A part of the text; the range must lie within it.
    pub(crate) fn slice(&self, range: std::ops::Range<usize>) -> Self {
        match self {
            Self::Borrowed(text) => Self::Borrowed(&text[range]),
            Self::Shared(text) => Self::Shared(text[range].into()),
        }
    }

    /// The number of characters.
    pub(crate) fn chars_count(&self) -> usize {
        if self.is_ascii() { self.len() } else { self.chars().count() }
    }
}

impl<'a> Val<'a> {
    pub(crate) fn string<T: Into<Arc<str>>>(text: T) -> Self {
        Self::String(Text::Shared(text.into()))
    }

    pub(crate) fn list(items: Vec<Val<'a>>) -> Self {
        Self::List(List::owned(items))
    }

    pub(crate) fn some(value: Self) -> Self {
        Self::Optional(Some(Arc::new(value)))
    }

    pub(crate) const fn none() -> Self {
        Self::Optional(None)
    }

    /// The name of the value's type, as `type` and errors use it.
    pub(crate) fn type_name(&self) -> &'static str {
        match self {
            Self::Null => "null_type",
            Self::Bool(_) => "bool",
            Self::Int(_) => "int",
            Self::Uint(_) => "uint",
            Self::Double(_) => "double",
            Self::String(_) => "string",
            Self::Bytes(_) => "bytes",
            Self::Timestamp(_) => "google.protobuf.Timestamp",
            Self::Duration(_) => "google.protobuf.Duration",
            Self::Type(_) => "type",
            Self::List(_) => "list",
            Self::Map(_) => "map",
            Self::Optional(_) => "optional_type",
            Self::Opaque(opaque) => opaque.type_name(),
            Self::Made(made) => made::kind(&made.type_name),
        }
    }

    /// Whether the value matches a declared argument, as far as this can be checked at run time:
    /// only the first item of lists and maps is checked, and the content of optionals is not.
    pub(crate) fn is_a(&self, t: &Type) -> bool {
        match t {
            Type::Dyn | Type::Error | Type::Param(_) => true,
            Type::Null => matches!(self, Self::Null),
            Type::Bool => matches!(self, Self::Bool(_)),
            Type::Int => matches!(self, Self::Int(_)),
            Type::Uint => matches!(self, Self::Uint(_)),
            Type::Double => matches!(self, Self::Double(_)),
            Type::String => matches!(self, Self::String(_)),
            Type::Bytes => matches!(self, Self::Bytes(_)),
            Type::Timestamp => matches!(self, Self::Timestamp(_)),
            Type::Duration => matches!(self, Self::Duration(_)),
            Type::List(items) => match self {
                Self::List(list) => list.get(0).is_none_or(|v| v.is_ok_and(|v| v.is_a(items))),
                _ => false,
            },
            Type::Map(pair) => match self {
                Self::Map(map) => {
                    map.first().is_none_or(|(k, v)| k.is_a(&pair.0) && v.is_a(&pair.1))
                }
                _ => false,
            },
            Type::Object(_) => matches!(self, Self::Map(_)),
            Type::Struct(name) | Type::Opaque(name) => self.type_name() == *name,
            Type::Made(name) => matches!(self, Self::Made(made) if made.type_name == *name),
            Type::Optional(_) => matches!(self, Self::Optional(_)),
            Type::Type(_) => matches!(self, Self::Type(_)),
        }
    }

    /// The size in the cost model: the length of text in characters, of bytes, lists and maps; the
    /// bytes of an address or of a range's prefix; one for all else.
    pub(crate) fn size(&self) -> u64 {
        match self {
            Self::String(text) => text.chars_count() as u64,
            Self::Bytes(bytes) => bytes.len() as u64,
            Self::List(list) => list.len(),
            Self::Map(map) => map.len() as u64,
            Self::Opaque(opaque) => opaque.size(),
            _ => 1,
        }
    }

    /// The size of the value, or of the value that it holds if it is an optional.
    pub(crate) fn inner_size(&self) -> u64 {
        match self {
            Self::Optional(Some(inner)) => inner.inner_size(),
            other => other.size(),
        }
    }

    /// Whether values, or concatenations of lists, are nested deeper than `depth`. Data is not
    /// counted, as its nesting is bounded elsewhere. Visiting values counts as work: they can share
    /// parts, which are visited each time.
    pub(crate) fn is_deeper_than(
        &self,
        depth: usize,
        context: &mut Context,
    ) -> Result<bool, EvalError> {
        let Some(below) = depth.checked_sub(1) else { return Ok(true) };
        context.visit()?;
        let mut deeper = |value: &Self| value.is_deeper_than(below, context);
        match self {
            Self::List(list) if list.depth() > CHAIN_MAX => return Ok(true),
            Self::List(list) if !list.is_of_data() => {
                for item in list.iter().filter_map(Result::ok) {
                    if deeper(&item)? {
                        return Ok(true);
                    }
                }
            }
            Self::Map(Map::Owned(entries)) => {
                for value in entries.values() {
                    if deeper(value)? {
                        return Ok(true);
                    }
                }
            }
            Self::Made(made) => {
                for value in made.fields.values() {
                    if deeper(value)? {
                        return Ok(true);
                    }
                }
            }
            Self::Optional(Some(inner)) => return deeper(inner),
            _ => {}
        }
        Ok(false)
    }

    /// Whether `optional.ofNonZeroValue` treats the value as zero.
    pub(crate) fn is_zero(&self) -> bool {
        match self {
            Self::Null => true,
            Self::Bool(b) => !b,
            Self::Int(n) => *n == 0,
            Self::Uint(n) => *n == 0,
            Self::Double(n) => *n == 0.0,
            Self::String(text) => text.is_empty(),
            Self::Bytes(bytes) => bytes.is_empty(),
            Self::Timestamp(t) => *t == Timestamp::YEAR_ONE,
            Self::Duration(nanos) => *nanos == 0,
            // Upstream's lists and maps of data have no such test.
            Self::List(list) => list.is_zero(),
            Self::Map(map) => map.is_zero(),
            Self::Made(made) => made.fields.is_empty(),
            _ => false,
        }
    }
}

/// Displays values as in error messages.
impl fmt::Display for Val<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => f.write_str("null"),
            Self::Bool(b) => write!(f, "{b}"),
            Self::Int(n) => write!(f, "{n}"),
            Self::Uint(n) => write!(f, "{n}"),
            Self::Double(n) => f.write_str(&crate::number::shortest(*n)),
            Self::String(text) => f.write_str(text),
            Self::Timestamp(t) => write!(f, "{t}"),
            Self::Duration(nanos) => f.write_str(&crate::time::duration_text(*nanos)),
            Self::Type(name) => f.write_str(name),
            Self::Optional(None) => f.write_str("optional.none()"),
            Self::Optional(Some(inner)) => write!(f, "optional({inner})"),
            Self::Opaque(opaque) => write!(f, "{opaque}"),
            other => f.write_str(other.type_name()),
        }
    }
}
