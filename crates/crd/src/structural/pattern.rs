//! Patterns: Go's regular expressions, compiled when they are first needed.

use std::fmt;
use std::sync::OnceLock;

use regex::Regex;

/// A regular expression in Go's syntax.
pub(crate) struct Pattern {
    text: Box<str>,
    compiled: OnceLock<Result<Box<Regex>, String>>,
}

impl fmt::Debug for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.text.fmt(f)
    }
}

impl Pattern {
    /// Does not look at the text yet.
    pub(crate) fn new(text: &str) -> Self {
        Self { text: text.into(), compiled: OnceLock::new() }
    }

    /// The expression as it was written.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// Whether a text holds a match, or why the expression is none.
    pub(crate) fn matches(&self, text: &str) -> Result<bool, &str> {
        let compiled = self.compiled.get_or_init(|| compile(&self.text).map(Box::new));
        compiled.as_ref().map(|regex| regex.is_match(text)).map_err(String::as_str)
    }

    /// Why the expression is none.
    pub(crate) fn check(&self) -> Result<(), &str> {
        self.matches("").map(|_| ())
    }
}

/// The most memory that a compiled expression may take.
const COMPILED_BYTES_MAX: usize = 1 << 20;

fn compile(text: &str) -> Result<Regex, String> {
    let builder = &mut regex::RegexBuilder::new(&translate(text));
    let compiled = builder.size_limit(COMPILED_BYTES_MAX).dfa_size_limit(1 << 18).build();
    compiled.map_err(|error| match error {
        regex::Error::Syntax(_) => format!("error parsing regexp: `{text}`"),
        other => format!("error parsing regexp: {other}: `{text}`"),
    })
}

/// Writes Go's syntax in this library's: here `\d`, `\w` and `\s` mean all of Unicode, a class in a
/// class means their union, and a brace that begins no repetition is an error.
fn translate(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 8);
    let mut rest = text.chars();
    let mut in_class = false;
    while let Some(c) = rest.next() {
        match c {
            '\\' => escape(rest.next(), in_class, &mut out),
            '[' if in_class => match rest.as_str().strip_prefix(':').and_then(|r| r.find(":]")) {
                Some(end) => {
                    let (class, after) = rest.as_str().split_at(end + 3);
                    out.push('[');
                    out.push_str(class);
                    rest = after.chars();
                }
                None => out.push_str("\\["),
            },
            '[' => {
                in_class = true;
                out.push('[');
                // A bracket that stands first is a member.
                for first in ['^', ']'] {
                    if rest.as_str().starts_with(first) {
                        rest.next();
                        out.push_str(if first == '^' { "^" } else { "\\]" });
                    }
                }
            }
            ']' if in_class => {
                in_class = false;
                out.push(']');
            }
            '&' | '~' if in_class => {
                out.push('\\');
                out.push(c);
            }
            '{' if !in_class && !begins_repetition(rest.as_str()) => out.push_str("\\{"),
            _ => out.push(c),
        }
    }
    out
}

fn escape(escaped: Option<char>, in_class: bool, out: &mut String) {
    let (ascii, negated) = match escaped {
        Some('d') => ("0-9", false),
        Some('w') => ("0-9A-Za-z_", false),
        Some('s') => ("\\t\\n\\x0C\\r ", false),
        Some('D') => ("0-9", true),
        Some('W') => ("0-9A-Za-z_", true),
        Some('S') => ("\\t\\n\\x0C\\r ", true),
        Some('b') if !in_class => return out.push_str("(?-u:\\b)"),
        Some(other) => {
            out.push('\\');
            return out.push(other);
        }
        None => return out.push('\\'),
    };
    match (in_class, negated) {
        (true, false) => out.push_str(ascii),
        (_, true) => out.push_str(&format!("[^{ascii}]")),
        (false, false) => out.push_str(&format!("[{ascii}]")),
    }
}

/// Whether what follows a brace makes it a repetition: `3}`, `3,}`, `3,5}`.
fn begins_repetition(rest: &str) -> bool {
    let Some((inside, _)) = rest.split_once('}') else { return false };
    let (least, most) = inside.split_once(',').unwrap_or((inside, ""));
    let digits = |text: &str| text.bytes().all(|b| b.is_ascii_digit());
    !least.is_empty() && digits(least) && digits(most)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_mean_what_they_mean_to_go() {
        for (pattern, text, expected) in [
            ("^[a-z]+$", "abc", true),
            ("^[a-z]+$", "abc\n", false),
            (r"^\d+$", "12", true),
            (r"^\d+$", "١٢", false),
            (r"^[\w-]+$", "a_b-1", true),
            (r"^[^\d]$", "x", true),
            (r"^[\D]$", "x", true),
            (r"^[\D]$", "1", false),
            (r"^\W$", "é", true),
            ("^[[:alpha:]]+$", "ab", true),
            ("^[[]$", "[", true),
            ("^[]a]+$", "]a", true),
            ("^[^]]$", "x", true),
            ("^[a&&b]+$", "&", true),
            ("^a{2,3}$", "aaa", true),
            ("^a{x}$", "a{x}", true),
            (r"^\$\{[a-z]+\}$", "${ab}", true),
            (r"(?i)^A$", "a", true),
            ("b", "abc", true),
        ] {
            assert_eq!(Pattern::new(pattern).matches(text), Ok(expected), "{pattern} {text:?}");
        }
        assert!(Pattern::new("(").check().is_err());
        assert!(Pattern::new("a{1000}{1000}").check().is_err(), "too large");
    }
}
