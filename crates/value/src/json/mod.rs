//! JSON text to tokens and back.
//!
//! What is accepted, what is refused, the words of refusal and the bytes written are those of Go's
//! `encoding/json`, for that is what clients of upstream have always met: invalid UTF-8 and lone
//! surrogates become U+FFFD, `<`, `>` and `&` are written as escapes.

mod read;
mod scan;
mod span;
#[cfg(test)]
mod tests;
mod write;

pub use read::{Reader, text};
pub use span::{at, excerpt, items, member, members, without};
pub use write::{
    Compact, Layout, Pretty, number as write_number, string as write_string, write, write_as,
    write_bounded, write_key, write_list, write_map, write_pretty,
};

use crate::{Error, Value, token::Tokens};

/// Reads one value and nothing behind it; of equal keys the last wins.
pub fn parse(bytes: &[u8]) -> Result<Value, Error> {
    parse_without(bytes, &[])
}

/// As [`parse`], but what is at `path`, a path of members, stays [unread](Value::Unread); lists on the way
/// are not named.
pub fn parse_without(bytes: &[u8], path: &[&str]) -> Result<Value, Error> {
    let text = text(bytes);
    let mut reader = Reader::new(&text);
    let value = reader.tree_without(path)?;
    reader.end()?;
    Ok(value)
}

/// A value as compact JSON, members in the order of their keys.
pub fn to_string(value: &Value) -> String {
    let mut out = Vec::new();
    write(value, &mut out);
    String::from_utf8(out).expect("the writer writes UTF-8")
}
