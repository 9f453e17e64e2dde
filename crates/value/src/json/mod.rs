//! Reads and writes JSON.
//!
//! The accepted input, the error messages and the output bytes are those of Go's `encoding/json`,
//! which upstream's clients know: invalid UTF-8 and lone surrogates become U+FFFD, and `<`, `>` and
//! `&` are written as escapes.

mod brackets;
mod excerpt;
mod read;
mod scan;
mod span;
#[cfg(test)]
mod tests;
mod write;

pub use excerpt::excerpt;
pub use read::{Reader, text};
pub use span::{at, first, items, member, member_starts, members, with_nulls};
pub use write::{
    Compact, Layout, Pretty, is_plain, string as write_string, string_after as write_string_after,
    write, write_as, write_bounded, write_key, write_list, write_map, write_plain_key,
    write_pretty,
};

use crate::{
    Error, Value, number,
    token::{Token, Tokens},
};

/// Parses a single value. Of equal keys the last wins.
pub fn parse(bytes: &[u8]) -> Result<Value, Error> {
    parse_with_raw(bytes, &[])
}

/// Like [`parse`], but the value at `path`, a path of members, stays [raw](Value::Raw). A list on
/// the path is no step of it: the path continues in each item.
pub fn parse_with_raw(bytes: &[u8], path: &[&str]) -> Result<Value, Error> {
    read_with_raw(Reader::new(&text(bytes)), path)
}

/// Like [`parse_with_raw`], for bytes that [`check`] accepted: values that stay raw are not checked
/// again.
pub fn parse_valid_with_raw(bytes: &[u8], path: &[&str]) -> Result<Value, Error> {
    read_with_raw(Reader::of_valid(&text(bytes)), path)
}

fn read_with_raw(mut reader: Reader<'_>, path: &[&str]) -> Result<Value, Error> {
    let value = reader.tree_with_raw(path)?;
    reader.end()?;
    Ok(value)
}

/// Checks that [`parse`] would succeed, without building the value.
pub fn check(bytes: &[u8]) -> Result<(), Error> {
    check_within(bytes, 0)
}

/// Like [`check`], for JSON that is `depth` levels deep within other JSON.
///
/// # Errors
/// As [`check`].
pub fn check_within(bytes: &[u8], depth: usize) -> Result<(), Error> {
    let text = text(bytes);
    let mut reader = Reader::within(&text, depth);
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
        // A number can be out of range; other scalars that the tokenizer accepts are valid.
        Token::Number(text) => drop(number::parse(text)?),
        _ => {}
    }
    Ok(())
}

/// Parses all raw JSON in the tree.
pub fn parse_raw(value: &mut Value) {
    match value {
        Value::Raw(text) => *value = parse(text.as_bytes()).unwrap_or_default(),
        Value::Array(items) => items.iter_mut().for_each(parse_raw),
        Value::Object(members) => members.iter_mut().for_each(|(_, member)| parse_raw(member)),
        _ => {}
    }
}

/// Whether lists and objects are nested at most `levels` deep, raw JSON included.
pub fn nests_within(value: &Value, levels: usize) -> bool {
    let nests_below = |inner: &Value| match inner {
        Value::Array(_) | Value::Object(_) | Value::Raw(_) => nests_within(inner, levels - 1),
        _ => true,
    };
    match value {
        Value::Array(items) => levels > 0 && items.iter().all(nests_below),
        Value::Object(members) => levels > 0 && members.values().all(nests_below),
        Value::Raw(text) => text_nests_within(text, levels),
        _ => true,
    }
}

/// Whether lists and objects in compact JSON are nested at most `levels` deep.
fn text_nests_within(json: &str, levels: usize) -> bool {
    // Only the innermost list or object can be empty.
    if beginnings(json.as_bytes()) < levels {
        return true;
    }
    let mut depth = 0_usize;
    let mut bytes = json.bytes();
    while let Some(byte) = bytes.next() {
        match byte {
            b'{' | b'[' => {
                depth += 1;
                if depth > levels {
                    return false;
                }
            }
            b'}' | b']' => depth = depth.saturating_sub(1),
            // Most strings are short names, so no faster search for their end pays.
            b'"' => loop {
                match bytes.next() {
                    Some(b'\\') => _ = bytes.next(),
                    Some(b'"') => break,
                    Some(_) => {}
                    None => return true,
                }
            },
            _ => {}
        }
    }
    true
}

/// The number of lists and objects in compact JSON that are not empty, or more, as brackets in
/// strings count too. No branch depends on a byte, so the compiler compares many at once.
fn beginnings(json: &[u8]) -> usize {
    /// So few that their count fits a byte.
    const CHUNK: usize = 128;
    // An opening bracket differs from an opening brace in this bit, and a closing one likewise.
    const DIFFERS: u8 = b'[' ^ b'{';
    let begins = |(byte, next): (&u8, &u8)| byte | DIFFERS == b'{' && next | DIFFERS != b'}';
    let after = json.get(1..).unwrap_or_default();
    let chunks = json.chunks(CHUNK).zip(after.chunks(CHUNK));
    let counts = chunks.map(|(bytes, after)| {
        let in_chunk: u8 = bytes.iter().zip(after).map(|pair| u8::from(begins(pair))).sum();
        usize::from(in_chunk)
    });
    counts.sum()
}

/// Encodes a value as compact JSON, members ordered by key.
pub fn to_string(value: &Value) -> String {
    let mut out = Vec::new();
    write(value, &mut out);
    String::from_utf8(out).expect("the writer writes UTF-8")
}
