//! Escapes property names that are not identifiers.

/// Reserved words of the language, which cannot be identifiers.
const RESERVED: &[&str] = &[
    "true",
    "false",
    "null",
    "in",
    "as",
    "break",
    "const",
    "continue",
    "else",
    "for",
    "function",
    "if",
    "import",
    "let",
    "loop",
    "package",
    "namespace",
    "return",
    "var",
    "void",
    "while",
];

/// Whether a word is reserved.
pub fn is_reserved(word: &str) -> bool {
    RESERVED.contains(&word)
}

/// The identifier that expressions use for the property `name`; `None` if it cannot be escaped.
pub fn escape(name: &str) -> Option<String> {
    if name.is_empty() || name.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    if is_reserved(name) {
        return Some(format!("__{name}__"));
    }
    let mut out = String::with_capacity(name.len());
    let mut rest = name;
    while let Some(c) = rest.chars().next() {
        let (escaped, len) = match c {
            '_' if rest.starts_with("__") => ("__underscores__", 2),
            '.' => ("__dot__", 1),
            '-' => ("__dash__", 1),
            '/' => ("__slash__", 1),
            '_' | 'a'..='z' | 'A'..='Z' | '0'..='9' => (&rest[..1], 1),
            _ => return None,
        };
        out.push_str(escaped);
        rest = &rest[len..];
    }
    Some(out)
}

/// The property to which `identifier` refers; `None` if it has an invalid escape.
pub fn unescape(identifier: &str) -> Option<String> {
    let mut out = String::with_capacity(identifier.len());
    let mut rest = identifier;
    while let Some(at) = rest.find("__") {
        let inside = &rest[at + 2..];
        let len = inside.find('_').unwrap_or(inside.len());
        if len == 0 || !inside[len..].starts_with("__") {
            // Not of the form `__word__`: the first underscore is literal.
            out.push_str(&rest[..=at]);
            rest = &rest[at + 1..];
            continue;
        }
        let word = &inside[..len];
        out.push_str(&rest[..at]);
        out.push_str(match word {
            "underscores" => "__",
            "dot" => ".",
            "dash" => "-",
            "slash" => "/",
            _ if is_reserved(word) && len + 4 == identifier.len() => word,
            _ => return None,
        });
        rest = &inside[len + 2..];
    }
    out.push_str(rest);
    Some(out)
}
