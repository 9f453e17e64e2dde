//! The tokenizer.

use crate::source::Issues;

/// The kind of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Token {
    /// Punctuation, or one of the words `in`, `true`, `false` and `null`, as written.
    Sign(&'static str),
    Ident,
    /// A name in backquotes.
    EscapedIdent,
    Int,
    Uint,
    Float,
    String,
    Bytes,
    End,
}

/// A token and its byte range in the text.
#[derive(Clone, Copy, Debug)]
pub(super) struct Spanned {
    pub(super) token: Token,
    pub(super) start: u32,
    pub(super) end: u32,
}

/// Punctuation; longer signs come before their prefixes.
const SIGNS: &[&str] = &[
    "==", "!=", "<=", ">=", "&&", "||", "<", ">", "[", "]", "{", "}", "(", ")", ".", ",", "-", "!",
    "?", ":", "+", "*", "/", "%",
];

const WORDS: &[&str] = &["in", "true", "false", "null"];

/// Tokenizes `text`; the last token is the end. Invalid characters are reported and skipped.
pub(super) fn tokens(text: &str, issues: &mut Issues) -> Vec<Spanned> {
    let mut tokens = Vec::new();
    let mut at = 0;
    while at < text.len() {
        let rest = &text[at..];
        let hidden = hidden(rest);
        if hidden > 0 {
            at += hidden;
            continue;
        }
        match token(rest) {
            Ok((token, len)) => {
                tokens.push(Spanned { token, start: at as u32, end: (at + len) as u32 });
                at += len;
            }
            Err(len) => {
                let wrong = rest[..len].replace('\n', "\\n").replace('\t', "\\t");
                let wrong = wrong.replace('\r', "\\r");
                let message = format!("Syntax error: token recognition error at: '{wrong}'");
                issues.report(Some(at as u32), message);
                at += len;
            }
        }
    }
    let end = text.len() as u32;
    tokens.push(Spanned { token: Token::End, start: end, end });
    tokens
}

/// The length of leading white space or a comment.
fn hidden(text: &str) -> usize {
    let is_space = |c: char| matches!(c, '\t' | ' ' | '\r' | '\n' | '\u{c}');
    if text.starts_with("//") {
        return text.find('\n').unwrap_or(text.len());
    }
    text.len() - text.trim_start_matches(is_space).len()
}

/// The leading token and its length; `Err` with the length of the invalid text.
fn token(text: &str) -> Result<(Token, usize), usize> {
    let first = text.as_bytes()[0];
    match first {
        b'"' | b'\'' => string(text, false).map(|len| (Token::String, len)),
        b'`' => escaped_ident(text).map(|len| (Token::EscapedIdent, len)),
        b'0'..=b'9' => Ok(number(text)),
        b'.' if text[1..].starts_with(|c: char| c.is_ascii_digit()) => Ok(number(text)),
        b'_' | b'a'..=b'z' | b'A'..=b'Z' => Ok(prefixed_string(text).unwrap_or_else(|| word(text))),
        _ => sign(text),
    }
}

fn sign(text: &str) -> Result<(Token, usize), usize> {
    if let Some(sign) = SIGNS.iter().find(|s| text.starts_with(**s)) {
        return Ok((Token::Sign(sign), sign.len()));
    }
    // A single `=`, `&` or `|` fails at the character after it.
    let mut chars = text.chars();
    let first = chars.next().map_or(0, char::len_utf8);
    match text.as_bytes()[0] {
        b'=' | b'&' | b'|' => Err(first + chars.next().map_or(0, char::len_utf8)),
        _ => Err(first),
    }
}

fn word(text: &str) -> (Token, usize) {
    let end = text.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(text.len());
    match WORDS.iter().find(|w| **w == &text[..end]) {
        Some(word) => (Token::Sign(word), end),
        None => (Token::Ident, end),
    }
}

/// A string or bytes with prefix letters. If it is not closed, the letters are a name.
fn prefixed_string(text: &str) -> Option<(Token, usize)> {
    let (token, rest) = match text.strip_prefix(['b', 'B']) {
        Some(rest) => (Token::Bytes, rest),
        None => (Token::String, text),
    };
    let (raw, rest) = match rest.strip_prefix(['r', 'R']) {
        Some(rest) => (true, rest),
        None => (false, rest),
    };
    if !rest.starts_with(['"', '\'']) {
        return None;
    }
    let len = string(rest, raw).ok()?;
    Some((token, text.len() - rest.len() + len))
}

/// The length of a string that begins with its quotes; `Err` with the offset of the error.
fn string(text: &str, raw: bool) -> Result<usize, usize> {
    let quote = &text[..1];
    let triple = quote.repeat(3);
    if let Some(inside) = text.strip_prefix(&triple) {
        match inside_string(inside, &triple, raw) {
            Ok(len) => return Ok(3 + len + 3),
            // The first two of the three quotes are then an empty string, and the rest is read as
            // tokens.
            Err(_) => return Ok(2),
        }
    }
    inside_string(&text[1..], quote, raw).map(|len| 1 + len + 1).map_err(|len| 1 + len)
}

/// The length of the text before `close`.
fn inside_string(text: &str, close: &str, raw: bool) -> Result<usize, usize> {
    let mut at = 0;
    while let Some(c) = text[at..].chars().next() {
        if text[at..].starts_with(close) {
            return Ok(at);
        }
        if close.len() == 1 && matches!(c, '\n' | '\r') {
            return Err(at + 1);
        }
        at += match c {
            '\\' if !raw => escape(&text[at..]).map_err(|len| at + len)?,
            _ => c.len_utf8(),
        };
    }
    Err(text.len())
}

/// The length of an escape sequence; `Err` with the offset of the error.
fn escape(text: &str) -> Result<usize, usize> {
    let mut chars = text.char_indices().skip(1);
    let Some((_, c)) = chars.next() else { return Err(text.len()) };
    let (count, is_digit): (usize, fn(char) -> bool) = match c {
        'a' | 'b' | 'f' | 'n' | 'r' | 't' | 'v' | '"' | '\'' | '\\' | '?' | '`' => return Ok(2),
        'x' | 'X' => (2, |c| c.is_ascii_hexdigit()),
        'u' => (4, |c| c.is_ascii_hexdigit()),
        'U' => (8, |c| c.is_ascii_hexdigit()),
        '0'..='3' => (2, |c| matches!(c, '0'..='7')),
        _ => return Err(1 + c.len_utf8()),
    };
    for _ in 0..count {
        match chars.next() {
            Some((_, c)) if is_digit(c) => {}
            Some((at, c)) => return Err(at + c.len_utf8()),
            None => return Err(text.len()),
        }
    }
    Ok(2 + count)
}

fn escaped_ident(text: &str) -> Result<usize, usize> {
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-' | '/' | ' ');
    let inside = &text[1..];
    let len = inside.find(|c| !allowed(c)).unwrap_or(inside.len());
    if len > 0 && inside[len..].starts_with('`') {
        return Ok(1 + len + 1);
    }
    Err(1 + len + inside[len..].chars().next().map_or(0, char::len_utf8))
}

fn number(text: &str) -> (Token, usize) {
    let bytes = text.as_bytes();
    let digits = |from: usize| {
        let rest = bytes.get(from..).unwrap_or_default();
        rest.iter().take_while(|b| b.is_ascii_digit()).count()
    };
    if bytes.starts_with(b"0x") {
        let hex = bytes[2..].iter().take_while(|b| b.is_ascii_hexdigit()).count();
        if hex > 0 {
            return integer(bytes, 2 + hex);
        }
    }
    let whole = digits(0);
    let mut end = whole;
    let mut is_float = false;
    if bytes.get(end) == Some(&b'.') && digits(end + 1) > 0 {
        end += 1 + digits(end + 1);
        is_float = true;
    }
    if matches!(bytes.get(end), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(bytes.get(end + 1), Some(b'+' | b'-')));
        let exponent = digits(end + 1 + sign);
        if exponent > 0 {
            end += 1 + sign + exponent;
            is_float = true;
        }
    }
    if is_float { (Token::Float, end) } else { integer(bytes, end) }
}

fn integer(bytes: &[u8], end: usize) -> (Token, usize) {
    match bytes.get(end) {
        Some(b'u' | b'U') => (Token::Uint, end + 1),
        _ => (Token::Int, end),
    }
}
