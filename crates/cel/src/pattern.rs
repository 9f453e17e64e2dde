//! Regular expressions with Go's syntax (RE2) in linear time.

use regex::Regex;
use regex_automata::nfa::thompson;
use regex_automata::util::syntax;

use crate::error::EvalError;

/// The maximum length of a pattern.
const LENGTH_MAX: usize = 64 * 1024;

/// The memory limits of a compiled pattern, each with the factor by which matching may be slower
/// than a scan. Most patterns fit the first limit; the last is the maximum.
const SIZES: &[(usize, u64)] = &[(16 * 1024, 1), (128 * 1024, 8), (2 * 1024 * 1024, 64)];

/// The maximum nesting of groups and repetitions.
const NESTING_MAX: u32 = 250;

/// A compiled pattern.
#[derive(Debug)]
pub struct Pattern {
    regex: Regex,
    slowness: u64,
}

impl Pattern {
    /// The memory limit for all constant patterns of an expression.
    pub(crate) const ROOM: usize = 32 * 1024 * 1024;

    /// The memory of a pattern's states, or the error of the pattern. This takes a small part of
    /// the time of compiling it, and accepts nothing larger than half of the compilation limit.
    pub fn check(pattern: &str) -> Result<usize, EvalError> {
        if pattern.len() > LENGTH_MAX {
            return Err(too_large());
        }
        let translated = translate(pattern).map_err(EvalError::new)?;
        let limit = thompson::Config::new().nfa_size_limit(Some(SIZES[2].0 / 2));
        let built = thompson::Compiler::new()
            .configure(limit)
            .syntax(syntax::Config::new().nest_limit(NESTING_MAX))
            .build(&translated);
        built.map(|states| states.memory_usage()).map_err(|error| match error.size_limit() {
            Some(_) => too_large(),
            None => EvalError::new(wrong("invalid syntax", pattern)),
        })
    }

    /// Compiles a pattern that passes [`Pattern::check`].
    pub fn compile(pattern: &str) -> Result<Self, EvalError> {
        Self::new(pattern, |_| Ok(()))
    }

    /// Whether a text contains a match.
    pub fn is_match(&self, text: &str) -> bool {
        self.regex.is_match(text)
    }

    /// Compiles a pattern; errors have Go's messages where possible. `room` reserves memory before
    /// it is used, and may fail.
    pub(crate) fn new(
        pattern: &str,
        mut room: impl FnMut(usize) -> Result<(), EvalError>,
    ) -> Result<Self, EvalError> {
        if pattern.len() > LENGTH_MAX {
            return Err(too_large());
        }
        room(pattern.len())?;
        let translated = translate(pattern).map_err(EvalError::new)?;
        for (size, slowness) in SIZES {
            room(*size)?;
            let built = regex::RegexBuilder::new(&translated)
                .size_limit(*size)
                .dfa_size_limit(SIZES[2].0)
                .nest_limit(NESTING_MAX)
                .build();
            match built {
                Ok(regex) => return Ok(Self { regex, slowness: *slowness }),
                Err(regex::Error::CompiledTooBig(_)) => {}
                Err(_) => return Err(EvalError::new(wrong("invalid syntax", pattern))),
            }
        }
        Err(too_large())
    }

    /// A memory limit that the constant patterns of an expression share.
    pub(crate) fn room(left: &mut usize) -> impl FnMut(usize) -> Result<(), EvalError> {
        move |size| {
            *left = left.checked_sub(size).ok_or_else(too_large)?;
            Ok(())
        }
    }

    pub(crate) fn regex(&self) -> &Regex {
        &self.regex
    }

    /// The work of matching a text.
    pub(crate) fn work_on(&self, text: &str) -> u64 {
        (text.len() as u64).saturating_mul(self.slowness)
    }
}

fn too_large() -> EvalError {
    EvalError::new("error parsing regexp: expression too large")
}

/// Translates a pattern for the regex engine: Go's classes are ASCII, and `\Q…\E` is quoted.
fn translate(pattern: &str) -> Result<String, String> {
    let out = String::with_capacity(pattern.len() + 8);
    let mut translator = Translator {
        pattern,
        rest: pattern,
        out,
        class: None,
        groups: 0,
        repeatable: false,
        repetition: None,
    };
    while !translator.rest.is_empty() {
        translator.step()?;
    }
    if let Some(class) = translator.class {
        return Err(wrong("missing closing ]", class));
    }
    if translator.groups > 0 {
        return Err(wrong("missing closing )", pattern));
    }
    Ok(translator.out)
}

/// An error with Go's message, and the part of the pattern that it refers to.
fn wrong(what: &str, part: &str) -> String {
    format!("error parsing regexp: {what}: `{part}`")
}

struct Translator<'a> {
    pattern: &'a str,
    rest: &'a str,
    out: String,
    /// The pattern from the beginning of the open class.
    class: Option<&'a str>,
    /// The number of open groups.
    groups: u32,
    /// Whether the previous element can be repeated.
    repeatable: bool,
    /// The last repetition, if it directly precedes.
    repetition: Option<&'a str>,
}

impl<'a> Translator<'a> {
    fn step(&mut self) -> Result<(), String> {
        if self.class.is_some() {
            return self.in_class();
        }
        if let Some(len) = repetition(self.rest) {
            let operator = &self.rest[..len];
            if !self.repeatable {
                return Err(wrong("missing argument to repetition operator", operator));
            }
            check_repetition(operator, self.repetition)?;
            self.repetition = Some(operator);
            self.copy(len);
            return Ok(());
        }
        self.repetition = None;
        let c = self.rest.chars().next().unwrap_or_default();
        self.repeatable = !matches!(c, '(' | '|');
        match c {
            '\\' => return self.escape(),
            '[' => self.open_class(),
            '(' => return self.open_group(),
            // Braces that are not a repetition are literal.
            '{' => self.replace(1, r"\{"),
            '}' => self.replace(1, r"\}"),
            ')' => {
                let more = self.groups.checked_sub(1);
                self.groups = more.ok_or_else(|| wrong("unexpected )", self.pattern))?;
                self.copy(1);
            }
            c => self.copy(c.len_utf8()),
        }
        Ok(())
    }

    fn in_class(&mut self) -> Result<(), String> {
        if self.rest.starts_with(']') {
            self.class = None;
            self.copy(1);
            return Ok(());
        }
        if self.rest.starts_with("[:")
            && let Some(end) = self.rest.find(":]")
        {
            self.copy(end + 2);
            return Ok(());
        }
        let escaped = self.rest.strip_prefix('\\').and_then(|rest| rest.chars().next());
        if matches!(escaped, Some('d' | 'w' | 's' | 'D' | 'W' | 'S' | 'p' | 'P')) {
            return self.escape();
        }
        let item = self.rest;
        let (low, len) = character(item)?;
        let mut high = low;
        let mut end = len;
        let behind = &item[len..];
        if behind.len() > 1 && behind.starts_with('-') && !behind.starts_with("-]") {
            let (last, len) = character(&behind[1..])?;
            end += 1 + len;
            high = last;
            if high < low {
                return Err(wrong("invalid character class range", &item[..end]));
            }
        }
        self.replace(end, &format!("\\x{{{low:x}}}-\\x{{{high:x}}}"));
        Ok(())
    }

    /// Reads the beginning of a group, which may have a name or flags; Go has no other kinds.
    fn open_group(&mut self) -> Result<(), String> {
        self.groups += 1;
        let Some(kind) = self.rest.strip_prefix("(?") else {
            self.copy(1);
            return Ok(());
        };
        let named = kind.strip_prefix("P<").or_else(|| kind.strip_prefix('<'));
        if let Some(name) = named.filter(|name| !name.starts_with(['=', '!'])) {
            let end = name.find('>').unwrap_or(name.len());
            let len = self.rest.len() - name.len() + end;
            let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
            if end == name.len() || end == 0 || !name[..end].chars().all(is_word) {
                let shown = &self.rest[..(len + 1).min(self.rest.len())];
                return Err(wrong("invalid named capture", shown));
            }
            // Group names are not used, and Go allows two groups with the same name.
            self.replace(len + 1, "(");
            return Ok(());
        }
        let flags = kind.find(|c: char| !"imsU-".contains(c)).unwrap_or(kind.len());
        match kind.as_bytes().get(flags) {
            Some(b':') => self.copy(2 + flags + 1),
            Some(b')') if flags > 0 => {
                self.groups -= 1;
                self.repeatable = false;
                self.copy(2 + flags + 1);
            }
            None => return Err(wrong("missing closing )", self.pattern)),
            Some(_) => {
                let last = kind[flags..].chars().next().map_or(0, char::len_utf8);
                let shown = &self.rest[..2 + flags + last];
                return Err(wrong("invalid or unsupported Perl syntax", shown));
            }
        }
        Ok(())
    }

    fn copy(&mut self, len: usize) {
        let (copied, rest) = self.rest.split_at(len);
        self.out.push_str(copied);
        self.rest = rest;
    }

    fn replace(&mut self, len: usize, with: &str) {
        self.out.push_str(with);
        self.rest = &self.rest[len..];
    }

    /// Reads the beginning of a class; a bracket in first position is literal.
    fn open_class(&mut self) {
        self.class = Some(self.rest);
        self.copy(if self.rest.starts_with("[^") { 2 } else { 1 });
        if self.rest.starts_with(']') {
            self.replace(1, r"\]");
        }
    }

    /// Copies an escape that the engine supports, including its braces.
    fn known(&mut self, len: usize) -> Result<(), String> {
        let has_braces = matches!(self.rest.as_bytes()[1], b'p' | b'P');
        let behind = &self.rest[len..];
        let braces = behind.starts_with('{').then(|| behind.find('}')).flatten();
        self.copy(len + braces.filter(|_| has_braces).map_or(0, |end| end + 1));
        Ok(())
    }

    /// Translates an escape.
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
            Some('d') if self.class.is_some() => "0-9",
            Some('w') if self.class.is_some() => "0-9A-Za-z_",
            Some('s') if self.class.is_some() => r"\t\n\f\r ",
            Some('d') => "[0-9]",
            Some('w') => "[0-9A-Za-z_]",
            Some('s') => r"[\t\n\f\r ]",
            Some('D') => "[^0-9]",
            Some('W') => "[^0-9A-Za-z_]",
            Some('S') => r"[^\t\n\f\r ]",
            Some('b') if self.class.is_none() => r"(?-u:\b)",
            Some('B') if self.class.is_none() => r"(?-u:\B)",
            None => return Err(wrong("trailing backslash at end of expression", "")),
            Some('0'..='7') => {
                let (code, len) = octal(self.rest)?;
                self.replace(len, &format!("\\x{{{code:x}}}"));
                return Ok(());
            }
            Some('A' | 'z') if self.class.is_none() => return self.known(len),
            Some('x') => {
                let (code, len) = hexadecimal(self.rest)?;
                self.replace(len, &format!("\\x{{{code:x}}}"));
                return Ok(());
            }
            Some('a' | 'f' | 'n' | 'r' | 't' | 'v' | 'p' | 'P') => return self.known(len),
            Some(c) if c.is_ascii_punctuation() => return self.known(len),
            Some(_) => return Err(wrong("invalid escape sequence", &self.rest[..len])),
        };
        self.replace(len, class);
        Ok(())
    }
}

/// Reads one character of a class, escaped or not, and the length of its text.
fn character(text: &str) -> Result<(u32, usize), String> {
    let first = text.chars().next().unwrap_or_default();
    if first != '\\' {
        return Ok((first as u32, first.len_utf8()));
    }
    let Some(c) = text[1..].chars().next() else {
        return Err(wrong("trailing backslash at end of expression", ""));
    };
    let len = 1 + c.len_utf8();
    let code = match c {
        '0'..='7' => return octal(text),
        'x' => return hexadecimal(text),
        'a' => 7,
        'f' => 12,
        'n' => 10,
        'r' => 13,
        't' => 9,
        'v' => 11,
        c if c.is_ascii_punctuation() => c as u32,
        _ => return Err(wrong("invalid escape sequence", &text[..len])),
    };
    Ok((code, len))
}

/// Reads two hexadecimal digits, or any number of them in braces, after `\x`. An error shows the text
/// up to the character that is wrong, as in Go.
fn hexadecimal(text: &str) -> Result<(u32, usize), String> {
    let wrong_at = |end: usize| Err(wrong("invalid escape sequence", &text[..end]));
    let mut behind = text[2..].char_indices().map(|(at, c)| (c, 2 + at + c.len_utf8()));
    let Some((first, end)) = behind.next() else { return wrong_at(text.len()) };
    if first != '{' {
        let Some((second, end)) = behind.next() else { return wrong_at(end) };
        return match first.to_digit(16).zip(second.to_digit(16)) {
            Some((high, low)) => Ok((high * 16 + low, end)),
            None => wrong_at(end),
        };
    }
    let mut code = None;
    for (c, end) in behind {
        if c == '}' {
            let code = code.filter(|code| char::from_u32(*code).is_some());
            return code.map_or_else(|| wrong_at(end), |code| Ok((code, end)));
        }
        let Some(digit) = c.to_digit(16) else { return wrong_at(end) };
        let longer = code.unwrap_or(0) * 16 + digit;
        if longer > u32::from(char::MAX) {
            return wrong_at(end);
        }
        code = Some(longer);
    }
    wrong_at(text.len())
}

/// Reads up to three octal digits after a backslash. A single one, except 0, would be a
/// backreference, which Go lacks.
fn octal(text: &str) -> Result<(u32, usize), String> {
    let digits = text[1..].bytes().take(3).take_while(|b| matches!(b, b'0'..=b'7')).count();
    let len = 1 + digits;
    if digits == 1 && !text.starts_with("\\0") {
        return Err(wrong("invalid escape sequence", &text[..len]));
    }
    Ok((u32::from_str_radix(&text[1..len], 8).unwrap_or(0), len))
}

/// The maximum number of repetitions.
const REPEAT_MAX: u32 = 1000;

/// The length of `*`, `+?`, `{2,3}` etc.
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

/// Go rejects the repetition of a repetition (`before`), and more than a thousand repetitions.
fn check_repetition(operator: &str, before: Option<&str>) -> Result<(), String> {
    if let Some(before) = before {
        let operators = format!("{before}{operator}");
        return Err(wrong("invalid nested repetition operator", &operators));
    }
    let counts = operator.trim_matches(['{', '}', '?']).split(',');
    let too_many = |n: &str| !n.is_empty() && n.parse().is_ok_and(|n: u32| n > REPEAT_MAX);
    let too_long = |n: &str| n.len() > 9;
    if operator.starts_with('{') && counts.into_iter().any(|n| too_many(n) || too_long(n)) {
        return Err(wrong("invalid repeat count", operator));
    }
    Ok(())
}

#[cfg(test)]
mod tests;
