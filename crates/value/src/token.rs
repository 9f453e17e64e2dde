//! Values as a stream of tokens: the interface of the JSON, YAML and tree readers.
//!
//! The consumer pulls tokens. It asks for a [`value`](Tokens::value). If that begins a list or an
//! object, it asks for each [`item`](Tokens::item) or [`key`](Tokens::key), and the value that
//! follows, until there are no more. The consumer's call stack thus holds the nesting, and a single
//! pass over the text serves any consumer.

use crate::{Error, Map, Str, Value, number};

/// A scalar value, or the beginning of a list or object.
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
    /// A list begins; continue with [`Tokens::item`].
    Array,
    /// An object begins; continue with [`Tokens::key`].
    Object,
    /// A whole value as raw JSON. Only trees contain such values.
    Raw(&'t str),
}

/// A source of tokens.
pub trait Tokens {
    /// Returns the next value.
    fn value(&mut self) -> Result<Token<'_>, Error>;

    /// In a list: returns whether another item follows. The item's value must be read before the
    /// next call.
    fn item(&mut self) -> Result<bool, Error>;

    /// In an object: returns the next key, `None` at the end. The key's value must be read before
    /// the next call.
    fn key(&mut self) -> Result<Option<&str>, Error>;

    /// In an object: consumes the next key if it is `name`, in which JSON has no escapes. Returns
    /// whether it was consumed. A reader may leave any key to [`key`](Tokens::key).
    fn key_is(&mut self, _name: &str) -> bool {
        false
    }

    /// Checks that nothing follows the value.
    fn end(&mut self) -> Result<(), Error>;

    /// Reads the next value as a tree. Of equal keys the last wins.
    fn tree(&mut self) -> Result<Value, Error>
    where
        Self: Sized,
    {
        self.tree_with_raw(&[])
    }

    /// Like [`Tokens::tree`], but the value at `path`, a path of members, stays [raw](Value::Raw).
    /// A list on the path is no step of it: the path continues in each item.
    fn tree_with_raw(&mut self, path: &[&str]) -> Result<Value, Error>
    where
        Self: Sized,
    {
        TreeBuilder::default().tree(self, path)
    }

    /// Reads the next value as compact JSON. A reader of JSON text keeps the order of members; the
    /// readers of YAML and of trees order them by key.
    fn json(&mut self) -> Result<Box<str>, Error>;

    /// Skips the next value.
    fn skip(&mut self) -> Result<(), Error>
    where
        Self: Sized,
    {
        let begun = self.value()?.kind();
        self.skip_rest(begun)
    }

    /// Skips the rest of a value that has begun.
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

/// The items and members read so far of all lists and objects that are open, innermost last. Each
/// list or object can thus be allocated once, at its final size.
#[derive(Default)]
struct TreeBuilder {
    items: Vec<Value>,
    members: Vec<(Str, Value)>,
}

impl TreeBuilder {
    /// See [`Tokens::tree_with_raw`].
    fn tree(&mut self, tokens: &mut impl Tokens, path: &[&str]) -> Result<Value, Error> {
        match tokens.value()? {
            Token::Array => {
                let base = self.items.len();
                while tokens.item()? {
                    let item = self.tree(tokens, path)?;
                    self.items.push(item);
                }
                Ok(Value::Array(taken_from(&mut self.items, base)))
            }
            Token::Object => {
                let base = self.members.len();
                while let Some(key) = tokens.key()? {
                    let key = Str::from(key);
                    let value = match path {
                        [name] if *name == key => Value::raw(tokens.json()?),
                        [name, below @ ..] if *name == key => self.tree(tokens, below)?,
                        _ => self.tree(tokens, &[])?,
                    };
                    self.members.push((key, value));
                }
                let members = taken_from(&mut self.members, base);
                Ok(Value::Object(Map::from_unsorted(members, |_| {})))
            }
            scalar => scalar.scalar(),
        }
    }
}

/// Takes the values from `base` on off a stack, into an allocation of their size.
pub fn taken_from<T>(stack: &mut Vec<T>, base: usize) -> Vec<T> {
    match base {
        0 => stack.drain(base..).collect(), // `split_off` would give away the stack's allocation
        _ => stack.split_off(base),
    }
}

/// The kind of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Null,
    Bool,
    Number,
    String,
    Array,
    Object,
    Raw,
}

impl Kind {
    /// The name of the kind in the errors of Go's JSON decoder.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool => "bool",
            Self::Number => "number",
            Self::String => "string",
            Self::Array => "array",
            Self::Object | Self::Raw => "object",
        }
    }
}

impl Token<'_> {
    /// The value of a scalar token; an empty list or object for a token that begins one.
    pub fn scalar(self) -> Result<Value, Error> {
        Ok(match self {
            Self::Null => Value::Null,
            Self::Bool(b) => Value::Bool(b),
            Self::Number(text) => number::parse(text)?,
            Self::String(text) => Value::String(text.into()),
            Self::Array => Value::Array(Vec::new()),
            Self::Object => Value::object(),
            Self::Raw(text) => Value::Raw(text.into()),
        })
    }

    /// The token's kind.
    pub const fn kind(self) -> Kind {
        match self {
            Self::Null => Kind::Null,
            Self::Bool(_) => Kind::Bool,
            Self::Number(_) => Kind::Number,
            Self::String(_) => Kind::String,
            Self::Array => Kind::Array,
            Self::Object => Kind::Object,
            Self::Raw(_) => Kind::Raw,
        }
    }
}
