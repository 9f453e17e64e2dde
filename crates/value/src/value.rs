//! The object tree: [`Value`] and its accessors.

mod map;

pub use map::Map;

use crate::Str;

/// A JSON-like value: the representation of objects between the wire and the store.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Value {
    /// `null`.
    #[default]
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// An integer that fits 64 bits. Go writes such a number without fraction or exponent.
    Int(i64),
    /// Any other number; always finite.
    Float(f64),
    /// Text, including quantities, times and base64 bytes, which are kept as the client wrote them.
    String(Str),
    /// A list.
    Array(Vec<Value>),
    /// An object or a map.
    Object(Map),
    /// Any value but `null`, as compact JSON that has not been parsed ([`crate::json::parse_raw`]).
    /// Where a schema declares a type as raw, all values of that type are raw.
    Raw(Box<str>),
}

impl Value {
    /// An empty object.
    pub const fn object() -> Self {
        Self::Object(Map::new())
    }

    /// Returns the value of compact JSON unparsed, except for `null`.
    pub fn raw(json: Box<str>) -> Self {
        if &*json == "null" { Self::Null } else { Self::Raw(json) }
    }

    /// The text of a string.
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Self::String(s) => Some(s),
            _ => None,
        }
    }

    /// The number, if it is an integer.
    pub const fn as_int(&self) -> Option<i64> {
        match self {
            Self::Int(n) => Some(*n),
            _ => None,
        }
    }

    /// The truth value of a boolean.
    pub const fn as_bool(&self) -> Option<bool> {
        match self {
            Self::Bool(b) => Some(*b),
            _ => None,
        }
    }

    /// The items of a list.
    pub fn as_array(&self) -> Option<&[Self]> {
        match self {
            Self::Array(items) => Some(items),
            _ => None,
        }
    }

    /// The items of a list, mutably.
    pub const fn as_array_mut(&mut self) -> Option<&mut Vec<Self>> {
        match self {
            Self::Array(items) => Some(items),
            _ => None,
        }
    }

    /// The members of an object.
    pub const fn as_object(&self) -> Option<&Map> {
        match self {
            Self::Object(map) => Some(map),
            _ => None,
        }
    }

    /// The members of an object, mutably.
    pub const fn as_object_mut(&mut self) -> Option<&mut Map> {
        match self {
            Self::Object(map) => Some(map),
            _ => None,
        }
    }

    /// Whether this is `null`.
    pub const fn is_null(&self) -> bool {
        matches!(self, Self::Null)
    }

    /// The member `key` of an object; `None` for other values.
    #[inline]
    pub fn get(&self, key: &str) -> Option<&Self> {
        self.as_object()?.get(key)
    }

    /// The member `key` of an object, mutably; `None` for other values.
    #[inline]
    pub fn get_mut(&mut self, key: &str) -> Option<&mut Self> {
        self.as_object_mut()?.get_mut(key)
    }

    /// Returns the value at a path of members, e.g. `value.at(&["metadata", "name"])`.
    pub fn at<S: AsRef<str>>(&self, path: &[S]) -> Option<&Self> {
        path.iter().try_fold(self, |node, key| node.get(key.as_ref()))
    }

    /// The string at a path of members.
    pub fn str_at(&self, path: &[&str]) -> Option<&str> {
        self.at(path)?.as_str()
    }

    /// Returns the member `key` as an object. A missing member, or one of another type, becomes an
    /// empty object.
    ///
    /// # Panics
    /// Never: a value that is not an object becomes one.
    pub fn object_entry(&mut self, key: &str) -> &mut Map {
        self.make_object().entry_object(key)
    }

    /// Returns this value as an object. A value of another type becomes an empty object.
    pub fn make_object(&mut self) -> &mut Map {
        if !matches!(self, Self::Object(_)) {
            *self = Self::object();
        }
        match self {
            Self::Object(map) => map,
            _ => unreachable!("set to an object above"),
        }
    }

    /// The name of the value's JSON type in the errors of Go's JSON decoder.
    pub const fn type_name(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool(_) => "bool",
            Self::Int(_) | Self::Float(_) => "number",
            Self::String(_) => "string",
            Self::Array(_) => "array",
            Self::Object(_) | Self::Raw(_) => "object",
        }
    }
}

impl From<&str> for Value {
    fn from(s: &str) -> Self {
        Self::String(s.into())
    }
}

impl From<String> for Value {
    fn from(s: String) -> Self {
        Self::String(s.into())
    }
}

impl From<Str> for Value {
    fn from(s: Str) -> Self {
        Self::String(s)
    }
}

impl From<i64> for Value {
    fn from(n: i64) -> Self {
        Self::Int(n)
    }
}

impl From<bool> for Value {
    fn from(b: bool) -> Self {
        Self::Bool(b)
    }
}

impl From<Map> for Value {
    fn from(map: Map) -> Self {
        Self::Object(map)
    }
}

impl<T: Into<Self>> From<Vec<T>> for Value {
    fn from(items: Vec<T>) -> Self {
        Self::Array(items.into_iter().map(Into::into).collect())
    }
}

impl<K: Into<Str>, V: Into<Self>, const N: usize> From<[(K, V); N]> for Value {
    fn from(members: [(K, V); N]) -> Self {
        Self::Object(members.into_iter().map(|(k, v)| (k.into(), v.into())).collect())
    }
}
