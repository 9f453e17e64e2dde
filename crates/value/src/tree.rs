//! Reads a tree as a stream of tokens, so that consumers of text also accept trees.

use crate::{
    DEPTH_MAX, Error, Str, Value, json,
    token::{Token, Tokens},
};

/// Reads tokens from a tree.
pub struct TreeReader<'v> {
    /// The value that the next [`Tokens::value`] returns.
    next: Option<&'v Value>,
    /// The remaining content of the open lists and objects, innermost last.
    open: Vec<Rest<'v>>,
    /// The text of the last number.
    number: Vec<u8>,
}

/// The remaining content of an open list or object.
enum Rest<'v> {
    Items(&'v [Value]),
    Members(&'v [(Str, Value)]),
}

impl<'v> TreeReader<'v> {
    /// A reader of `value`.
    pub const fn new(value: &'v Value) -> Self {
        Self { next: Some(value), open: Vec::new(), number: Vec::new() }
    }

    fn begin(&mut self, rest: Rest<'v>) -> Result<(), Error> {
        self.open.push(rest);
        if self.open.len() > DEPTH_MAX { Err(Error::Depth) } else { Ok(()) }
    }
}

impl Tokens for TreeReader<'_> {
    fn value(&mut self) -> Result<Token<'_>, Error> {
        Ok(match self.next.take().unwrap_or(&Value::Null) {
            Value::Null => Token::Null,
            Value::Bool(b) => Token::Bool(*b),
            Value::String(text) => Token::String(text),
            Value::Raw(text) => Token::Raw(text),
            Value::Array(items) => {
                self.begin(Rest::Items(items))?;
                Token::Array
            }
            Value::Object(members) => {
                self.begin(Rest::Members(members.as_slice()))?;
                Token::Object
            }
            number => {
                self.number.clear();
                json::write(number, &mut self.number);
                Token::Number(std::str::from_utf8(&self.number).expect("numbers are ASCII"))
            }
        })
    }

    fn item(&mut self) -> Result<bool, Error> {
        let Some(Rest::Items(items)) = self.open.last_mut() else { return Ok(false) };
        let Some((item, rest)) = items.split_first() else {
            self.open.pop();
            return Ok(false);
        };
        *items = rest;
        self.next = Some(item);
        Ok(true)
    }

    fn key(&mut self) -> Result<Option<&str>, Error> {
        let Some(Rest::Members(members)) = self.open.last_mut() else { return Ok(None) };
        let Some(((key, value), rest)) = members.split_first() else {
            self.open.pop();
            return Ok(None);
        };
        *members = rest;
        self.next = Some(value);
        Ok(Some(key))
    }

    fn end(&mut self) -> Result<(), Error> {
        Ok(())
    }

    fn json(&mut self) -> Result<Box<str>, Error> {
        match self.next.take().unwrap_or(&Value::Null) {
            Value::Raw(text) => Ok(text.clone()),
            value => Ok(json::to_string(value).into()),
        }
    }
}
