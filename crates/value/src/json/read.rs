//! The tokenizer: a pull reader over text, with Go's error messages.

use std::borrow::Cow;

use super::scan::{self, either, one};
use super::span;
use crate::{
    DEPTH_MAX, Error,
    token::{Token, Tokens},
};

/// Converts bytes to text. As Go's decoder does in strings, each invalid byte becomes U+FFFD.
/// Outside of strings such a byte is an error in either form.
#[inline]
pub fn text(bytes: &[u8]) -> Cow<'_, str> {
    std::str::from_utf8(bytes).map_or_else(|_| Cow::Owned(repaired(bytes)), Cow::Borrowed)
}

#[cold]
fn repaired(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len() + 16);
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        chunk.invalid().iter().for_each(|_| text.push(char::REPLACEMENT_CHARACTER));
    }
    text
}

/// Reads tokens from JSON text.
pub struct Reader<'a> {
    text: &'a str,
    /// The offset of the next byte.
    at: usize,
    /// The number of open lists and objects.
    depth: usize,
    /// Whether the innermost list or object has had no item or key yet.
    fresh: bool,
    /// Whether the text is known to be valid, so that a value that stays raw is not checked.
    is_valid: bool,
    /// The last string that had escapes.
    unescaped: String,
}

impl<'a> Reader<'a> {
    /// A reader at the beginning of `text`.
    pub const fn new(text: &'a str) -> Self {
        Self::within(text, 0)
    }

    /// A reader of text that will be embedded `depth` levels deep; the allowed nesting is reduced
    /// accordingly.
    pub const fn within(text: &'a str, depth: usize) -> Self {
        Self { text, at: 0, depth, fresh: false, is_valid: false, unescaped: String::new() }
    }

    /// A reader of text that [`super::check`] accepted.
    pub const fn of_valid(text: &'a str) -> Self {
        let mut reader = Self::new(text);
        reader.is_valid = true;
        reader
    }

    /// Returns the offset of the next byte. After [`Tokens::key`] that is the key's value, in compact
    /// text.
    pub const fn offset(&self) -> usize {
        self.at
    }

    /// Whether the next value is an object.
    pub(super) fn is_at_object(&mut self) -> Result<bool, Error> {
        Ok(self.next_visible()? == b'{')
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    /// Returns the next byte that is not white space, without consuming it.
    fn next_visible(&mut self) -> Result<u8, Error> {
        let bytes = self.text.as_bytes();
        while let Some(&byte) = bytes.get(self.at) {
            if !matches!(byte, b' ' | b'\n' | b'\r' | b'\t') {
                return Ok(byte);
            }
            self.at += 1;
        }
        Err(Error::UnexpectedEnd)
    }

    /// The error for the byte at the cursor.
    fn unexpected(&self, context: &'static str) -> Error {
        match self.peek() {
            Some(found) => Error::InvalidCharacter { found, context },
            None => Error::UnexpectedEnd,
        }
    }

    fn open(&mut self) -> Result<(), Error> {
        self.at += 1;
        self.depth += 1;
        self.fresh = true;
        if self.depth > DEPTH_MAX { Err(Error::Depth) } else { Ok(()) }
    }

    /// Reads a literal whose first byte is at the cursor.
    fn literal<'t>(&mut self, rest: &[Expected], token: Token<'t>) -> Result<Token<'t>, Error> {
        self.at += 1;
        for expected in rest {
            if self.peek() != Some(expected.byte) {
                return Err(self.unexpected(expected.context));
            }
            self.at += 1;
        }
        Ok(token)
    }

    fn digits(&mut self, context: &'static str) -> Result<(), Error> {
        if !matches!(self.peek(), Some(b'0'..=b'9')) {
            return Err(self.unexpected(context));
        }
        while let Some(b'0'..=b'9') = self.peek() {
            self.at += 1;
        }
        Ok(())
    }

    /// Reads a number whose first byte is at the cursor.
    fn number(&mut self) -> Result<&'a str, Error> {
        let start = self.at;
        if self.peek() == Some(b'-') {
            self.at += 1;
        }
        if self.peek() == Some(b'0') {
            self.at += 1;
        } else {
            self.digits("in numeric literal")?;
        }
        if self.peek() == Some(b'.') {
            self.at += 1;
            self.digits("after decimal point in numeric literal")?;
        }
        if let Some(b'e' | b'E') = self.peek() {
            self.at += 1;
            if let Some(b'+' | b'-') = self.peek() {
                self.at += 1;
            }
            self.digits("in exponent of numeric literal")?;
        }
        Ok(&self.text[start..self.at])
    }

    /// Reads a string whose opening quote is at the cursor.
    #[inline]
    fn string(&mut self) -> Result<Text, Error> {
        let start = self.at + 1;
        let end = start + scan::until_special(&self.text.as_bytes()[start..]);
        self.at = end;
        if self.peek() != Some(b'"') {
            return self.unescape(start).map(|()| Text::Unescaped);
        }
        self.at += 1;
        Ok(Text::Plain { start, end })
    }

    /// The text of the string that was read last.
    #[inline]
    fn text(&self, text: Text) -> &str {
        match text {
            Text::Plain { start, end } => &self.text[start..end],
            Text::Unescaped => &self.unescaped,
        }
    }

    /// Reads the rest of a string that began at `start`, from its first special byte on, which is at
    /// the cursor.
    #[cold]
    fn unescape(&mut self, start: usize) -> Result<(), Error> {
        self.unescaped.clear();
        self.unescaped.push_str(&self.text[start..self.at]);
        loop {
            match self.peek() {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(());
                }
                Some(b'\\') => {
                    self.at += 1;
                    let c = self.escape()?;
                    self.unescaped.push(c);
                }
                Some(0x20..) => {
                    let len = scan::until_special(&self.text.as_bytes()[self.at..]);
                    self.unescaped.push_str(&self.text[self.at..self.at + len]);
                    self.at += len;
                }
                _ => return Err(self.unexpected("in string literal")),
            }
        }
    }

    /// Reads an escape whose backslash is before the cursor.
    fn escape(&mut self) -> Result<char, Error> {
        let c = match self.peek() {
            Some(c @ (b'"' | b'\\' | b'/')) => char::from(c),
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(b'u') => {
                self.at += 1;
                let unit = self.hex4()?;
                return self.surrogate(unit);
            }
            _ => return Err(self.unexpected("in string escape code")),
        };
        self.at += 1;
        Ok(c)
    }

    /// Returns the character that begins with the UTF-16 unit `high`. A lone surrogate becomes
    /// U+FFFD; the text after it is read normally.
    fn surrogate(&mut self, high: u32) -> Result<char, Error> {
        let low_follows = self.text.as_bytes()[self.at..].starts_with(b"\\u");
        if !(0xd800..0xdc00).contains(&high) || !low_follows {
            return Ok(char::from_u32(high).unwrap_or(char::REPLACEMENT_CHARACTER));
        }
        let back = self.at;
        self.at += 2;
        let low = self.hex4()?;
        if (0xdc00..0xe000).contains(&low) {
            let code = 0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00);
            return Ok(char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER));
        }
        self.at = back;
        Ok(char::REPLACEMENT_CHARACTER)
    }

    fn hex4(&mut self) -> Result<u32, Error> {
        let mut unit = 0;
        for _ in 0..4 {
            let digit = self.peek().and_then(|byte| char::from(byte).to_digit(16));
            let Some(digit) = digit else {
                return Err(self.unexpected("in \\u hexadecimal character escape"));
            };
            unit = unit * 16 + digit;
            self.at += 1;
        }
        Ok(unit)
    }

    /// Consumes the comma before an item or key, or the end. Returns whether an item or key
    /// follows.
    fn follows(&mut self, end: u8, context: &'static str) -> Result<bool, Error> {
        let byte = self.next_visible()?;
        if byte == end {
            self.at += 1;
            self.depth -= 1;
            self.fresh = false;
            return Ok(false);
        }
        if !std::mem::take(&mut self.fresh) {
            if byte != b',' {
                return Err(self.unexpected(context));
            }
            self.at += 1;
        }
        Ok(true)
    }
}

impl Tokens for Reader<'_> {
    fn value(&mut self) -> Result<Token<'_>, Error> {
        match self.next_visible()? {
            b'"' => {
                let text = self.string()?;
                Ok(Token::String(self.text(text)))
            }
            b'{' => self.open().map(|()| Token::Object),
            b'[' => self.open().map(|()| Token::Array),
            b'-' | b'0'..=b'9' => Ok(Token::Number(self.number()?)),
            b't' => self.literal(TRUE, Token::Bool(true)),
            b'f' => self.literal(FALSE, Token::Bool(false)),
            b'n' => self.literal(NULL, Token::Null),
            _ => Err(self.unexpected("looking for beginning of value")),
        }
    }

    fn item(&mut self) -> Result<bool, Error> {
        self.follows(b']', "after array element")
    }

    fn key(&mut self) -> Result<Option<&str>, Error> {
        if !self.follows(b'}', "after object key:value pair")? {
            return Ok(None);
        }
        if self.next_visible()? != b'"' {
            return Err(self.unexpected("looking for beginning of object key string"));
        }
        let key = self.string()?;
        if self.next_visible()? != b':' {
            return Err(self.unexpected("after object key"));
        }
        self.at += 1;
        Ok(Some(self.text(key)))
    }

    /// Reads keys of compact text only.
    #[inline]
    fn key_is(&mut self, name: &str) -> bool {
        let bytes = self.text.as_bytes();
        let quote = self.at + usize::from(!self.fresh);
        let (start, end) = (quote + 1, quote + 1 + name.len());
        let is_key = bytes.get(quote) == Some(&b'"')
            && (self.fresh || bytes[self.at] == b',')
            && bytes.get(start..end) == Some(name.as_bytes())
            && bytes.get(end..end + 2) == Some(b"\":");
        if is_key {
            self.at = end + 2;
            self.fresh = false;
        }
        is_key
    }

    fn json(&mut self) -> Result<Box<str>, Error> {
        self.next_visible()?;
        let start = self.at;
        self.skip()?;
        let text = &self.text[start..self.at];
        Ok(if scan::until_far(text.as_bytes(), &NOT_COMPACT) == text.len() {
            text.into()
        } else {
            compact(text)
        })
    }

    fn skip(&mut self) -> Result<(), Error> {
        let is_container = matches!(self.next_visible()?, b'{' | b'[');
        if self.is_valid && is_container {
            let end = span::value_end(self.text.as_bytes(), self.at).ok_or(Error::UnexpectedEnd)?;
            (self.at, self.fresh) = (end, false);
            return Ok(());
        }
        let begun = self.value()?.kind();
        self.skip_rest(begun)
    }

    fn end(&mut self) -> Result<(), Error> {
        match self.next_visible() {
            Err(_) => Ok(()),
            Ok(_) => Err(self.unexpected("after top-level value")),
        }
    }
}

/// Where the text of a string is.
#[derive(Clone, Copy)]
enum Text {
    /// In the text that is read, from one offset to the other.
    Plain { start: usize, end: usize },
    /// In `unescaped`, because it had escapes.
    Unescaped,
}

/// Removes the white space between tokens.
#[cold]
fn compact(text: &str) -> Box<str> {
    let mut out = Vec::with_capacity(text.len());
    super::write::copy(text, &mut super::Compact, &mut out);
    String::from_utf8(out).unwrap_or_default().into()
}

/// One byte of a literal, and Go's error message if it does not match.
struct Expected {
    byte: u8,
    context: &'static str,
}

const TRUE: &[Expected] = &[
    Expected { byte: b'r', context: "in literal true (expecting 'r')" },
    Expected { byte: b'u', context: "in literal true (expecting 'u')" },
    Expected { byte: b'e', context: "in literal true (expecting 'e')" },
];
const FALSE: &[Expected] = &[
    Expected { byte: b'a', context: "in literal false (expecting 'a')" },
    Expected { byte: b'l', context: "in literal false (expecting 'l')" },
    Expected { byte: b's', context: "in literal false (expecting 's')" },
    Expected { byte: b'e', context: "in literal false (expecting 'e')" },
];
const NULL: &[Expected] = &[
    Expected { byte: b'u', context: "in literal null (expecting 'u')" },
    Expected { byte: b'l', context: "in literal null (expecting 'l')" },
    Expected { byte: b'l', context: "in literal null (expecting 'l')" },
];

/// Bytes that compact JSON has only in strings, or writes as escapes.
static NOT_COMPACT: scan::Bytes<4> =
    scan::Bytes::new([one(b' '), either(b'<', b'>'), one(b'&'), one(0xe2)]);
