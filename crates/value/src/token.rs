//! Values as a stream of tokens: what the JSON and the YAML reader have in common.
//!
//! A consumer drives: it asks for a [`value`](Tokens::value), and when that begins a list or an
//! object, for each [`item`](Tokens::item) or [`key`](Tokens::key) and the value that follows, until
//! there is none. So the consumer's own call stack holds the nesting, and one pass over the text
//! serves whatever the consumer makes of it.

use crate::{Error, Map, Str, Value};

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
        match self.value()? {
            Token::Array => {
                let mut items = Vec::new();
                while self.item()? {
                    items.push(self.tree()?);
                }
                Ok(Value::Array(items))
            }
            Token::Object => {
                let mut members = Vec::new();
                while let Some(key) = self.key()? {
                    let key = Str::from(key);
                    members.push((key, self.tree()?));
                }
                Ok(Value::Object(Map::from_unsorted(members, |_| {})))
            }
            scalar => scalar.scalar(),
        }
    }

    /// Reads past the next value.
    fn skip(&mut self) -> Result<(), Error>
    where
        Self: Sized,
    {
        match self.value()? {
            Token::Array => {
                while self.item()? {
                    self.skip()?;
                }
            }
            Token::Object => {
                while self.key()?.is_some() {
                    self.skip()?;
                }
            }
            _ => {}
        }
        Ok(())
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
        })
    }

    /// The word for the token's type, as Go's JSON decoder says it in its errors.
    pub const fn type_name(self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool(_) => "bool",
            Self::Number(_) => "number",
            Self::String(_) => "string",
            Self::Array => "array",
            Self::Object => "object",
        }
    }
}

/// The value of a number in JSON's syntax: an integer where it is written as one and fits.
pub fn number(text: &str) -> Result<Value, Error> {
    if let Ok(n) = text.parse() {
        return Ok(Value::Int(n));
    }
    match text.parse::<f64>() {
        Ok(x) if x.is_finite() => Ok(Value::Float(x)),
        _ => Err(Error::NumberRange(text.to_owned())),
    }
}
