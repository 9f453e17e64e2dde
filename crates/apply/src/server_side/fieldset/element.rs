//! One element of a path: how a child is identified in its parent.

use std::borrow::{Borrow, Cow};
use std::{cmp::Ordering, fmt};

use pintle_meta::field::truncated;
use pintle_meta::quote::quote;
use pintle_value::{Str, Value, json};

use super::order;

/// Identifies a child in its parent, by names of type `N` and values of type `V`. The order of the
/// variants is the order of paths.
#[derive(Clone, Debug)]
pub enum Element<N, V> {
    /// A member of an object.
    Field(N),
    /// An item of a list, identified by the values of its key fields, which are sorted by name.
    Key(Box<[(N, V)]>),
    /// An item of a set, identified by its value.
    Value(V),
    /// An item of a list, identified by its index.
    Index(i64),
}

/// An element of a path in a set.
pub type PathElement = Element<Str, Value>;

/// An element that identifies a child of a given object.
pub(crate) type ElementRef<'v> = Element<&'v str, Cow<'v, Value>>;

impl PathElement {
    /// The member `name`.
    pub fn field(name: &str) -> Self {
        Self::Field(name.into())
    }

    /// Parses a key of FieldsV1, such as `f:spec`. `None` for a key that a later version may
    /// define; an error for a key that no version can read.
    pub fn parse(text: &str) -> Result<Option<Self>, String> {
        let (Some(sort), Some(b':')) = (text.as_bytes().first(), text.as_bytes().get(1)) else {
            return Err(match text.len() {
                0 | 1 => "key must be 2 characters long:".to_owned(),
                _ => format!("missing colon: {text}"),
            });
        };
        let rest = &text[2..];
        let read = |text: &str| json::parse(text.as_bytes()).map_err(|e| e.to_string());
        Ok(Some(match sort {
            b'f' => Self::field(rest),
            b'v' => Self::Value(read(rest)?),
            b'i' => Self::Index(rest.parse().map_err(|_| format!("invalid index: {rest}"))?),
            b'k' => match read(rest)? {
                Value::Object(fields) => Self::Key(fields.into_iter().collect()),
                _ => return Err(format!("invalid key: {rest}")),
            },
            _ => return Ok(None),
        }))
    }
}

impl ElementRef<'_> {
    pub(crate) fn to_path_element(&self) -> PathElement {
        match self {
            Self::Field(name) => PathElement::field(name),
            Self::Key(fields) => {
                let owned =
                    |(name, value): &(&str, Cow<'_, Value>)| ((*name).into(), Value::clone(value));
                PathElement::Key(fields.iter().map(owned).collect())
            }
            Self::Value(value) => PathElement::Value(Value::clone(value)),
            Self::Index(index) => PathElement::Index(*index),
        }
    }
}

impl<N: AsRef<str>, V> Element<N, V> {
    /// The item with these key fields.
    pub fn key(mut fields: Vec<(N, V)>) -> Self {
        fields.sort_by(|(a, _), (b, _)| a.as_ref().cmp(b.as_ref())); // stable, as upstream's
        Self::Key(fields.into())
    }
}

impl<N: AsRef<str>, V: Borrow<Value>> Ord for Element<N, V> {
    fn cmp(&self, other: &Self) -> Ordering {
        const fn rank<N, V>(element: &Element<N, V>) -> u8 {
            match element {
                Element::Field(_) => 0,
                Element::Key(_) => 1,
                Element::Value(_) => 2,
                Element::Index(_) => 3,
            }
        }
        match (self, other) {
            (Self::Field(a), Self::Field(b)) => a.as_ref().cmp(b.as_ref()),
            (Self::Key(a), Self::Key(b)) => order::members(a, b),
            (Self::Value(a), Self::Value(b)) => order::values(a.borrow(), b.borrow()),
            (Self::Index(a), Self::Index(b)) => a.cmp(b),
            _ => rank(self).cmp(&rank(other)),
        }
    }
}

impl<N: AsRef<str>, V: Borrow<Value>> PartialOrd for Element<N, V> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<N: AsRef<str>, V: Borrow<Value>> PartialEq for Element<N, V> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl<N: AsRef<str>, V: Borrow<Value>> Eq for Element<N, V> {}

/// Displays an element as upstream does in conflicts: `.spec`, `[name="c"]`, `[="x"]`, `[0]`. Long
/// names and values are truncated.
impl fmt::Display for PathElement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Field(name) => write!(f, ".{}", truncated(name)),
            Self::Key(fields) => {
                f.write_str("[")?;
                for (at, (name, value)) in fields.iter().enumerate() {
                    let comma = if at == 0 { "" } else { "," };
                    write!(f, "{comma}{name}={}", shown(value))?;
                }
                f.write_str("]")
            }
            Self::Value(value) => write!(f, "[={}]", shown(value)),
            Self::Index(index) => write!(f, "[{index}]"),
        }
    }
}

/// A value as it is displayed in a path.
fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => quote(&truncated(text)),
        Value::Array(items) => {
            format!("[{}]", items.iter().map(shown).collect::<Vec<_>>().join(","))
        }
        Value::Object(members) => {
            members.iter().map(|(name, value)| format!("{name}={}", shown(value))).collect()
        }
        Value::Null => "null".to_owned(),
        other => pintle_meta::quote::plain(other),
    }
}
