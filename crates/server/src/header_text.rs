//! The text of header values. Go accepts any bytes and shows invalid UTF-8 as U+FFFD; so does this
//! server. A value that is not ASCII never counts as absent: otherwise a client whose user name is
//! not ASCII would get another identity.

use std::borrow::Cow;

use http::{HeaderMap, HeaderName, HeaderValue};

/// The text of a value.
pub(crate) fn text(value: &HeaderValue) -> Cow<'_, str> {
    lossy(value.as_bytes())
}

/// The values of all headers of a name as one list (RFC 9110, 5.3).
pub(crate) fn list<'h>(headers: &'h HeaderMap, name: &HeaderName) -> Cow<'h, str> {
    let mut values = headers.get_all(name).iter().map(text);
    let first = values.next().unwrap_or_default();
    let Some(second) = values.next() else { return first };
    let mut list = first.into_owned();
    for value in std::iter::once(second).chain(values) {
        list.push(',');
        list.push_str(&value);
    }
    Cow::Owned(list)
}

/// Converts bytes as Go's JSON does: each invalid byte becomes U+FFFD. ([`String::from_utf8_lossy`]
/// merges several.)
pub(crate) fn lossy(bytes: &[u8]) -> Cow<'_, str> {
    if let Ok(text) = std::str::from_utf8(bytes) {
        return Cow::Borrowed(text);
    }
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        text.extend(chunk.invalid().iter().map(|_| char::REPLACEMENT_CHARACTER));
    }
    Cow::Owned(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_of_a_name_are_one_list() {
        let name = http::header::ACCEPT;
        let mut headers = HeaderMap::new();
        assert_eq!(list(&headers, &name), "");
        for (value, expected) in [("a", "a"), ("b", "a,b"), ("c, d", "a,b,c, d")] {
            headers.append(&name, HeaderValue::from_static(value));
            assert_eq!(list(&headers, &name), expected);
        }
    }

    #[test]
    fn each_invalid_byte_becomes_a_replacement_character() {
        for (bytes, expected) in [
            (&b"plain"[..], "plain"),
            ("jürgen".as_bytes(), "jürgen"),
            (b"j\xfcrgen", "j\u{fffd}rgen"),
            (b"\xe2\x82", "\u{fffd}\u{fffd}"),
            (b"\xff\xfea", "\u{fffd}\u{fffd}a"),
            (b"", ""),
        ] {
            assert_eq!(lossy(bytes), expected, "{bytes:?}");
        }
    }
}
