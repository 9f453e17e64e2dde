//! Finds byte ranges of members in encoded JSON, so that parts of an object can be used without
//! decoding the rest.

use std::ops::Range;

use memchr::memmem;

use super::read::SPECIAL;
use super::{Error, parse, scan, text};
use crate::{Map, Value};

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

/// Returns the byte range of the value at a path of members. `json` is as for [`member`].
pub fn at<S: AsRef<str>>(json: &[u8], path: &[S]) -> Option<Range<usize>> {
    let mut found = 0..json.len();
    for key in path {
        let value = member(json.get(found.clone())?, key.as_ref())?;
        found = found.start + value.start..found.start + value.end;
    }
    Some(found)
}

/// Decodes only the members at `paths` of the object in `json` and skips the others. Where a path
/// expects an object and finds another value, that value is included. It reads nothing after the
/// last member that it needs. `json` is as for [`member`].
pub fn excerpt(json: &[u8], paths: &[&[&str]]) -> Result<Value, Error> {
    excerpt_at(json, 0, paths).map(|(object, _)| object)
}

/// The excerpt of the object at `start`, and the offset after the object, unless the rest of it was
/// not read.
fn excerpt_at(
    json: &[u8],
    start: usize,
    paths: &[&[&str]],
) -> Result<(Value, Option<usize>), Error> {
    let mut object = Map::new();
    let mut below: Vec<&[&str]> = Vec::with_capacity(paths.len());
    let mut to_find = paths.len();
    let mut at = start + 1; // past `{`
    if to_find == 0 {
        return Ok((object.into(), None));
    }
    if json.get(at) == Some(&b'}') {
        return Ok((object.into(), Some(at + 1)));
    }
    while json.get(at) == Some(&b'"')
        && let Some(name_end) = string_end(json, at)
    {
        let name = &json[at + 1..name_end - 1];
        let value = name_end + 1; // past `:`
        below.clear();
        let on_path = |path: &&&[&str]| path.first().is_some_and(|key| key.as_bytes() == name);
        below.extend(paths.iter().filter(on_path).map(|path| &path[1..]));
        let end = if below.is_empty() {
            value_end(json, value)
        } else {
            to_find = to_find.saturating_sub(below.len()); // a name may occur twice
            let is_wanted_whole = below.iter().any(|path| path.is_empty());
            let (part, end) = if is_wanted_whole || json.get(value) != Some(&b'{') {
                let end = value_end(json, value);
                let bytes = json.get(value..end.unwrap_or(json.len())).unwrap_or_default();
                (parse(bytes)?, end)
            } else {
                excerpt_at(json, value, &below)?
            };
            object.insert(&*text(name), part);
            if to_find == 0 {
                return Ok((object.into(), None));
            }
            end.or_else(|| value_end(json, value))
        };
        let Some(end) = end else { return Ok((object.into(), None)) };
        at = end + 1; // past `,` or `}`
    }
    Ok((object.into(), Some(at)))
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
        at += scan::until(json.get(at..)?, &SPECIAL);
        match json.get(at)? {
            b'"' => return Some(at + 1),
            b'\\' => at += 2,
            _ => at += 1, // a control character, which our encoder escapes
        }
    }
}

/// The offset after the value that begins at `at`.
pub(super) fn value_end(json: &[u8], mut at: usize) -> Option<usize> {
    let mut depth = 0_usize;
    loop {
        match json.get(at)? {
            b'"' => at = string_end(json, at)?,
            b'{' | b'[' => {
                depth += 1;
                at += 1;
            }
            b'}' | b']' | b',' if depth == 0 => return Some(at),
            b'}' | b']' => {
                depth -= 1;
                at += 1;
            }
            _ => at += 1,
        }
        if depth == 0 && matches!(json.get(at), Some(b',' | b'}' | b']') | None) {
            return Some(at);
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
    fn an_excerpt_has_the_members_at_the_paths() {
        let json = r#"{"a":{"b":{"c":[1,2],"x":1},"d":"x"},"b":1,"e":{"f":null}}"#;
        for (paths, expected) in [
            (&[&["a", "b", "c"][..], &["b"]][..], r#"{"a":{"b":{"c":[1,2]}},"b":1}"#),
            (&[&["a", "d"], &["a"]], r#"{"a":{"b":{"c":[1,2],"x":1},"d":"x"}}"#),
            (&[&["e", "f", "g"], &["b", "c"], &["z"]], r#"{"b":1,"e":{"f":null}}"#),
            (&[], "{}"),
        ] {
            let found = excerpt(json.as_bytes(), paths).expect("it is JSON");
            assert_eq!(crate::json::to_string(&found), expected, "{paths:?}");
        }
        for cut in [r#"{"a":wrong}"#, r#"{"a""#, r#"{"a":"#, r#"{"a":{"b":1"#] {
            assert!(excerpt(cut.as_bytes(), &[&["a"]]).is_err(), "{cut}");
        }
        let twice = br#"{"a":{"b":1,"c":2},"a":{"b":3,"c":4},"d":5}"#;
        assert!(excerpt(twice, &[&["a", "b"], &["a", "c"], &["d"]]).is_ok());
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
            let _ = at(json.as_bytes(), &["a", "b"]);
            let _ = with_nulls(json.as_bytes(), "a");
        }
    }
}
