//! The writer: block style, byte for byte as go-yaml v2's emitter.
//!
//! The emitter's state (column, indentation, whether the line has only indentation so far) decides
//! about spaces and line breaks, so this code follows that state machine.

use super::{
    order,
    resolve::{general, is_unambiguous_text},
    scalar::{Style, Traits, is_break, is_plain_ascii, is_printable},
};
use crate::{Value, json};

/// Writes a value as a YAML document, keys in go-yaml's order.
pub fn write(value: &Value, out: &mut Vec<u8>) {
    let mut emitter = Emitter::new(out, None);
    emitter.value(value, false);
    emitter.write_indent();
}

/// Writes a value as an item of a list that is a member of the document, in whole lines. The result
/// can differ from the value's own document, because the position of a line decides where it is
/// folded.
pub fn write_item(value: &Value, out: &mut Vec<u8>) {
    let mut emitter = Emitter::new(out, Some(0));
    emitter.indicator("-", true, true);
    emitter.value(value, false);
    emitter.write_indent();
}

/// Text is folded at the first space after this column.
const WIDTH: usize = 80;
/// Spaces per level.
const INDENT: usize = 2;
/// Longer keys are written after a `?`.
const SIMPLE_KEY_MAX: usize = 128;

struct Emitter<'o> {
    out: &'o mut Vec<u8>,
    /// The number of characters in the current line.
    column: usize,
    /// The indentation of the current list or map; `None` outside of any.
    indent: Option<usize>,
    /// Whether the last character was white space, or needs none after it.
    whitespace: bool,
    /// Whether the line has only indentation, `-`, `?` and `:` so far.
    indention: bool,
}

impl<'o> Emitter<'o> {
    /// An emitter at the beginning of a line.
    const fn new(out: &'o mut Vec<u8>, indent: Option<usize>) -> Self {
        Self { out, column: 0, indent, whitespace: true, indention: true }
    }

    fn value(&mut self, value: &Value, in_map: bool) {
        match value {
            Value::Null => self.bare("null"),
            Value::Bool(b) => self.bare(if *b { "true" } else { "false" }),
            Value::Int(n) => self.bare(itoa::Buffer::new().format(*n)),
            Value::Float(x) => self.bare(&general(&format!("{x:e}"))),
            Value::String(text) => self.string(text, false),
            Value::Array(items) if items.is_empty() => self.bare("[]"),
            Value::Object(members) if members.is_empty() => self.bare("{}"),
            Value::Array(items) => {
                // A list directly after its key is not indented further.
                let outer = self.indent;
                let more = if in_map && !self.indention { 0 } else { INDENT };
                self.indent = Some(outer.map_or(0, |indent| indent + more));
                for item in items {
                    self.write_indent();
                    self.indicator("-", true, true);
                    self.value(item, false);
                }
                self.indent = outer;
            }
            Value::Object(members) => {
                let outer = self.indent;
                self.indent = Some(outer.map_or(0, |indent| indent + INDENT));
                let mut members: Vec<_> = members.iter().collect();
                order::sort(&mut members, |(key, _)| key);
                for (key, member) in members {
                    self.member(key, member);
                }
                self.indent = outer;
            }
            Value::Raw(text) => {
                self.value(&json::parse(text.as_bytes()).unwrap_or_default(), in_map);
            }
        }
    }

    fn member(&mut self, key: &str, member: &Value) {
        self.write_indent();
        if key.len() <= SIMPLE_KEY_MAX && !key.contains(is_break) {
            self.string(key, true);
            self.indicator(":", false, false);
        } else {
            self.indicator("?", true, true);
            self.string(key, false);
            self.write_indent();
            self.indicator(":", true, true);
        }
        self.value(member, true);
    }

    fn string(&mut self, text: &str, simple_key: bool) {
        let fits = self.column + text.len() <= WIDTH || simple_key || !text.contains(' ');
        if fits && is_plain_ascii(text) && is_unambiguous_text(text) {
            return self.bare(text);
        }
        let traits = Traits::of(text);
        let outer = self.indent;
        self.indent = Some(outer.map_or(INDENT, |indent| indent + INDENT));
        match traits.style(text, is_unambiguous_text(text), simple_key) {
            Style::Plain => self.plain(text, !simple_key),
            Style::SingleQuoted => self.single_quoted(text, !simple_key),
            Style::DoubleQuoted => self.double_quoted(text, !simple_key),
            Style::Literal => self.literal(text),
        }
        self.indent = outer;
    }

    /// Writes ASCII text that needs no quotes and is not folded.
    fn bare(&mut self, text: &str) {
        self.indicator(text, true, false);
    }

    fn plain(&mut self, text: &str, may_break: bool) {
        if !self.whitespace {
            self.put(' ');
        }
        let mut spaces = false;
        let mut chars = text.chars().peekable();
        while let Some(c) = chars.next() {
            let foldable = c == ' ' && may_break && !spaces && self.column > WIDTH;
            if foldable && chars.peek() != Some(&' ') {
                self.write_indent();
            } else {
                self.put(c);
            }
            if c != ' ' {
                self.indention = false;
            }
            spaces = c == ' ';
        }
        self.whitespace = false;
        self.indention = false;
    }

    fn single_quoted(&mut self, text: &str, may_break: bool) {
        self.indicator("'", true, false);
        let (mut spaces, mut breaks) = (false, false);
        for (i, c) in text.char_indices() {
            let next = text[i + c.len_utf8()..].chars().next();
            if c == ' ' {
                let inside = i > 0 && next.is_some_and(|next| next != ' ');
                if may_break && !spaces && self.column > WIDTH && inside {
                    self.write_indent();
                } else {
                    self.put(c);
                }
                spaces = true;
            } else if is_break(c) {
                if !breaks && c == '\n' {
                    self.put_break();
                }
                self.write_break(c);
                self.indention = true;
                breaks = true;
            } else {
                if breaks {
                    self.write_indent();
                }
                if c == '\'' {
                    self.put('\'');
                }
                self.put(c);
                self.indention = false;
                (spaces, breaks) = (false, false);
            }
        }
        self.indicator("'", false, false);
    }

    fn double_quoted(&mut self, text: &str, may_break: bool) {
        self.indicator("\"", true, false);
        let mut spaces = false;
        for (i, c) in text.char_indices() {
            let next = text[i + c.len_utf8()..].chars().next();
            if !is_printable(c) || is_break(c) || matches!(c, '"' | '\\') {
                self.escape(c);
                spaces = false;
            } else if c == ' ' && may_break && !spaces && self.column > WIDTH && i > 0 {
                match next {
                    None => self.put(c),
                    Some(next) => {
                        self.write_indent();
                        if next == ' ' {
                            self.put('\\');
                        }
                    }
                }
                spaces = true;
            } else {
                self.put(c);
                spaces = c == ' ';
            }
        }
        self.indicator("\"", false, false);
    }

    fn escape(&mut self, c: char) {
        let code = u32::from(c);
        let short = match code {
            0x00 => "0",
            0x07 => "a",
            0x08 => "b",
            0x09 => "t",
            0x0a => "n",
            0x0b => "v",
            0x0c => "f",
            0x0d => "r",
            0x1b => "e",
            0x22 => "\"",
            0x5c => "\\",
            0x85 => "N",
            0xa0 => "_",
            0x2028 => "L",
            0x2029 => "P",
            _ => "",
        };
        let escape = match code {
            _ if !short.is_empty() => short.to_owned(),
            0..=0xff => format!("x{code:02X}"),
            0x100..=0xffff => format!("u{code:04X}"),
            _ => format!("U{code:08X}"),
        };
        self.put('\\');
        escape.chars().for_each(|c| self.put(c));
    }

    fn literal(&mut self, text: &str) {
        self.indicator("|", true, false);
        if text.starts_with(|c| c == ' ' || is_break(c)) {
            self.indicator("2", false, false);
        }
        let mut ending = text.chars().rev().map(is_break);
        match (ending.next(), ending.next()) {
            (Some(true), Some(false)) => {}
            (Some(true), _) => self.indicator("+", false, false),
            _ => self.indicator("-", false, false),
        }
        self.put_break();
        self.indention = true;
        self.whitespace = true;
        let mut breaks = true;
        for c in text.chars() {
            if is_break(c) {
                self.write_break(c);
                self.indention = true;
                breaks = true;
            } else {
                if breaks {
                    self.write_indent();
                }
                self.put(c);
                self.indention = false;
                breaks = false;
            }
        }
    }

    fn put(&mut self, c: char) {
        self.out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
        self.column += 1;
    }

    fn put_break(&mut self) {
        self.out.push(b'\n');
        self.column = 0;
    }

    fn write_break(&mut self, c: char) {
        self.put(c);
        self.column = 0;
    }

    /// Moves to the indentation, in a new line unless this one has only indentation.
    fn write_indent(&mut self) {
        let indent = self.indent.unwrap_or(0);
        let behind = self.column > indent || self.column == indent && !self.whitespace;
        if !self.indention || behind {
            self.put_break();
        }
        if let Some(missing) = indent.checked_sub(self.column) {
            self.out.extend(std::iter::repeat_n(b' ', missing));
            self.column = indent;
        }
        self.whitespace = true;
        self.indention = true;
    }

    /// `text` must be ASCII.
    fn indicator(&mut self, text: &str, needs_whitespace: bool, is_indention: bool) {
        if needs_whitespace && !self.whitespace {
            self.put(' ');
        }
        self.out.extend_from_slice(text.as_bytes());
        self.column += text.len();
        self.whitespace = false;
        self.indention = self.indention && is_indention;
    }
}
