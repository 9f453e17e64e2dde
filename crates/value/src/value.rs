//! One node of an object tree.

use crate::{Map, Str, json};

/// A JSON-like value: the one form that objects have between the wire and the store.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Value {
    /// `null`: "no value" where the schema allows it.
    #[default]
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A number that Go writes without fraction or exponent, and that fits 64 bits.
    Int(i64),
    /// Any other number; always finite.
    Float(f64),
    /// Text, including quantities, times and base64 bytes, which keep the text that they came as.
    String(Str),
    /// A list.
    Array(Vec<Value>),
    /// An object or a map.
    Object(Map),
    /// Any value, as the compact JSON of it that nobody had to read ([`Value::read`]). Where a schema keeps a
    /// type so, all values of that type are so.
    Unread(Box<str>),
}

impl Value {
    /// An empty object.
    pub const fn object() -> Self {
        Self::Object(Map::new())
    }

    /// The value that compact JSON says; of all values, only `null` is read.
    pub fn unread(json: Box<str>) -> Self {
        if &*json == "null" { Self::Null } else { Self::Unread(json) }
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

    /// The items of a list, to change.
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

    /// The members of an object, to change.
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
    pub fn get(&self, key: &str) -> Option<&Self> {
        self.as_object()?.get(key)
    }

    /// The member `key` of an object, to change; `None` for other values.
    pub fn get_mut(&mut self, key: &str) -> Option<&mut Self> {
        self.as_object_mut()?.get_mut(key)
    }

    /// Follows object members down, e.g. `value.at(&["metadata", "name"])`.
    pub fn at<S: AsRef<str>>(&self, path: &[S]) -> Option<&Self> {
        path.iter().try_fold(self, |node, key| node.get(key.as_ref()))
    }

    /// The string at `path` of object members.
    pub fn str_at(&self, path: &[&str]) -> Option<&str> {
        self.at(path)?.as_str()
    }

    /// The member `key` as an object, made (or made anew over another value) where it is not one.
    ///
    /// # Panics
    /// Never: a value that is not an object becomes one.
    pub fn object_entry(&mut self, key: &str) -> &mut Map {
        self.make_object().entry_object(key)
    }

    /// This value as an object, emptied first if it was something else.
    pub fn make_object(&mut self) -> &mut Map {
        if !matches!(self, Self::Object(_)) {
            *self = Self::object();
        }
        match self {
            Self::Object(map) => map,
            _ => unreachable!("made an object above"),
        }
    }

    /// Whether lists and objects are nested at most `levels` deep, those of what is unread included.
    pub fn nests_within(&self, levels: usize) -> bool {
        let below = || levels.checked_sub(1);
        match self {
            Self::Array(items) => {
                below().is_some_and(|levels| items.iter().all(|item| item.nests_within(levels)))
            }
            Self::Object(members) => below()
                .is_some_and(|levels| members.iter().all(|(_, value)| value.nests_within(levels))),
            Self::Unread(text) => json::nests_within(text, levels),
            _ => true,
        }
    }

    /// Makes of all that is unread, here and below, what it is.
    pub fn read(&mut self) {
        match self {
            Self::Unread(text) => *self = json::parse(text.as_bytes()).unwrap_or_default(),
            Self::Array(items) => items.iter_mut().for_each(Self::read),
            Self::Object(members) => members.iter_mut().for_each(|(_, member)| member.read()),
            _ => {}
        }
    }

    /// The word for the value's JSON type, as Go's JSON decoder says it in its errors.
    pub const fn type_name(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool(_) => "bool",
            Self::Int(_) | Self::Float(_) => "number",
            Self::String(_) => "string",
            Self::Array(_) => "array",
            Self::Object(_) | Self::Unread(_) => "object",
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
