//! One element of a path: how a child is identified in its parent.

use std::{cmp::Ordering, fmt};

use pintle_meta::field::truncated;
use pintle_meta::quote::quote;
use pintle_value::{Str, Value, json};

use super::order;

/// Identifies a child in its parent. The order of the variants is the order of paths.
#[derive(Clone, Debug)]
pub enum PathElement {
    /// A member of an object.
    Field(Str),
    /// An item of a list, identified by the values of its key fields, which are sorted by name.
    Key(Box<[(Str, Value)]>),
    /// An item of a set, identified by its value.
    Value(Value),
    /// An item of a list, identified by its index.
    Index(i64),
}

impl PathElement {
    /// The member `name`.
    pub fn field(name: &str) -> Self {
        Self::Field(name.into())
    }

    /// The item with these key fields.
    pub fn key(mut fields: Vec<(Str, Value)>) -> Self {
        fields.sort_by(|(a, _), (b, _)| a.cmp(b)); // stable, as upstream's
        Self::Key(fields.into())
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

    /// Writes the element as a key of FieldsV1, in quotes. `text` is a scratch buffer.
    pub(super) fn write(&self, out: &mut Vec<u8>, text: &mut Vec<u8>) {
        text.clear();
        match self {
            Self::Field(name) => return json::write_string_after("f:", name, out),
            Self::Key(fields) => {
                text.extend_from_slice(b"k:");
                let compact = &mut json::Compact;
                json::write_map(fields, compact, text, |(name, value), layout, out| {
                    json::write_key(name, layout, out);
                    json::write(value, out);
                });
            }
            Self::Value(value) => {
                text.extend_from_slice(b"v:");
                json::write(value, text);
            }
            Self::Index(index) => text.extend_from_slice(format!("i:{index}").as_bytes()),
        }
        json::write_string(std::str::from_utf8(text).expect("the writer writes UTF-8"), out);
    }
}

impl Ord for PathElement {
    fn cmp(&self, other: &Self) -> Ordering {
        const fn rank(element: &PathElement) -> u8 {
            match element {
                PathElement::Field(_) => 0,
                PathElement::Key(_) => 1,
                PathElement::Value(_) => 2,
                PathElement::Index(_) => 3,
            }
        }
        match (self, other) {
            (Self::Field(a), Self::Field(b)) => a.as_str().cmp(b),
            (Self::Key(a), Self::Key(b)) => order::members(a, b),
            (Self::Value(a), Self::Value(b)) => order::values(a, b),
            (Self::Index(a), Self::Index(b)) => a.cmp(b),
            _ => rank(self).cmp(&rank(other)),
        }
    }
}

impl PartialOrd for PathElement {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for PathElement {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for PathElement {}

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
