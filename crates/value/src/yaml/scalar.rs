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
        let at_edge = |c: Option<char>| c.is_none_or(|c| c == ' ' || is_break(c));
        let (mut breaks, mut break_space, mut space_break, mut special) =
            (false, false, false, false);
        let mut before = None;
        for c in text.chars() {
            let is_break = is_break(c);
            breaks |= is_break;
            special |= !is_printable(c);
            break_space |= c == ' ' && before.is_some_and(self::is_break);
            space_break |= is_break && before == Some(' ');
            before = Some(c);
        }
        let edges = at_edge(text.chars().next()) || at_edge(before);
        Self {
            plain: !(edges || special || breaks || has_indicators(text)),
            single_quoted: !(break_space || space_break || special),
            literal: !text.is_empty() && before != Some(' ') && !space_break && !special,
        }
    }

    #[cfg(test)]
    pub(super) const fn allows_plain(self) -> bool {
        self.plain
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

/// Whether a text allows [`Style::Plain`], as most texts that are written do; `false` where it takes a
/// closer look.
pub(super) fn is_plain_ascii(text: &str) -> bool {
    let bytes = text.as_bytes();
    let ([first, ..], [.., last]) = (bytes, bytes) else { return false };
    first.is_ascii_alphanumeric()
        && !matches!(last, b' ' | b':')
        && bytes.iter().all(|byte| matches!(byte, b' '..=b'~'))
        && !bytes.windows(2).any(|pair| matches!(pair, b": " | b" #"))
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
