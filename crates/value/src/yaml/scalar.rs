//! Analyzes which styles a scalar allows, as go-yaml's emitter does before it writes one.

/// The style of a scalar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Style {
    Plain,
    SingleQuoted,
    DoubleQuoted,
    Literal,
}

/// The styles that a text allows.
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

    /// Chooses the style for a text. `is_unambiguous_text` says whether it would be read as text in
    /// plain style.
    pub(super) fn style(self, text: &str, is_unambiguous_text: bool, simple_key: bool) -> Style {
        let many_lines = text.contains('\n');
        let wanted = match (many_lines, is_unambiguous_text) {
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

/// Whether a text surely allows [`Style::Plain`]. The fast path for most texts; `false` where the
/// full analysis is needed.
pub(super) fn is_plain_ascii(text: &str) -> bool {
    let bytes = text.as_bytes();
    let ([first, ..], [.., last]) = (bytes, bytes) else { return false };
    first.is_ascii_alphanumeric()
        && !matches!(last, b' ' | b':')
        && bytes.iter().all(|byte| matches!(byte, b' '..=b'~'))
        && !bytes.windows(2).any(|pair| matches!(pair, b": " | b" #"))
}

/// Whether the text contains a YAML indicator in block style.
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

/// Whether the text is a number in base 60, as other YAML 1.1 readers may read it:
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

/// Whether go-yaml treats the character as a line break.
pub(super) const fn is_break(c: char) -> bool {
    matches!(c, '\r' | '\n' | '\u{85}' | '\u{2028}' | '\u{2029}')
}

/// Whether the character is written unescaped. As in go-yaml, tabs and characters beyond 16 bits
/// are not.
///
/// Unlike in go-yaml, the line and paragraph separators are not either: they are line breaks in
/// YAML 1.1 but not in 1.2, so only their escapes are safe.
pub(super) const fn is_printable(c: char) -> bool {
    match c {
        '\u{2028}' | '\u{2029}' | '\u{feff}' => false,
        _ => matches!(c, '\n' | ' '..='~' | '\u{a0}'..='\u{d7ff}' | '\u{e000}'..='\u{fffd}'),
    }
}
