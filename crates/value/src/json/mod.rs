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

use crate::{
    Error, Value,
    token::{Token, Tokens, number},
};

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

/// Whether [`parse`] would read this, without making the value: only the reason is of interest.
pub fn check(bytes: &[u8]) -> Result<(), Error> {
    let text = text(bytes);
    let mut reader = Reader::new(&text);
    check_value(&mut reader)?;
    reader.end()
}

fn check_value(reader: &mut Reader<'_>) -> Result<(), Error> {
    match reader.value()? {
        Token::Array => {
            while reader.item()? {
                check_value(reader)?;
            }
        }
        Token::Object => {
            while reader.key()?.is_some() {
                check_value(reader)?;
            }
        }
        // Of what stands alone, only a number can be wrong that the tokenizer lets through.
        Token::Number(text) => drop(number(text)?),
        _ => {}
    }
    Ok(())
}

/// Whether lists and objects are nested at most `levels` deep in compact JSON.
pub fn nests_within(json: &str, levels: usize) -> bool {
    // Each level takes a byte to open and one to close.
    if json.len() <= 2 * levels {
        return true;
    }
    let (bytes, mut at, mut depth) = (json.as_bytes(), 0, 0_usize);
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth = depth.saturating_sub(1),
            b'"' => match span::string_end(bytes, at) {
                Some(end) => {
                    at = end;
                    continue;
                }
                None => return true,
            },
            _ => {}
        }
        if depth > levels {
            return false;
        }
        at += 1;
    }
    true
}

/// A value as compact JSON, members in the order of their keys.
pub fn to_string(value: &Value) -> String {
    let mut out = Vec::new();
    write(value, &mut out);
    String::from_utf8(out).expect("the writer writes UTF-8")
}
