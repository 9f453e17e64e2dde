//! `Warning` headers, limited as upstream does: each text once, and about 4,096 characters in
//! total. If the texts are longer in total, each one is cut to 256 characters.

use std::collections::HashSet;

use bytes::Bytes;
use http::header::{HeaderMap, HeaderValue, WARNING};

const TOTAL_CHARS_MAX: usize = 4 * 1024;
const TRUNCATED_CHARS: usize = 256;

/// Adds a `Warning` header for each text (FV-06, DEP-12).
pub(crate) fn add_warnings(headers: &mut HeaderMap, texts: &[impl AsRef<str>]) {
    let mut seen = HashSet::with_capacity(texts.len());
    let texts = texts.iter().map(AsRef::as_ref);
    let distinct: Vec<&str> = texts.filter(|text| !text.is_empty() && seen.insert(*text)).collect();
    let total: usize = distinct.iter().map(|text| text.chars().count()).sum();
    let truncate = total > TOTAL_CHARS_MAX;
    let mut written = 0;
    for text in distinct {
        let text = if truncate { truncated(text) } else { text };
        if written >= TOTAL_CHARS_MAX {
            break;
        }
        if let Some(value) = header(text) {
            // All texts fit if none is truncated.
            written += if truncate { text.chars().count() } else { 0 };
            headers.append(WARNING, value);
        }
    }
}

fn truncated(text: &str) -> &str {
    text.char_indices().nth(TRUNCATED_CHARS).map_or(text, |(end, _)| &text[..end])
}

/// Formats `299 - "text"`; `None` for a text with control characters.
fn header(text: &str) -> Option<HeaderValue> {
    let is_control = match text.is_ascii() {
        // The type of headers itself refuses the others.
        true => memchr::memchr(b'\t', text.as_bytes()).is_some(),
        false => text.chars().any(char::is_control),
    };
    if is_control {
        return None;
    }
    let (mut value, mut copied) = (Vec::with_capacity(text.len() + 32), 0);
    value.extend_from_slice(b"299 - \"");
    for at in memchr::memchr2_iter(b'"', b'\\', text.as_bytes()) {
        value.extend_from_slice(&text.as_bytes()[copied..at]);
        value.push(b'\\');
        copied = at;
    }
    value.extend_from_slice(&text.as_bytes()[copied..]);
    value.push(b'"');
    HeaderValue::from_maybe_shared(Bytes::from(value)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(texts: &[&str], expected: &[&str]) {
        let mut headers = HeaderMap::new();
        add_warnings(&mut headers, texts);
        let found: Vec<_> = headers.get_all(WARNING).iter().map(HeaderValue::as_bytes).collect();
        let expected: Vec<_> = expected.iter().map(|text| text.as_bytes()).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn texts_become_headers() {
        check(&[], &[]);
        check(&["a", "a", "", "b"], &["299 - \"a\"", "299 - \"b\""]);
        check(&[r#"unknown field "spec.foo""#], &[r#"299 - "unknown field \"spec.foo\"""#]);
        check(
            &["back\\slash", "two\nlines", "a\tb", "\x7f", "\u{85}", "ä"],
            &["299 - \"back\\\\slash\"", "299 - \"ä\""],
        );
    }

    #[test]
    fn the_total_length_is_limited() {
        let texts: Vec<String> = (0..100).map(|n| format!("{n}{}", "x".repeat(300))).collect();
        let mut headers = HeaderMap::new();
        add_warnings(&mut headers, &texts);
        assert_eq!(headers.get_all(WARNING).iter().count(), TOTAL_CHARS_MAX / TRUNCATED_CHARS);
        assert_eq!(headers[WARNING].len(), TRUNCATED_CHARS + r#"299 - """#.len());
    }
}
