//! Finds byte ranges of members in encoded JSON, so that parts of an object can be used without
//! decoding the rest.

use std::ops::Range;

use memchr::memmem;

use super::brackets::container_end;
use super::scan;

/// Returns the byte range of the value of the member `key` of the object in `json`. `json` must
/// come from our encoder: compact, without escapes in member names.
pub fn member(json: &[u8], key: &str) -> Option<Range<usize>> {
    members(json).find_map(|(name, value)| (name == key.as_bytes()).then_some(value))
}

/// Iterates over the members of the object in `json`: name and byte range of the value. Lazy: it
/// reads nothing after the last member that is requested. `json` is as for [`member`].
pub fn members(json: &[u8]) -> impl Iterator<Item = (&[u8], Range<usize>)> {
    let mut at = 1; // past `{`
    std::iter::from_fn(move || {
        if json.get(at) != Some(&b'"') {
            return None;
        }
        let name = at + 1..string_end(json, at)? - 1;
        let value = name.end + 2..value_end(json, name.end + 2)?; // past `":`
        at = value.end + 1; // past `,`
        Some((&json[name], value))
    })
}

/// Iterates over the members of the object that begins at the start of `json`: names, and the JSON
/// from the beginning of each value on, which [`first`] cuts after the value. A value is read only
/// when the next member is asked for, so that a long one can be left unread. `json` is as for
/// [`member`].
pub fn member_starts(json: &[u8]) -> impl Iterator<Item = (&[u8], &[u8])> {
    let mut rest = json;
    let mut is_first = true;
    std::iter::from_fn(move || {
        let end = if std::mem::take(&mut is_first) { 0 } else { value_end(rest, 0)? };
        let member = rest.get(end + 1..).filter(|member| member.first() == Some(&b'"'))?;
        let name = 1..string_end(member, 0)? - 1;
        rest = member.get(name.end + 2..)?; // past `":`
        Some((&member[name], rest))
    })
}

/// Returns the value at the start of `json`. `json` is as for [`member`].
pub fn first(json: &[u8]) -> &[u8] {
    value_end(json, 0).map_or(json, |end| &json[..end])
}

/// Returns the byte range of the value at a path of members. `json` is as for [`member`].
pub fn at<S: AsRef<str>>(json: &[u8], path: &[S]) -> Option<Range<usize>> {
    let mut found = 0..json.len();
    for key in path {
        let value = member(json.get(found.clone())?, key.as_ref())?;
        found = found.start + value.start..found.start + value.end;
    }
    Some(found)
}

/// Iterates over the items of the list in `json` as byte ranges. `json` is as for [`member`].
pub fn items(json: &[u8]) -> impl Iterator<Item = Range<usize>> {
    let is_list = json.first() == Some(&b'[') && json.get(1) != Some(&b']');
    let mut at = if is_list { 1 } else { json.len() };
    std::iter::from_fn(move || {
        let item = at..value_end(json, at)?;
        at = item.end + 1; // past `,`
        Some(item)
    })
}

/// Returns the JSON with `null` as the value of every member `key`, at any depth. `json` is as for
/// [`member`].
pub fn with_nulls(json: &[u8], key: &str) -> Vec<u8> {
    // No string value contains this text, because quotes in strings are escaped and no colon
    // follows a string value.
    let name = format!("\"{key}\":");
    let finder = memmem::Finder::new(&name);
    let (mut rest, mut out) = (json, Vec::new());
    while let Some(at) = finder.find(rest) {
        let value = at + name.len();
        // The end of a longer name, in which the quote is escaped.
        if rest[..at].ends_with(b"\\") {
            out.extend_from_slice(&rest[..value]);
            rest = &rest[value..];
            continue;
        }
        let Some(end) = value_end(rest, value) else { break };
        out.extend_from_slice(&rest[..value]);
        out.extend_from_slice(b"null");
        rest = &rest[end..];
    }
    out.extend_from_slice(rest);
    out
}

/// The offset after the string whose opening quote is at `at`.
pub(super) fn string_end(json: &[u8], at: usize) -> Option<usize> {
    let mut at = at + 1;
    loop {
        at += scan::until_quote(json.get(at..)?);
        match json.get(at)? {
            b'"' => return Some(at + 1),
            _ => at += 2, // an escape
        }
    }
}

/// The offset after the value that begins at `at`.
pub(super) fn value_end(json: &[u8], at: usize) -> Option<usize> {
    match json.get(at)? {
        b'"' => string_end(json, at),
        b'{' | b'[' => container_end(json, at),
        _ => {
            let is_after = |byte: &u8| matches!(byte, b',' | b'}' | b']');
            Some(json[at..].iter().position(is_after).map_or(json.len(), |len| at + len))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(json: &str, key: &str, expected: Option<&str>) {
        let found = member(json.as_bytes(), key).map(|range| &json[range]);
        assert_eq!(found, expected, "{key} in {json}");
    }

    #[test]
    fn only_top_level_members_are_found() {
        let json = r#"{"kind":"Pod","n":1.5,"metadata":{"name":"a\"},{","x":[1,{}]},"spec":{"metadata":2},"t":true}"#;
        check(json, "kind", Some(r#""Pod""#));
        check(json, "n", Some("1.5"));
        check(json, "metadata", Some(r#"{"name":"a\"},{","x":[1,{}]}"#));
        check(json, "spec", Some(r#"{"metadata":2}"#));
        check(json, "t", Some("true"));
        check(json, "x", None);
        check("{}", "x", None);
    }

    #[test]
    fn values_are_found_by_their_path() {
        let json = r#"{"a":{"b":{"c":[1,2]},"d":"x"},"b":1}"#;
        for (path, expected) in [
            (&["a", "b", "c"][..], Some("[1,2]")),
            (&["a", "d"], Some(r#""x""#)),
            (&["b"], Some("1")),
            (&["b", "c"], None),
            (&["a", "c"], None),
            (&[], Some(json)),
        ] {
            let found = at(json.as_bytes(), path).map(|range| &json[range]);
            assert_eq!(found, expected, "{path:?}");
        }
    }

    #[test]
    fn members_are_read_when_the_next_is_asked_for() {
        let json = br#"{"a":1,"b":{"c":"}"},"d":[]}"#;
        let found: Vec<_> = member_starts(json).map(|(name, rest)| (name, first(rest))).collect();
        let expected: [(&[u8], &[u8]); 3] = [(b"a", b"1"), (b"b", br#"{"c":"}"}"#), (b"d", b"[]")];
        assert_eq!(found, expected);
        let cut = br#"{"a":1,"b":{"c":"#;
        let found: Vec<_> = member_starts(cut).map(|(name, rest)| (name, first(rest))).collect();
        let expected: [(&[u8], &[u8]); 2] = [(b"a", b"1"), (b"b", br#"{"c":"#)];
        assert_eq!(found, expected, "the last value is not searched for its end");
        for none in ["{}", "[1]", "", "{", "1"] {
            assert_eq!(member_starts(none.as_bytes()).count(), 0, "{none}");
        }
    }

    #[test]
    fn members_keep_their_order() {
        let json = br#"{"a":1,"b":{"c":2},"d":"}"}"#;
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("text");
        let found: Vec<_> =
            members(json).map(|(name, value)| (text(name), text(&json[value]))).collect();
        let expected = [("a", "1"), ("b", r#"{"c":2}"#), ("d", r#""}""#)];
        assert_eq!(found, expected.map(|(name, value)| (name.to_owned(), value.to_owned())));
    }

    #[test]
    fn only_top_level_items_are_found() {
        for (json, expected) in [
            (r#"[1,"a],",{"x":[2,3]},[[4]]]"#, &["1", r#""a],""#, r#"{"x":[2,3]}"#, "[[4]]"][..]),
            ("[{}]", &["{}"]),
            ("[]", &[]),
            ("{}", &[]),
            ("null", &[]),
        ] {
            let found: Vec<_> = items(json.as_bytes()).map(|range| &json[range]).collect();
            assert_eq!(found, expected, "{json}");
        }
    }

    #[test]
    fn members_are_replaced_by_null_at_any_depth() {
        for (json, expected) in [
            (r#"{"a":{"x":1},"b":2}"#, r#"{"a":null,"b":2}"#),
            (
                r#"{"b":[{"a":[1,"]"],"c":{"a":"}"}},{"a":1}]}"#,
                r#"{"b":[{"a":null,"c":{"a":null}},{"a":null}]}"#,
            ),
            (r#"{"a":{"a":1,"b":"\"a\":2"}}"#, r#"{"a":null}"#),
            (r#"{"b":"\"a\":2","aa":1}"#, r#"{"b":"\"a\":2","aa":1}"#),
            (r#"{"x\"a":1,"a":2}"#, r#"{"x\"a":1,"a":null}"#),
            ("{}", "{}"),
        ] {
            let out = with_nulls(json.as_bytes(), "a");
            assert_eq!(String::from_utf8(out).expect("text"), expected, "{json}");
        }
    }

    #[test]
    fn damaged_json_does_not_panic() {
        for json in [
            "",
            "{",
            "{\"",
            "{\"a\"",
            "{\"a\":",
            "{\"a\":{",
            "{\"a\":\"\\",
            "[1,2]",
            "null",
            "[",
            "[1",
            "[1,",
        ] {
            assert!(items(json.as_bytes()).count() <= 2);
            let _ = member(json.as_bytes(), "metadata");
            assert!(
                member_starts(json.as_bytes()).all(|(_, rest)| first(rest).len() <= json.len())
            );
            let _ = at(json.as_bytes(), &["a", "b"]);
            let _ = with_nulls(json.as_bytes(), "a");
        }
    }
}
