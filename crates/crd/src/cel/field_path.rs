//! The `fieldPath` of rules (upstream: ValidFieldPath).

use crate::structural::Structural;

/// Normalizes a path of members (`.a.b`) and keys (`['a']`); `None` if the schema has no such
/// value.
pub(crate) fn field_path(schema: &Structural, text: &str) -> Option<String> {
    let mut node = schema;
    let mut path = String::new();
    let mut rest = text;
    while !rest.is_empty() {
        let name;
        if let Some(after) = rest.strip_prefix('[') {
            let inside = after.strip_prefix('\'')?;
            let end = closing_quote(inside)?;
            name = unescape(&inside[..end])?;
            rest = inside[end + 1..].strip_prefix(']')?;
        } else {
            let after = rest.strip_prefix('.')?;
            let end = after.find(['.', '[']).unwrap_or(after.len());
            name = after[..end].to_owned();
            rest = &after[end..];
        }
        if name.is_empty() {
            return None;
        }
        if node.properties.is_empty() {
            path.push_str(&format!("[{name}]"));
            node = node.additional()?;
        } else {
            if !path.is_empty() {
                path.push('.');
            }
            path.push_str(&name);
            node = node.property(&name)?;
        }
    }
    Some(path)
}

fn closing_quote(text: &str) -> Option<usize> {
    let mut escaped = false;
    text.char_indices().find_map(|(at, c)| {
        let ends = c == '\'' && !escaped;
        escaped = c == '\\' && !escaped;
        ends.then_some(at)
    })
}

fn unescape(text: &str) -> Option<String> {
    let mut plain = String::new();
    let mut letters = text.chars();
    while let Some(c) = letters.next() {
        plain.push(match c {
            '\\' => match letters.next()? {
                'a' => '\x07',
                'b' => '\x08',
                'f' => '\x0c',
                'n' => '\n',
                'r' => '\r',
                't' => '\t',
                'v' => '\x0b',
                c @ ('\'' | '\\') => c,
                _ => return None,
            },
            c => c,
        });
    }
    Some(plain)
}
