//! Rust text without comments, literals and tests, so that searches for forbidden words match only
//! code.

/// The text with comments and the insides of literals blanked; lines stay where they are.
pub(crate) fn without_comments_and_literals(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let len = match c {
            '/' if rest.starts_with("//") => rest.find('\n').unwrap_or(rest.len()),
            '/' if rest.starts_with("/*") => block_comment(rest),
            '"' => quoted(rest),
            'r' | 'b' if !out.ends_with(is_word) => raw_string(rest).unwrap_or(0),
            '\'' => char_literal(rest).unwrap_or(0),
            _ => 0,
        };
        if len == 0 {
            out.push(c);
            rest = &rest[c.len_utf8()..];
        } else {
            out.extend(rest[..len].chars().map(|c| if c == '\n' { c } else { ' ' }));
            rest = &rest[len..];
        }
    }
    out
}

/// The code (blanked as above) without modules and items under `#[cfg(test)]`.
pub(crate) fn without_tests(code: &str) -> String {
    let mut out = String::with_capacity(code.len());
    let mut lines = code.lines();
    while let Some(line) = lines.next() {
        out.push_str(line);
        out.push('\n');
        if line.trim() != "#[cfg(test)]" {
            continue;
        }
        // rustfmt closes an item where it began: at the indentation of its attributes.
        let indent = &line[..line.len() - line.trim_start().len()];
        let end = [format!("{indent}}}"), format!("{indent}}};")];
        let mut inside = false;
        for line in lines.by_ref() {
            out.push('\n');
            inside |= line.ends_with('{');
            if (!inside && line.trim_end().ends_with(';')) || end.iter().any(|e| e == line) {
                break;
            }
        }
    }
    out
}

/// The lines that contain `word`, from 1. If the word begins or ends with a letter, a digit or an
/// underscore, its neighbour there must be none of these.
pub(crate) fn lines_with(code: &str, word: &str) -> Vec<usize> {
    let stands = |line: &str| {
        line.match_indices(word).any(|(at, _)| {
            let before = line[..at].chars().next_back();
            let after = line[at + word.len()..].chars().next();
            let joined = word.starts_with(is_word) && before.is_some_and(is_word)
                || word.ends_with(is_word) && after.is_some_and(is_word);
            !joined
        })
    };
    code.lines().enumerate().filter(|(_, line)| stands(line)).map(|(i, _)| i + 1).collect()
}

/// The functions by the lines in which they begin, and how many lines they have.
pub(crate) fn functions(code: &str) -> Vec<(usize, usize)> {
    let lines: Vec<&str> = code.lines().collect();
    let begins = |line: &str| {
        let words = line.split_whitespace();
        let mut words = words.skip_while(|w| {
            w.starts_with("pub") || ["const", "async", "unsafe", "extern", "crate)"].contains(w)
        });
        words.next() == Some("fn")
    };
    let mut functions = Vec::new();
    for (at, line) in lines.iter().enumerate().filter(|(_, line)| begins(line)) {
        // rustfmt closes a function where it began, and a declaration of several lines.
        let indent = &line[..line.len() - line.trim_start().len()];
        let closes = |l: &str| l.starts_with('}') || (l.starts_with(')') && l.ends_with(';'));
        let ends = |l: &&str| l.strip_prefix(indent).is_some_and(closes);
        let declared = line.ends_with(';') || line.ends_with('}');
        let len = lines[at..].iter().position(ends).map_or(1, |n| n + 1);
        functions.push((at + 1, if declared { 1 } else { len }));
    }
    functions
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

fn block_comment(text: &str) -> usize {
    let mut depth = 0;
    for (at, _) in text.char_indices() {
        if text[at..].starts_with("/*") {
            depth += 1;
        } else if text[at..].starts_with("*/") {
            depth -= 1;
            if depth == 0 {
                return at + 2;
            }
        }
    }
    text.len()
}

/// The length of a string in quotes.
fn quoted(text: &str) -> usize {
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return at + 1,
            _ => {}
        }
    }
    text.len()
}

/// The length of `r#"…"#`, `br"…"` and the like.
fn raw_string(text: &str) -> Option<usize> {
    let start = text.strip_prefix('b').unwrap_or(text).strip_prefix('r')?;
    let hashes = start.len() - start.trim_start_matches('#').len();
    let inside = start[hashes..].strip_prefix('"')?;
    let close = format!("\"{}", "#".repeat(hashes));
    let end = inside.find(&close).map_or(inside.len(), |at| at + close.len());
    Some(text.len() - inside.len() + end)
}

/// The length of `'x'` or `'\n'`; `None` for a lifetime.
fn char_literal(text: &str) -> Option<usize> {
    let inside = &text[1..];
    if inside.starts_with('\\') {
        // The search begins behind the escaped character, which can be a quote.
        let at = inside.char_indices().nth(2)?.0;
        return Some(1 + at + inside[at..].find('\'')? + 1);
    }
    let (at, close) = inside.char_indices().nth(1)?;
    (close == '\'').then_some(1 + at + 1)
}
