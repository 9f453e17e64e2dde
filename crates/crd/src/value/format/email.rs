//! E-mail addresses as Go's `net/mail.ParseAddress` reads them: an address of RFC 5322, which can
//! have a name and comments, or a group of one address.

use pintle_value::Str;

use super::BASE64;

/// Whether the text is a single address.
pub(super) fn is_email(text: &str) -> bool {
    let mut reader = Reader { rest: text };
    let count = reader.address(true);
    reader.skip_comments().is_some() && reader.rest.is_empty() && count == Some(1)
}

struct Reader<'a> {
    rest: &'a str,
}

impl<'a> Reader<'a> {
    /// Reads an address or, if allowed, a group; returns the number of its addresses.
    fn address(&mut self, or_group: bool) -> Option<usize> {
        self.skip_space();
        if self.address_spec().is_some() {
            self.skip_space();
            if self.take('(') {
                let name = self.comment()?;
                let is_wrong =
                    name.split([' ', '\t']).any(|word| matches!(Word::of(word), Word::Unknown));
                return (!is_wrong).then_some(1);
            }
            return Some(1);
        }
        if !self.rest.starts_with('<') {
            self.phrase()?;
        }
        self.skip_space();
        if or_group && self.take(':') {
            return self.group();
        }
        (self.take('<') && self.address_spec().is_some() && self.take('>')).then_some(1)
    }

    /// Reads the addresses of a group; returns their number.
    fn group(&mut self) -> Option<usize> {
        let mut count = 0;
        self.skip_space();
        while !self.take(';') {
            if count > 0 && !self.take(',') {
                return None;
            }
            count += self.address(false)?;
            self.skip_comments()?;
        }
        self.skip_comments()?;
        Some(count)
    }

    /// Reads an address without a name. If there is none, nothing is read.
    fn address_spec(&mut self) -> Option<()> {
        let before = self.rest;
        let found = self.try_address_spec();
        if found.is_none() {
            self.rest = before;
        }
        found
    }

    fn try_address_spec(&mut self) -> Option<()> {
        self.skip_space();
        match self.rest.starts_with('"') {
            true if self.quoted()? == 0 => return None,
            true => {}
            false => self.dotted_atom()?,
        }
        if !self.take('@') {
            return None;
        }
        self.skip_space();
        if self.take('[') { self.domain_literal() } else { self.dotted_atom() }
    }

    /// Reads the words of a name. An error after the first word ends the name. As in Go, encoded
    /// words only count when another word or the end follows, and empty ones not at all.
    fn phrase(&mut self) -> Option<()> {
        let (mut has_words, mut has_encoded) = (false, false);
        loop {
            if has_words {
                self.skip_comments()?;
            }
            self.skip_space();
            let word = match self.rest.chars().next() {
                None => return Some(()),
                Some('"') => self.quoted().map(|_| Word::Plain),
                Some(_) => self.atom().map(Word::of),
            };
            match word {
                Some(Word::Plain) => (has_words, has_encoded) = (true, false),
                Some(Word::Encoded { is_empty }) => has_encoded |= !is_empty,
                Some(Word::Unknown) | None => return (has_words || has_encoded).then_some(()),
            }
        }
    }

    /// Reads text in quotes; returns the number of its characters.
    fn quoted(&mut self) -> Option<usize> {
        let (mut count, mut is_escaped) = (0, false);
        for (at, c) in self.rest.char_indices().skip(1) {
            match c {
                _ if is_escaped && !is_visible(c) && !is_space(c) => return None,
                _ if is_escaped => is_escaped = false,
                '"' => {
                    self.rest = &self.rest[at + 1..];
                    return Some(count);
                }
                '\\' => {
                    is_escaped = true;
                    continue;
                }
                c if !is_visible(c) && !is_space(c) => return None,
                _ => {}
            }
            count += 1;
        }
        None
    }

    /// Reads an atom that can contain dots anywhere.
    fn atom(&mut self) -> Option<&'a str> {
        let is_end = |c: char| "()<>[]:;@\\,\"".contains(c) || !is_visible(c);
        let end = self.rest.find(is_end).unwrap_or(self.rest.len());
        let (atom, rest) = self.rest.split_at(end);
        if atom.is_empty() {
            return None;
        }
        self.rest = rest;
        Some(atom)
    }

    /// Reads an atom with dots between its parts.
    fn dotted_atom(&mut self) -> Option<()> {
        self.atom()?.split('.').all(|part| !part.is_empty()).then_some(())
    }

    /// Reads the rest of a domain in brackets, which must be an IP address.
    fn domain_literal(&mut self) -> Option<()> {
        let (text, rest) = self.rest.split_once(']')?;
        self.rest = rest;
        text.parse::<std::net::IpAddr>().is_ok().then_some(())
    }

    fn take(&mut self, c: char) -> bool {
        let rest = self.rest.strip_prefix(c);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    fn skip_space(&mut self) {
        self.rest = self.rest.trim_start_matches(is_space);
    }

    /// Skips space and comments.
    fn skip_comments(&mut self) -> Option<()> {
        self.skip_space();
        while self.take('(') {
            self.comment()?;
            self.skip_space();
        }
        Some(())
    }

    /// Reads the rest of a comment, which can contain others; returns its text.
    fn comment(&mut self) -> Option<Str> {
        let mut depth = 1;
        let mut text = Str::default();
        let mut letters = self.rest.char_indices().peekable();
        while let Some((at, mut c)) = letters.next() {
            match c {
                '\\' if letters.peek().is_some() => c = letters.next()?.1,
                '(' => depth += 1,
                ')' => depth -= 1,
                _ => {}
            }
            if depth == 0 {
                self.rest = &self.rest[at + 1..];
                return Some(text);
            }
            text.push(c);
        }
        None
    }
}

const fn is_space(c: char) -> bool {
    matches!(c, ' ' | '\t')
}

const fn is_visible(c: char) -> bool {
    matches!(c, '!'..='~') || !c.is_ascii()
}

/// A word of a name.
enum Word {
    Plain,
    /// An encoded word (RFC 2047).
    Encoded {
        is_empty: bool,
    },
    /// An encoded word in a character set that Go does not know.
    Unknown,
}

impl Word {
    /// The kind of a word. A word that is not encoded correctly is a plain one.
    fn of(word: &str) -> Self {
        const KNOWN: [&str; 3] = ["utf-8", "iso-8859-1", "us-ascii"];
        let inside = word.strip_prefix("=?").and_then(|word| word.strip_suffix("?="));
        let parts: Vec<&str> = inside.unwrap_or_default().split('?').collect();
        let [charset, encoding, text] = parts[..] else { return Self::Plain };
        let is_right = match encoding {
            "B" | "b" => text.is_empty() || BASE64.is_match(text),
            "Q" | "q" => text.split('=').skip(1).all(is_after_escape) && text.bytes().all(is_plain),
            _ => false,
        };
        match KNOWN.iter().any(|known| known.eq_ignore_ascii_case(charset)) {
            _ if charset.is_empty() || !is_right => Self::Plain,
            true => Self::Encoded { is_empty: text.is_empty() },
            false => Self::Unknown,
        }
    }
}

fn is_after_escape(text: &str) -> bool {
    text.as_bytes().get(..2).is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit))
}

const fn is_plain(byte: u8) -> bool {
    matches!(byte, b' '..=b'~' | b'\n' | b'\r' | b'\t')
}
