//! Parses literals.

use std::sync::Arc;

use crate::ast::Literal;

/// Parses an integer such as `-12` or `0x1F`.
pub(super) fn int(text: &str, negative: bool) -> Option<Literal> {
    let sign = if negative { "-" } else { "" };
    let parsed = match text.strip_prefix("0x") {
        Some(hex) => i64::from_str_radix(&format!("{sign}{hex}"), 16),
        None => format!("{sign}{text}").parse(),
    };
    parsed.ok().map(Literal::Int)
}

/// Parses an unsigned integer such as `12u` or `0x1Fu`.
pub(super) fn uint(text: &str) -> Option<Literal> {
    let text = &text[..text.len() - 1];
    let parsed = match text.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16),
        None => text.parse(),
    };
    parsed.ok().map(Literal::Uint)
}

/// Parses a decimal number; as in Go, one that is too large is an error.
pub(super) fn double(text: &str, negative: bool) -> Option<Literal> {
    let number: f64 = text.parse().ok()?;
    number.is_finite().then_some(Literal::Double(if negative { -number } else { number }))
}

/// Parses a string with its quotes and prefix.
pub(super) fn string(text: &str) -> Result<Literal, &'static str> {
    let bytes = unescape(text, false)?;
    let text = String::from_utf8(bytes).map_err(|_| "invalid unicode code point")?;
    Ok(Literal::String(text.into()))
}

/// Parses bytes with their quotes and prefix.
pub(super) fn bytes(text: &str) -> Result<Literal, &'static str> {
    unescape(&text[1..], true).map(|b| Literal::Bytes(Arc::from(b)))
}

/// Removes the quotes and resolves escapes. All line ends become `\n`.
fn unescape(text: &str, is_bytes: bool) -> Result<Vec<u8>, &'static str> {
    let text = text.replace("\r\n", "\n").replace('\r', "\n");
    let (raw, quoted) = match text.strip_prefix(['r', 'R']) {
        Some(rest) => (true, rest),
        None => (false, text.as_str()),
    };
    let quotes = if quoted.len() >= 6 && (quoted.starts_with("'''") || quoted.starts_with("\"\"\""))
    {
        3
    } else {
        1
    };
    let inside = &quoted[quotes..quoted.len() - quotes];
    if raw || !inside.contains('\\') {
        return Ok(inside.as_bytes().to_vec());
    }
    let mut out = Vec::with_capacity(inside.len());
    let mut rest = inside;
    while let Some(c) = rest.chars().next() {
        if c == '\\' {
            rest = escape(&rest[1..], is_bytes, &mut out)?;
        } else {
            out.extend_from_slice(&rest.as_bytes()[..c.len_utf8()]);
            rest = &rest[c.len_utf8()..];
        }
    }
    Ok(out)
}

/// Resolves the escape after a backslash; the tokenizer has validated it.
fn escape<'a>(text: &'a str, is_bytes: bool, out: &mut Vec<u8>) -> Result<&'a str, &'static str> {
    const WRONG: &str = "unable to unescape string";
    let simple = |b: u8| match b {
        b'a' => Some(7),
        b'b' => Some(8),
        b'f' => Some(12),
        b'n' => Some(b'\n'),
        b'r' => Some(b'\r'),
        b't' => Some(b'\t'),
        b'v' => Some(11),
        b'\\' | b'\'' | b'"' | b'`' | b'?' => Some(b),
        _ => None,
    };
    let first = *text.as_bytes().first().ok_or(WRONG)?;
    if let Some(byte) = simple(first) {
        out.push(byte);
        return Ok(&text[1..]);
    }
    let (digits, radix, rest) = match first {
        b'x' | b'X' => (text.get(1..3), 16, text.get(3..)),
        b'u' if !is_bytes => (text.get(1..5), 16, text.get(5..)),
        b'U' if !is_bytes => (text.get(1..9), 16, text.get(9..)),
        b'0'..=b'3' => (text.get(..3), 8, text.get(3..)),
        _ => return Err(WRONG),
    };
    let code = u32::from_str_radix(digits.ok_or(WRONG)?, radix).map_err(|_| WRONG)?;
    if is_bytes {
        out.push(u8::try_from(code).map_err(|_| WRONG)?);
    } else {
        let c = char::from_u32(code).ok_or("invalid unicode code point")?;
        out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
    }
    rest.ok_or(WRONG)
}
