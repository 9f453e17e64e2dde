//! The writer: JSON in Go's encoding.

use super::scan::{either, one};
use super::{Reader, scan};
use crate::{
    Error, Value, number,
    token::{Token, Tokens},
};

/// The placement of white space. A walk over a value calls these methods at the same points for
/// every layout.
pub trait Layout {
    /// Called before an item or member; `first` is true for the first one of a list or object.
    fn before(&mut self, first: bool, out: &mut Vec<u8>);
    /// Called between a key and its value.
    fn colon(&mut self, out: &mut Vec<u8>);
    /// Called before the end of a list or object that is not empty.
    fn end(&mut self, out: &mut Vec<u8>);
    /// Writes a value from compact JSON.
    fn raw(&mut self, json: &str, out: &mut Vec<u8>);
}

/// A layout without white space.
pub struct Compact;

impl Layout for Compact {
    #[inline]
    fn before(&mut self, first: bool, out: &mut Vec<u8>) {
        if !first {
            out.push(b',');
        }
    }

    #[inline]
    fn colon(&mut self, out: &mut Vec<u8>) {
        out.push(b':');
    }

    #[inline]
    fn end(&mut self, _: &mut Vec<u8>) {}

    fn raw(&mut self, json: &str, out: &mut Vec<u8>) {
        out.extend_from_slice(json.as_bytes());
    }
}

/// A layout with a line for each item and member, indented by two spaces a level, as Go's
/// `json.Indent` produces it.
#[derive(Default)]
pub struct Pretty {
    depth: usize,
}

impl Pretty {
    fn new_line(&self, out: &mut Vec<u8>) {
        out.push(b'\n');
        out.extend(std::iter::repeat_n(b' ', 2 * self.depth));
    }
}

impl Layout for Pretty {
    fn before(&mut self, first: bool, out: &mut Vec<u8>) {
        if first {
            self.depth += 1;
        } else {
            out.push(b',');
        }
        self.new_line(out);
    }

    fn colon(&mut self, out: &mut Vec<u8>) {
        out.extend_from_slice(b": ");
    }

    fn end(&mut self, out: &mut Vec<u8>) {
        self.depth -= 1;
        self.new_line(out);
    }

    fn raw(&mut self, json: &str, out: &mut Vec<u8>) {
        copy(json, self, out);
    }
}

/// Writes a value as compact JSON, members ordered by key.
pub fn write(value: &Value, out: &mut Vec<u8>) {
    write_as(value, &mut Compact, out);
}

/// Like [`write()`], but cuts longer output off after at most `bytes_max` bytes, between two
/// characters, and appends `...`. The cost is bounded likewise.
pub fn write_bounded(value: &Value, bytes_max: usize, out: &mut Vec<u8>) {
    let end = out.len() + bytes_max;
    write_until(value, end, out);
    if out.len() > end {
        let is_continuation = |byte: u8| byte & 0xc0 == 0x80;
        let whole = (0..=end).rev().find(|&i| !is_continuation(out[i])).unwrap_or_default();
        out.truncate(whole);
        out.extend_from_slice(b"...");
    }
}

/// Writes a value until the output is longer than `end`. Escapes in the last string, its quotes, a
/// number and the ends of open lists and objects may follow.
fn write_until(value: &Value, end: usize, out: &mut Vec<u8>) {
    // A character that the end lies in is written, so that the output is longer than `end`.
    let start =
        |text: &str, out: &[u8]| text.ceil_char_boundary((end + 1).saturating_sub(out.len()));
    match value {
        Value::String(text) => string(&text[..start(text, out)], out),
        Value::Raw(json) => out.extend_from_slice(&json.as_bytes()[..start(json, out)]),
        Value::Array(items) => {
            out.push(b'[');
            for (i, item) in items.iter().enumerate() {
                if out.len() > end {
                    break;
                }
                if i > 0 {
                    out.push(b',');
                }
                write_until(item, end, out);
            }
            out.push(b']');
        }
        Value::Object(members) => {
            out.push(b'{');
            for (i, (key, member)) in members.iter().enumerate() {
                if out.len() > end {
                    break;
                }
                if i > 0 {
                    out.push(b',');
                }
                string(&key[..start(key, out)], out);
                out.push(b':');
                write_until(member, end, out);
            }
            out.push(b'}');
        }
        scalar => write(scalar, out),
    }
}

/// Writes a value as indented JSON, members ordered by key.
pub fn write_pretty(value: &Value, out: &mut Vec<u8>) {
    write_as(value, &mut Pretty::default(), out);
}

/// Writes a value as JSON in a layout, members ordered by key.
pub fn write_as<L: Layout>(value: &Value, layout: &mut L, out: &mut Vec<u8>) {
    match value {
        Value::Null => out.extend_from_slice(b"null"),
        Value::Bool(true) => out.extend_from_slice(b"true"),
        Value::Bool(false) => out.extend_from_slice(b"false"),
        Value::Int(n) => out.extend_from_slice(itoa::Buffer::new().format(*n).as_bytes()),
        Value::Float(x) => number::write(*x, out),
        Value::String(text) => string(text, out),
        Value::Array(items) => {
            write_list(items, layout, out, |item, layout, out| write_as(item, layout, out));
        }
        Value::Object(members) => {
            write_map(members.as_slice(), layout, out, |(key, member), layout, out| {
                write_key(key, layout, out);
                write_as(member, layout, out);
            });
        }
        Value::Raw(json) => layout.raw(json, out),
    }
}

/// Rewrites JSON in a layout, keeping the order of members. Writes `null` for invalid JSON.
pub(super) fn copy<L: Layout>(json: &str, layout: &mut L, out: &mut Vec<u8>) {
    let begin = out.len();
    if copy_value(&mut Reader::new(json), layout, out).is_err() {
        out.truncate(begin);
        out.extend_from_slice(b"null");
    }
}

fn copy_value<L: Layout>(
    reader: &mut Reader<'_>,
    layout: &mut L,
    out: &mut Vec<u8>,
) -> Result<(), Error> {
    let mut first = true;
    match reader.value()? {
        Token::Array => {
            out.push(b'[');
            while reader.item()? {
                layout.before(std::mem::take(&mut first), out);
                copy_value(reader, layout, out)?;
            }
            if !first {
                layout.end(out);
            }
            out.push(b']');
        }
        Token::Object => {
            out.push(b'{');
            while let Some(key) = reader.key()? {
                layout.before(std::mem::take(&mut first), out);
                write_key(key, layout, out);
                copy_value(reader, layout, out)?;
            }
            if !first {
                layout.end(out);
            }
            out.push(b'}');
        }
        scalar => write_as(&scalar.scalar()?, layout, out),
    }
    Ok(())
}

/// Writes a list; `each` writes an item.
pub fn write_list<T, L: Layout>(
    items: &[T],
    layout: &mut L,
    out: &mut Vec<u8>,
    each: impl FnMut(&T, &mut L, &mut Vec<u8>),
) {
    enclose(*b"[]", items, layout, out, each);
}

/// Writes an object; `each` writes a key and a value.
pub fn write_map<T, L: Layout>(
    members: &[T],
    layout: &mut L,
    out: &mut Vec<u8>,
    each: impl FnMut(&T, &mut L, &mut Vec<u8>),
) {
    enclose(*b"{}", members, layout, out, each);
}

fn enclose<T, L: Layout>(
    [open, close]: [u8; 2],
    inner: &[T],
    layout: &mut L,
    out: &mut Vec<u8>,
    mut each: impl FnMut(&T, &mut L, &mut Vec<u8>),
) {
    out.push(open);
    for (i, one) in inner.iter().enumerate() {
        layout.before(i == 0, out);
        each(one, layout, out);
    }
    if !inner.is_empty() {
        layout.end(out);
    }
    out.push(close);
}

/// Writes a key and its colon.
pub fn write_key<L: Layout>(key: &str, layout: &mut L, out: &mut Vec<u8>) {
    string(key, out);
    layout.colon(out);
}

/// Writes a key that has no character to escape, and its colon.
#[inline]
pub fn write_plain_key<L: Layout>(key: &str, layout: &mut L, out: &mut Vec<u8>) {
    debug_assert!(is_plain(key), "{key} has nothing to escape");
    out.push(b'"');
    out.extend_from_slice(key.as_bytes());
    out.push(b'"');
    layout.colon(out);
}

/// Writes a string in quotes.
pub fn string(text: &str, out: &mut Vec<u8>) {
    out.push(b'"');
    unquoted(text, out);
    out.push(b'"');
}

/// Writes a string in quotes that begins with `prefix`, which has no character to escape.
#[inline]
pub fn string_after(prefix: &'static str, text: &str, out: &mut Vec<u8>) {
    out.push(b'"');
    out.extend_from_slice(prefix.as_bytes());
    unquoted(text, out);
    out.push(b'"');
}

/// Writes the text of a string.
#[inline]
fn unquoted(text: &str, out: &mut Vec<u8>) {
    let bytes = text.as_bytes();
    let plain = plain_len(bytes);
    out.extend_from_slice(&bytes[..plain]);
    if plain < bytes.len() {
        escaped(&bytes[plain..], out);
    }
}

/// Writes the rest of a string, whose first byte is not plain.
fn escaped(mut rest: &[u8], out: &mut Vec<u8>) {
    while !rest.is_empty() {
        rest = escape(rest, out);
        let plain = plain_len(rest);
        out.extend_from_slice(&rest[..plain]);
        rest = &rest[plain..];
    }
}

/// Writes the first character of `rest`, escaped if necessary. Returns the rest.
#[cold]
fn escape<'r>(rest: &'r [u8], out: &mut Vec<u8>) -> &'r [u8] {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    let byte = rest[0];
    let short = match byte {
        b'"' | b'\\' => byte,
        b'\n' => b'n',
        b'\r' => b'r',
        b'\t' => b't',
        0x08 => b'b',
        0x0c => b'f',
        // U+2028 and U+2029 end lines in JavaScript.
        0xe2 if rest.starts_with("\u{2028}".as_bytes()) => {
            out.extend_from_slice(b"\\u2028");
            return &rest[3..];
        }
        0xe2 if rest.starts_with("\u{2029}".as_bytes()) => {
            out.extend_from_slice(b"\\u2029");
            return &rest[3..];
        }
        0xe2 => {
            out.push(byte);
            return &rest[1..];
        }
        _ => {
            let (high, low) = (HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)]);
            out.extend_from_slice(&[b'\\', b'u', b'0', b'0', high, low]);
            return &rest[1..];
        }
    };
    out.extend_from_slice(&[b'\\', short]);
    &rest[1..]
}

/// Whether a string is written unchanged, between quotes.
pub fn is_plain(text: &str) -> bool {
    plain_len(text.as_bytes()) == text.len()
}

/// The number of leading bytes that are written unchanged.
#[inline]
fn plain_len(bytes: &[u8]) -> usize {
    scan::until_far(bytes, &SPECIAL)
}

/// Bytes that are, or may be, escaped.
static SPECIAL: scan::Bytes<4> =
    scan::Bytes::new([either(b'"', b'&'), one(b'\\'), either(b'<', b'>'), one(0xe2)]);
