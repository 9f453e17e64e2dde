//! Regular expressions as Go has them: the syntax of RE2, in linear time.

use regex::Regex;

/// The longest pattern that is compiled.
const LENGTH_MAX: usize = 64 * 1024;

/// The most memory that a compiled pattern takes.
const SIZE_MAX: usize = 2 * 1024 * 1024;

/// A compiled pattern.
#[derive(Clone, Debug)]
pub(crate) struct Pattern(Regex);

impl Pattern {
    /// Compiles; the error is in Go's words where it can be.
    pub(crate) fn new(pattern: &str) -> Result<Self, String> {
        let wrong = |what: &str| format!("error parsing regexp: {what}");
        if pattern.len() > LENGTH_MAX {
            return Err(wrong("expression too large"));
        }
        let translated = translate(pattern)?;
        let built = regex::RegexBuilder::new(&translated)
            .size_limit(SIZE_MAX)
            .dfa_size_limit(SIZE_MAX)
            .nest_limit(250)
            .build();
        built.map(Self).map_err(|error| match error {
            regex::Error::CompiledTooBig(_) => wrong("expression too large"),
            _ => wrong(&format!("invalid syntax: `{pattern}`")),
        })
    }

    pub(crate) fn regex(&self) -> &Regex {
        &self.0
    }
}

/// The same expression for the engine that runs it: where Go's classes are ASCII, and literal parts
/// are quoted.
fn translate(pattern: &str) -> Result<String, String> {
    let out = String::with_capacity(pattern.len() + 8);
    let mut translator = Translator { rest: pattern, out, in_class: false, repetition: None };
    while !translator.rest.is_empty() {
        translator.step()?;
    }
    Ok(translator.out)
}

struct Translator<'a> {
    rest: &'a str,
    out: String,
    in_class: bool,
    /// The repetition that was read last, if nothing was read since.
    repetition: Option<&'a str>,
}

impl<'a> Translator<'a> {
    fn step(&mut self) -> Result<(), String> {
        if !self.in_class
            && let Some(len) = repetition(self.rest)
        {
            check_repetition(&self.rest[..len], self.repetition)?;
            self.repetition = Some(&self.rest[..len]);
            self.keep(len);
            return Ok(());
        }
        self.repetition = None;
        let c = self.rest.chars().next().unwrap_or_default();
        match c {
            '\\' => return self.escape(),
            '[' if !self.in_class => self.open_class(),
            '[' if !self.rest.starts_with("[:") => self.replace(1, r"\["),
            '[' => {
                let len = self.rest.find(":]").map_or(1, |end| end + 2);
                self.keep(len);
            }
            ']' if self.in_class => {
                self.in_class = false;
                self.keep(1);
            }
            // The engine takes these for operations between classes.
            '&' if self.in_class => self.replace(1, r"\&"),
            '~' if self.in_class => self.replace(1, r"\~"),
            '-' if self.in_class && self.rest.starts_with("--") => self.replace(1, r"\-"),
            c => self.keep(c.len_utf8()),
        }
        Ok(())
    }

    fn keep(&mut self, len: usize) {
        let (kept, rest) = self.rest.split_at(len);
        self.out.push_str(kept);
        self.rest = rest;
    }

    fn replace(&mut self, len: usize, with: &str) {
        self.out.push_str(with);
        self.rest = &self.rest[len..];
    }

    /// A class begins; a bracket that stands first in it is itself.
    fn open_class(&mut self) {
        self.in_class = true;
        self.keep(if self.rest.starts_with("[^") { 2 } else { 1 });
        if self.rest.starts_with(']') {
            self.replace(1, r"\]");
        }
    }

    /// What begins with a backslash.
    fn escape(&mut self) -> Result<(), String> {
        let escaped = self.rest[1..].chars().next();
        let len = 1 + escaped.map_or(0, char::len_utf8);
        let class = match escaped {
            Some('Q') => {
                let rest = self.rest;
                let inside = &rest[2..];
                let end = inside.find("\\E").unwrap_or(inside.len());
                self.replace((2 + end + 2).min(rest.len()), &regex::escape(&inside[..end]));
                return Ok(());
            }
            Some('E') => "",
            Some('d') if self.in_class => "0-9",
            Some('w') if self.in_class => "0-9A-Za-z_",
            Some('s') if self.in_class => r"\t\n\f\r ",
            Some('d') => "[0-9]",
            Some('w') => "[0-9A-Za-z_]",
            Some('s') => r"[\t\n\f\r ]",
            Some('D') => "[^0-9]",
            Some('W') => "[^0-9A-Za-z_]",
            Some('S') => r"[^\t\n\f\r ]",
            Some('b') if !self.in_class => r"(?-u:\b)",
            Some('B') if !self.in_class => r"(?-u:\B)",
            // What only the engine knows.
            Some('<' | '>' | 'u' | 'U' | 'R' | 'X' | 'h' | 'H' | 'K' | 'Z' | 'G' | 'C') | None => {
                let escape = &self.rest[..len];
                return Err(format!("error parsing regexp: invalid escape sequence: `{escape}`"));
            }
            Some(_) => {
                self.keep(len);
                return Ok(());
            }
        };
        self.replace(len, class);
        Ok(())
    }
}

/// The most repetitions that can be asked for.
const REPEAT_MAX: u32 = 1000;

/// The length of `*`, `+?`, `{2,3}` and the like.
fn repetition(text: &str) -> Option<usize> {
    let len = match text.as_bytes()[0] {
        b'*' | b'+' | b'?' => 1,
        b'{' => {
            let end = text.find('}')?;
            let (least, most) = text[1..end].split_once(',').unwrap_or((&text[1..end], "0"));
            let digits = |s: &str| s.bytes().all(|b| b.is_ascii_digit());
            if least.is_empty() || !digits(least) || !digits(most) {
                return None;
            }
            end + 1
        }
        _ => return None,
    };
    Some(len + usize::from(text[len..].starts_with('?')))
}

/// Go repeats no repetition (`before`), and nothing more than a thousand times.
fn check_repetition(operator: &str, before: Option<&str>) -> Result<(), String> {
    if let Some(before) = before {
        let message = "error parsing regexp: invalid nested repetition operator: ";
        return Err(format!("{message}`{before}{operator}`"));
    }
    let counts = operator.trim_matches(['{', '}', '?']).split(',');
    let too_many = |n: &str| !n.is_empty() && n.parse().is_ok_and(|n: u32| n > REPEAT_MAX);
    let too_long = |n: &str| n.len() > 9;
    if operator.starts_with('{') && counts.into_iter().any(|n| too_many(n) || too_long(n)) {
        return Err(format!("error parsing regexp: invalid repeat count: `{operator}`"));
    }
    Ok(())
}
