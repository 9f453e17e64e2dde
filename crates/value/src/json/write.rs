//! The writer: Go's encoding of values.

use std::io::Write;

use crate::Value;

/// Writes a value as compact JSON, members in the order of their keys.
pub fn write(value: &Value, out: &mut Vec<u8>) {
    match value {
        Value::Null => out.extend_from_slice(b"null"),
        Value::Bool(true) => out.extend_from_slice(b"true"),
        Value::Bool(false) => out.extend_from_slice(b"false"),
        Value::Int(n) => out.extend_from_slice(itoa::Buffer::new().format(*n).as_bytes()),
        Value::Float(x) => number(*x, out),
        Value::String(text) => string(text, out),
        Value::Array(items) => {
            out.push(b'[');
            for (i, item) in items.iter().enumerate() {
                if i > 0 {
                    out.push(b',');
                }
                write(item, out);
            }
            out.push(b']');
        }
        Value::Object(members) => {
            out.push(b'{');
            for (i, (key, member)) in members.iter().enumerate() {
                if i > 0 {
                    out.push(b',');
                }
                string(key, out);
                out.push(b':');
                write(member, out);
            }
            out.push(b'}');
        }
    }
}

/// Writes a value as JSON on many lines, as Go's `json.Indent` does with two spaces.
pub fn write_pretty(value: &Value, out: &mut Vec<u8>) {
    pretty(value, 0, out);
}

fn pretty(value: &Value, indent: usize, out: &mut Vec<u8>) {
    match value {
        Value::Array(items) if !items.is_empty() => {
            out.push(b'[');
            for (i, item) in items.iter().enumerate() {
                line(i, indent + 1, out);
                pretty(item, indent + 1, out);
            }
            new_line(indent, out);
            out.push(b']');
        }
        Value::Object(members) if !members.is_empty() => {
            out.push(b'{');
            for (i, (key, member)) in members.iter().enumerate() {
                line(i, indent + 1, out);
                string(key, out);
                out.extend_from_slice(b": ");
                pretty(member, indent + 1, out);
            }
            new_line(indent, out);
            out.push(b'}');
        }
        _ => write(value, out),
    }
}

/// Begins the line of the item or member `i`.
fn line(i: usize, indent: usize, out: &mut Vec<u8>) {
    if i > 0 {
        out.push(b',');
    }
    new_line(indent, out);
}

fn new_line(indent: usize, out: &mut Vec<u8>) {
    out.push(b'\n');
    out.extend(std::iter::repeat_n(b' ', 2 * indent));
}

/// Writes a finite number: the shortest digits that read back as it, with an exponent only where Go
/// uses one.
pub fn number(x: f64, out: &mut Vec<u8>) {
    let size = x.abs();
    let result = if size != 0.0 && size < 1e-6 {
        write!(out, "{x:e}")
    } else if size >= 1e21 {
        let text = format!("{x:e}");
        write!(out, "{}", text.replace('e', "e+"))
    } else {
        write!(out, "{x}")
    };
    result.expect("writing to a Vec cannot fail");
}

/// Writes a string in quotes.
pub fn string(text: &str, out: &mut Vec<u8>) {
    out.push(b'"');
    let mut rest = text.as_bytes();
    loop {
        let plain = plain_len(rest);
        out.extend_from_slice(&rest[..plain]);
        rest = &rest[plain..];
        if rest.is_empty() {
            break;
        }
        rest = escape(rest, out);
    }
    out.push(b'"');
}

/// Writes the first character of `rest`, escaped where it must be; gives what follows it.
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

/// How many bytes from the start are written as they are.
fn plain_len(bytes: &[u8]) -> usize {
    let mut len = 0;
    for chunk in bytes.chunks_exact(16) {
        let special = chunk.iter().fold(false, |any, &b| any | is_special(b));
        if special {
            break;
        }
        len += 16;
    }
    len + bytes[len..].iter().position(|&b| is_special(b)).unwrap_or(bytes.len() - len)
}

const fn is_special(byte: u8) -> bool {
    byte < 0x20 || matches!(byte, b'"' | b'\\' | b'<' | b'>' | b'&' | 0xe2)
}
