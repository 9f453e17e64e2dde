//! Media types with parameters, and the `Accept` header.

use std::collections::HashMap;

/// A media type or range, with its parameters.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct MediaRange<'a> {
    /// `application`, or `*`.
    pub(crate) kind: &'a str,
    /// `json`, or `*`.
    pub(crate) subtype: &'a str,
    /// Parameters other than `q`, in order.
    pub(crate) parameters: Vec<(&'a str, &'a str)>,
    quality: f32,
}

impl<'a> MediaRange<'a> {
    fn parse(text: &'a str) -> Option<Self> {
        let mut parts = text.split(';').map(str::trim);
        let (kind, subtype) = match parts.next()?.split_once('/') {
            Some((kind, subtype)) if !subtype.contains('/') => (kind.trim(), subtype.trim()),
            Some(_) => return None,
            None if text.trim() == "*" => ("*", "*"),
            None => return None,
        };
        if kind.is_empty() || subtype.is_empty() {
            return None;
        }
        let mut range = Self { kind, subtype, parameters: Vec::new(), quality: 1.0 };
        for (key, value) in parts.filter_map(|part| part.split_once('=')) {
            match (key.trim(), value.trim()) {
                ("q", value) => range.quality = quality(value),
                (_, value) if value.contains('=') => {}
                pair => range.parameters.push(pair),
            }
        }
        Some(range)
    }

    /// Whether the range includes a type such as `application/json`.
    pub(crate) fn covers(&self, kind: &str, subtype: &str) -> bool {
        match (self.kind, self.subtype) {
            ("*", "*") => true,
            (k, "*") => k == kind,
            (k, s) => k == kind && s == subtype,
        }
    }

    /// The value of a parameter; the last one if the parameter is repeated.
    pub(crate) fn parameter(&self, key: &str) -> Option<&'a str> {
        self.parameters.iter().rev().find(|(k, _)| *k == key).map(|(_, value)| *value)
    }
}

/// Parses a quality. An invalid one counts as 0, and 0 does not exclude a type, as in upstream.
fn quality(text: &str) -> f32 {
    text.parse().ok().filter(|quality: &f32| !quality.is_nan()).unwrap_or(0.0)
}

/// Parses an `Accept` header into ranges sorted by quality, then exact types before wildcards, then
/// in order of the header. Invalid ranges are left out.
pub(crate) fn parse_accept(header: &str) -> Vec<MediaRange<'_>> {
    let mut ranges: Vec<_> = header.split(',').filter_map(MediaRange::parse).collect();
    let rank = |range: &MediaRange<'_>| {
        (-range.quality, u8::from(range.kind == "*"), u8::from(range.subtype == "*"))
    };
    ranges.sort_by(|a, b| rank(a).partial_cmp(&rank(b)).unwrap_or(std::cmp::Ordering::Equal));
    ranges
}

/// A `Content-Type` in lower case without its parameters; `None` if the media type or a parameter
/// is invalid (Go's `mime.ParseMediaType`).
pub(crate) fn essence(header: &str) -> Option<String> {
    let (essence, mut rest) = header.split_at(header.find(';').unwrap_or(header.len()));
    let (kind, subtype) = essence.trim().split_once('/')?;
    if !is_token(kind) || !is_token(subtype) {
        return None;
    }
    let mut seen: HashMap<String, &str> = HashMap::new();
    loop {
        rest = rest.trim_start();
        if matches!(rest, "" | ";") {
            return Some(essence.trim().to_ascii_lowercase());
        }
        let (name, value, behind) = parameter(rest)?;
        let earlier = seen.insert(name.to_ascii_lowercase(), value);
        if earlier.is_some_and(|earlier| earlier != value) {
            return None;
        }
        rest = behind;
    }
}

/// Parses `; name=value` at the beginning of a text. Returns the name, the value and the rest of
/// the text; `None` if the parameter is invalid. A quoted value keeps its quotes.
fn parameter(text: &str) -> Option<(&str, &str, &str)> {
    let (name, value) = text.strip_prefix(';')?.split_once('=')?;
    let (name, value) = (name.trim(), value.trim_start());
    let length = match value.strip_prefix('"') {
        Some(quoted) => {
            let mut escaped = false;
            let end = quoted.bytes().position(|byte| {
                let ends = byte == b'"' && !escaped;
                escaped = byte == b'\\' && !escaped;
                ends
            });
            end? + 2
        }
        None => value.find(|c| !is_token_char(c)).unwrap_or(value.len()),
    };
    let (value, behind) = value.split_at(length);
    (is_token(name) && !value.is_empty()).then_some((name, value, behind))
}

fn is_token(text: &str) -> bool {
    !text.is_empty() && text.chars().all(is_token_char)
}

/// RFC 2045, 5.1.
fn is_token_char(c: char) -> bool {
    const OTHERS: [bool; 128] = {
        let (mut others, bytes) = ([false; 128], br#"()<>@,;:\"/[]?="#);
        let mut at = 0;
        while at < bytes.len() {
            others[bytes[at] as usize] = true;
            at += 1;
        }
        others
    };
    c.is_ascii_graphic() && !OTHERS[c as usize]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(header: &str, expected: &[&str]) {
        let ranges = parse_accept(header);
        let texts: Vec<_> = ranges.iter().map(|r| format!("{}/{}", r.kind, r.subtype)).collect();
        assert_eq!(texts, expected, "{header}");
    }

    #[test]
    fn ranges_are_ranked() {
        // MT-03
        check("application/json", &["application/json"]);
        check("application/yaml, application/json", &["application/yaml", "application/json"]);
        check(
            "application/yaml;q=0.5, application/json",
            &["application/json", "application/yaml"],
        );
        check("*/*, application/*, text/css", &["text/css", "application/*", "*/*"]);
        check("*", &["*/*"]);
        check("application/json;q=0, application/yaml", &["application/yaml", "application/json"]);
        check("application/json;q=NaN, text/css;q=0.1", &["text/css", "application/json"]);
        check(", ;, a/b/c, /json, application/", &[]);
    }

    #[test]
    fn parameters_are_parsed() {
        let header = "application/json;as=Table;v=v1;g=meta.k8s.io, application/json";
        let ranges = parse_accept(header);
        assert_eq!(ranges[0].parameter("as"), Some("Table"));
        assert_eq!(ranges[0].parameter("g"), Some("meta.k8s.io"));
        assert_eq!(ranges[1].parameter("as"), None);
    }

    #[test]
    fn content_types_lose_their_parameters() {
        assert_eq!(essence("application/JSON; charset=utf-8").as_deref(), Some("application/json"));
        assert_eq!(essence("text/plain;a=b; A=b;").as_deref(), Some("text/plain"));
        assert_eq!(essence(r#"text/plain; a="\";=b" ;c=d"#).as_deref(), Some("text/plain"));
        for none in ["text/plain;a", "text/plain;a=b;a=c", "text/plain;a=\"b", "a b/c", "a/b c"] {
            assert_eq!(essence(none), None, "{none}");
        }
        let many: String = (0..37_000).map(|number| format!(";a{number}=1")).collect();
        assert_eq!(essence(&format!("a/b{many}")).as_deref(), Some("a/b"));
        assert_eq!(essence("nonsense"), None);
        assert_eq!(essence(""), None);
    }
}
