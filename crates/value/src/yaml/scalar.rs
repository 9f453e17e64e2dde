//! How a text can be written: what go-yaml's emitter finds out about a scalar before it writes it.

/// A way to write a scalar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Style {
    Plain,
    SingleQuoted,
    DoubleQuoted,
    Literal,
}

/// Which styles a text allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Traits {
    plain: bool,
    single_quoted: bool,
    literal: bool,
}

impl Traits {
    pub(super) fn of(text: &str) -> Self {
        let first = text.chars().next().unwrap_or(' ');
        let last = text.chars().next_back().unwrap_or(' ');
        let at_edge = |c: char| c == ' ' || is_break(c);
        let after_break = |pair: fn(char, char) -> bool| {
            text.chars().zip(text.chars().skip(1)).any(|(a, b)| pair(a, b))
        };
        let break_space = after_break(|a, b| is_break(a) && b == ' ');
        let space_break = after_break(|a, b| a == ' ' && is_break(b));
        let special = !text.chars().all(is_printable);
        let plain = !at_edge(first)
            && !at_edge(last)
            && !special
            && !text.contains(is_break)
            && !has_indicators(text);
        Self {
            plain,
            single_quoted: !(break_space || space_break || special),
            literal: !text.is_empty() && last != ' ' && !space_break && !special,
        }
    }

    /// The style for a text that has to remain text; `means_text` says whether it does when plain.
    pub(super) fn style(self, text: &str, means_text: bool, simple_key: bool) -> Style {
        let many_lines = text.contains('\n');
        let wanted = match (many_lines, means_text) {
            (true, _) if simple_key => Style::DoubleQuoted,
            (true, _) => Style::Literal,
            (false, true) => Style::Plain,
            (false, false) => Style::DoubleQuoted,
        };
        match wanted {
            Style::Plain if self.plain => Style::Plain,
            Style::Plain if self.single_quoted => Style::SingleQuoted,
            Style::Literal if self.literal => Style::Literal,
            _ => Style::DoubleQuoted,
        }
    }
}

/// Whether something in the text would be taken for YAML's own signs in block style.
fn has_indicators(text: &str) -> bool {
    if text.starts_with("---") || text.starts_with("...") {
        return true;
    }
    let blank = |c: Option<char>| c.is_none_or(|c| matches!(c, ' ' | '\t'));
    let mut chars = text.chars().peekable();
    let mut before = None;
    while let Some(c) = chars.next() {
        let blank_follows = blank(chars.peek().copied());
        let indicator = match (before, c) {
            (None, '#' | ',' | '[' | ']' | '{' | '}' | '&' | '*' | '!' | '|' | '>') => true,
            (None, '\'' | '"' | '%' | '@' | '`') => true,
            (None, '?' | '-') | (_, ':') => blank_follows,
            (Some(' ' | '\t'), '#') => true,
            _ => false,
        };
        if indicator {
            return true;
        }
        before = Some(c);
    }
    false
}

/// Whether the text is a number in base 60, which other readers of YAML 1.1 may take it for:
/// `[-+]?[0-9][0-9_]*(:[0-5]?[0-9])+(\.[0-9_]*)?`.
pub(super) fn is_base60(text: &str) -> bool {
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    let (whole, fraction) = unsigned.split_once('.').unwrap_or((unsigned, ""));
    let digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit() || byte == b'_');
    let mut parts = whole.split(':');
    let first = parts.next().unwrap_or("");
    let mut rest = parts.peekable();
    let sixtieth =
        |part: &str| matches!(part.as_bytes(), [b'0'..=b'9'] | [b'0'..=b'5', b'0'..=b'9']);
    first.starts_with(|c: char| c.is_ascii_digit())
        && digits(first)
        && digits(fraction)
        && rest.peek().is_some()
        && rest.all(sixtieth)
}

/// Whether go-yaml takes the character for a line break.
pub(super) const fn is_break(c: char) -> bool {
    matches!(c, '\r' | '\n' | '\u{85}' | '\u{2028}' | '\u{2029}')
}

/// Whether the character is written as it is. Tabs and all beyond 16 bits are not, as in go-yaml.
///
/// The line and paragraph separators are not either, unlike in go-yaml: they are line breaks in YAML
/// 1.1 and none in 1.2, so they are only safe in escapes.
pub(super) const fn is_printable(c: char) -> bool {
    match c {
        '\u{2028}' | '\u{2029}' | '\u{feff}' => false,
        _ => matches!(c, '\n' | ' '..='~' | '\u{a0}'..='\u{d7ff}' | '\u{e000}'..='\u{fffd}'),
    }
}
