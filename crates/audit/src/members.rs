//! Writes the members of JSON objects.

use std::io::Write as _;
use std::net::IpAddr;

use pintle_meta::time;
use pintle_value::json;

/// A member's name in quotation marks, with the comma before it and the colon after it.
macro_rules! key {
    ($name:literal) => {
        concat!(",\"", $name, "\":")
    };
}
pub(crate) use key;

/// Writes the members of a JSON object. Each member begins with a comma, so that a name is copied
/// in one piece with the characters around it. The first comma becomes the opening brace.
pub(crate) struct Members<'a> {
    pub(crate) out: &'a mut Vec<u8>,
    start: usize,
}

impl<'a> Members<'a> {
    #[inline]
    pub(crate) fn begin(out: &'a mut Vec<u8>) -> Self {
        let start = out.len();
        Self { out, start }
    }

    /// Writes a member of one of upstream's types; `key` is a `key!`.
    #[inline]
    pub(crate) fn member(&mut self, key: &'static str, write: impl FnOnce(&mut Vec<u8>)) {
        self.out.extend_from_slice(key.as_bytes());
        write(self.out);
    }

    /// Writes an entry of a map.
    pub(crate) fn entry(&mut self, key: &str, write: impl FnOnce(&mut Vec<u8>)) {
        self.out.push(b',');
        json::write_string(key, self.out);
        self.out.push(b':');
        write(self.out);
    }

    #[inline]
    pub(crate) fn text(&mut self, key: &'static str, text: &str) {
        self.member(key, |out| json::write_string(text, out));
    }

    #[inline]
    pub(crate) fn time(&mut self, key: &'static str, unix_micros: i64) {
        self.member(key, |out| {
            out.push(b'"');
            time::write_micro(unix_micros, out);
            out.push(b'"');
        });
    }

    /// Writes a text, unless it is empty.
    #[inline]
    pub(crate) fn some_text(&mut self, key: &'static str, text: &str) {
        if !text.is_empty() {
            self.text(key, text);
        }
    }

    /// Writes a list of texts, unless it is empty.
    pub(crate) fn texts(&mut self, key: &'static str, all: &[String]) {
        if !all.is_empty() {
            self.member(key, |out| texts(all, out));
        }
    }

    #[inline]
    pub(crate) fn number(&mut self, key: &'static str, number: u32) {
        self.member(key, |out| digits(number, out));
    }

    #[inline]
    pub(crate) fn end(self) {
        match self.out.get_mut(self.start) {
            Some(comma) => *comma = b'{',
            None => self.out.push(b'{'),
        }
        self.out.push(b'}');
    }
}

fn digits(number: u32, out: &mut Vec<u8>) {
    out.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
}

pub(crate) fn address(ip: &IpAddr, out: &mut Vec<u8>) {
    out.push(b'"');
    match ip {
        IpAddr::V4(v4) => {
            let [first, others @ ..] = v4.octets();
            digits(first.into(), out);
            for octet in others {
                out.push(b'.');
                digits(octet.into(), out);
            }
        }
        IpAddr::V6(v6) => {
            let _ = write!(out, "{v6}"); // writing to a Vec cannot fail
        }
    }
    out.push(b'"');
}

pub(crate) fn texts(texts: &[String], out: &mut Vec<u8>) {
    list(texts, out, |text, out| json::write_string(text, out));
}

pub(crate) fn list<T>(items: &[T], out: &mut Vec<u8>, write: impl Fn(&T, &mut Vec<u8>)) {
    out.push(b'[');
    for (index, item) in items.iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        write(item, out);
    }
    out.push(b']');
}
