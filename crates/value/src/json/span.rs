//! Where a member of an object stands in its JSON, so that a part of an encoded object can be used
//! without decoding the rest.

use std::ops::Range;

use memchr::memmem;

/// The value of the member `key` of the object in `json`, as a range of bytes. `json` is what an encoder
/// of ours wrote: compact, without escapes in member names.
pub fn member(json: &[u8], key: &str) -> Option<Range<usize>> {
    let mut at = 1; // past `{`
    while json.get(at) == Some(&b'"') {
        let name = at + 1..string_end(json, at)? - 1;
        let value = name.end + 2..value_end(json, name.end + 2)?; // past `":`
        if json.get(name) == Some(key.as_bytes()) {
            return Some(value);
        }
        at = value.end + 1; // past `,`
    }
    None
}

/// The items of the list in `json`, each as a range of bytes. `json` is as for [`member`].
pub fn items(json: &[u8]) -> impl Iterator<Item = Range<usize>> {
    let is_list = json.first() == Some(&b'[') && json.get(1) != Some(&b']');
    let mut at = if is_list { 1 } else { json.len() };
    std::iter::from_fn(move || {
        let item = at..value_end(json, at)?;
        at = item.end + 1; // past `,`
        Some(item)
    })
}

/// The JSON with `null` for what every member `key` has, at any depth: for those who want to know all
/// but what is long. `json` is as for [`member`].
pub fn without(json: &[u8], key: &str) -> Vec<u8> {
    // Within a string there is no such text: its quotes are escaped there.
    let name = format!("\"{key}\":");
    let finder = memmem::Finder::new(&name);
    let (mut rest, mut kept) = (json, Vec::new());
    while let Some(at) = finder.find(rest) {
        let value = at + name.len();
        let Some(end) = value_end(rest, value) else { break };
        kept.extend_from_slice(&rest[..value]);
        kept.extend_from_slice(b"null");
        rest = &rest[end..];
    }
    kept.extend_from_slice(rest);
    kept
}

/// Just behind the string whose opening quote is at `at`.
fn string_end(json: &[u8], at: usize) -> Option<usize> {
    let mut at = at + 1;
    loop {
        at += memchr::memchr2(b'"', b'\\', json.get(at..)?)?;
        if json[at] == b'"' {
            return Some(at + 1);
        }
        at += 2;
    }
}

/// Just behind the value that begins at `at`.
fn value_end(json: &[u8], mut at: usize) -> Option<usize> {
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
        let at_separator = matches!(json.get(at), Some(b',' | b'}' | b']') | None);
        if depth == 0 && at_separator {
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
    fn members_are_found_at_the_top_only() {
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
    fn items_are_found_at_the_top_only() {
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
    fn members_are_left_out_at_any_depth() {
        for (json, expected) in [
            (r#"{"a":{"x":1},"b":2}"#, r#"{"a":null,"b":2}"#),
            (
                r#"{"b":[{"a":[1,"]"],"c":{"a":"}"}},{"a":1}]}"#,
                r#"{"b":[{"a":null,"c":{"a":null}},{"a":null}]}"#,
            ),
            (r#"{"a":{"a":1,"b":"\"a\":2"}}"#, r#"{"a":null}"#),
            (r#"{"b":"\"a\":2","aa":1}"#, r#"{"b":"\"a\":2","aa":1}"#),
            ("{}", "{}"),
        ] {
            let kept = without(json.as_bytes(), "a");
            assert_eq!(String::from_utf8(kept).expect("text"), expected, "{json}");
        }
    }

    #[test]
    fn damaged_json_is_no_panic() {
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
            let _ = without(json.as_bytes(), "a");
        }
    }
}
