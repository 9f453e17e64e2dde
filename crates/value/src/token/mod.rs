//! Values as a stream of tokens: what the JSON and the YAML reader have in common.
//!
//! A consumer drives: it asks for a [`value`](Tokens::value), and when that begins a list or an
//! object, for each [`item`](Tokens::item) or [`key`](Tokens::key) and the value that follows, until
//! there is none. So the consumer's own call stack holds the nesting, and one pass over the text
//! serves whatever the consumer makes of it.

mod tree;

pub use tree::Tree;

use crate::{Error, Map, Str, Value, json};

/// A value, or the beginning of one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Token<'t> {
    /// `null`
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A number in JSON's syntax; see [`number`].
    Number(&'t str),
    /// Text, unescaped.
    String(&'t str),
    /// A list begins: ask for [`Tokens::item`].
    Array,
    /// An object begins: ask for [`Tokens::key`].
    Object,
    /// A whole value that is unread: only trees have any.
    Unread(&'t str),
}

/// A source of tokens.
pub trait Tokens {
    /// The value that stands next.
    fn value(&mut self) -> Result<Token<'_>, Error>;

    /// In a list: whether another item follows. Its value must be read before the next call.
    fn item(&mut self) -> Result<bool, Error>;

    /// In an object: the next key, `None` at the end. Its value must be read before the next call.
    fn key(&mut self) -> Result<Option<&str>, Error>;

    /// Makes sure that nothing follows the value.
    fn end(&mut self) -> Result<(), Error>;

    /// Reads the next value as a tree; of equal keys the last wins.
    fn tree(&mut self) -> Result<Value, Error>
    where
        Self: Sized,
    {
        self.tree_without(&[])
    }

    /// As [`Tokens::tree`], but what is at `path`, a path of members, stays [unread](Value::Unread); lists on
    /// the way are not named.
    fn tree_without(&mut self, path: &[&str]) -> Result<Value, Error>
    where
        Self: Sized,
    {
        Begun::default().tree(self, path)
    }

    /// The next value as compact JSON, its members in the order that they have.
    fn json(&mut self) -> Result<Box<str>, Error>
    where
        Self: Sized,
    {
        self.tree().map(|value| json::to_string(&value).into())
    }

    /// Reads past the next value.
    fn skip(&mut self) -> Result<(), Error>
    where
        Self: Sized,
    {
        let begun = self.value()?.kind();
        self.skip_rest(begun)
    }

    /// Reads past the rest of a value that has just begun.
    fn skip_rest(&mut self, begun: Kind) -> Result<(), Error>
    where
        Self: Sized,
    {
        match begun {
            Kind::Array => {
                while self.item()? {
                    self.skip()?;
                }
            }
            Kind::Object => {
                while self.key()?.is_some() {
                    self.skip()?;
                }
            }
            _ => {}
        }
        Ok(())
    }
}

/// What the lists and objects that are being read have so far, innermost last: so each gets memory once,
/// and just what it needs.
#[derive(Default)]
struct Begun {
    items: Vec<Value>,
    members: Vec<(Str, Value)>,
}

impl Begun {
    /// See [`Tokens::tree_without`].
    fn tree(&mut self, tokens: &mut impl Tokens, path: &[&str]) -> Result<Value, Error> {
        match tokens.value()? {
            Token::Array => {
                let base = self.items.len();
                while tokens.item()? {
                    let item = self.tree(tokens, path)?;
                    self.items.push(item);
                }
                Ok(Value::Array(self.items.drain(base..).collect()))
            }
            Token::Object => {
                let base = self.members.len();
                while let Some(key) = tokens.key()? {
                    let key = Str::from(key);
                    let value = match path {
                        [name] if *name == key => Value::unread(tokens.json()?),
                        [name, below @ ..] if *name == key => self.tree(tokens, below)?,
                        _ => self.tree(tokens, &[])?,
                    };
                    self.members.push((key, value));
                }
                let members = self.members.drain(base..).collect();
                Ok(Value::Object(Map::from_unsorted(members, |_| {})))
            }
            scalar => scalar.scalar(),
        }
    }
}

/// The kind of a token, without its text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Null,
    Bool,
    Number,
    String,
    Array,
    Object,
    Unread,
}

impl Kind {
    /// The word for it, as Go's JSON decoder says it in its errors.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool => "bool",
            Self::Number => "number",
            Self::String => "string",
            Self::Array => "array",
            Self::Object | Self::Unread => "object",
        }
    }
}

impl Token<'_> {
    /// The value of a token that is a whole value; an empty list or object for one that begins one.
    pub fn scalar(self) -> Result<Value, Error> {
        Ok(match self {
            Self::Null => Value::Null,
            Self::Bool(b) => Value::Bool(b),
            Self::Number(text) => number(text)?,
            Self::String(text) => Value::String(text.into()),
            Self::Array => Value::Array(Vec::new()),
            Self::Object => Value::object(),
            Self::Unread(text) => Value::Unread(text.into()),
        })
    }

    /// Its kind.
    pub const fn kind(self) -> Kind {
        match self {
            Self::Null => Kind::Null,
            Self::Bool(_) => Kind::Bool,
            Self::Number(_) => Kind::Number,
            Self::String(_) => Kind::String,
            Self::Array => Kind::Array,
            Self::Object => Kind::Object,
            Self::Unread(_) => Kind::Unread,
        }
    }
}

/// The value of a number in JSON's syntax: an integer where 64 bits hold it, be it written as `1.0`
/// or `1e3`; Go's encoder writes those as `1` and `1000`, so equal objects stay equal trees.
pub fn number(text: &str) -> Result<Value, Error> {
    if let Ok(n) = text.parse() {
        return Ok(Value::Int(n));
    }
    match text.parse::<f64>() {
        Ok(x) => float(x).ok_or_else(|| Error::NumberRange(text.to_owned())),
        Err(_) => Err(Error::NumberRange(text.to_owned())),
    }
}

/// The value of a number of floating point; `None` for what is no number.
pub(crate) fn float(x: f64) -> Option<Value> {
    x.is_finite().then(|| integral(x).map_or(Value::Float(x), Value::Int))
}

/// The integer that a number is written as, if it is.
fn integral(x: f64) -> Option<i64> {
    if x.fract() != 0.0 {
        return None;
    }
    let mut text = Vec::new();
    json::write_number(x, &mut text);
    std::str::from_utf8(&text).ok()?.parse().ok()
}
