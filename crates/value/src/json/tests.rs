use super::*;
use crate::DEPTH_MAX;

fn check(text: &str, expected: &str) {
    let shown = match parse(text.as_bytes()) {
        Ok(value) => to_string(&value),
        Err(error) => error.to_string(),
    };
    assert_eq!(shown, expected, "{text}");
}

#[test]
fn values_and_errors_match_go() {
    for (text, expected) in [
        ("null", "null"),
        (" [1, -2 ,3.5]\n", "[1,-2,3.5]"),
        (r#"{"b":1,"a":{},"b":[]}"#, r#"{"a":{},"b":[]}"#),
        (r#""a\u0041\n\/\ud83d\ude00""#, r#""aA\n/😀""#),
        (r#""\ud800x""#, "\"\u{fffd}x\""),
        (r#""\ud800\u0041""#, "\"\u{fffd}A\""),
        ("9223372036854775807", "9223372036854775807"),
        ("9223372036854775808", "9223372036854776000"),
        ("1e21", "1e+21"),
        ("1e20", "100000000000000000000"),
        ("0.000001", "0.000001"),
        ("0.0000001", "1e-7"),
        ("-0.0", "0"),
        ("1.0", "1"),
        ("1.5e3", "1500"),
        ("1e300", "1e+300"),
        ("-1.5E-10", "-1.5e-10"),
        ("1e999", "json: cannot unmarshal number 1e999 into Go value of type float64"),
        ("", "unexpected end of JSON input"),
        ("{", "unexpected end of JSON input"),
        ("\"a", "unexpected end of JSON input"),
        ("x", "invalid character 'x' looking for beginning of value"),
        ("[1,]", "invalid character ']' looking for beginning of value"),
        ("[1 2]", "invalid character '2' after array element"),
        ("{1:2}", "invalid character '1' looking for beginning of object key string"),
        ("{\"a\" 1}", "invalid character '1' after object key"),
        ("{\"a\":1 \"b\"", "invalid character '\"' after object key:value pair"),
        ("1 2", "invalid character '2' after top-level value"),
        ("01", "invalid character '1' after top-level value"),
        ("-", "unexpected end of JSON input"),
        ("-x", "invalid character 'x' in numeric literal"),
        ("1.x", "invalid character 'x' after decimal point in numeric literal"),
        ("1ex", "invalid character 'x' in exponent of numeric literal"),
        ("trux", "invalid character 'x' in literal true (expecting 'e')"),
        ("\"\\x\"", "invalid character 'x' in string escape code"),
        ("\"\\u00g0\"", "invalid character 'g' in \\u hexadecimal character escape"),
        ("\"\n\"", "invalid character '\\n' in string literal"),
    ] {
        check(text, expected);
    }
}

#[test]
fn truncated_output_is_a_prefix() {
    use crate::json;
    let text = r#"{"a":[1,2,{"é":"é\"é"}],"b":null,"c":[],"d":{},"e":"ééé😀","😀":["a😀",1]}"#;
    let value = json::parse(text.as_bytes()).unwrap();
    let whole = json::to_string(&value);
    for bytes_max in 0..whole.len() + 2 {
        let mut out = Vec::new();
        json::write_bounded(&value, bytes_max, &mut out);
        let found = String::from_utf8(out).unwrap();
        match found.strip_suffix("...") {
            Some(start) if bytes_max < whole.len() => assert!(whole.starts_with(start), "{found}"),
            _ => assert_eq!(found, whole, "{bytes_max}"),
        }
    }
    let large: Value = (0..100_000).map(Value::from).collect::<Vec<_>>().into();
    let mut out = Vec::new();
    json::write_bounded(&large, 100, &mut out);
    assert!(out.len() <= 103 && out.ends_with(b"..."), "{}", out.len());
}

#[test]
fn all_functions_agree_on_nesting_depth() {
    for (open, close, each) in [("[", "]", 1), (r#"{"[{":"#, "}", 1), (r#"[{"a":"#, "}]", 2)] {
        for count in [1, 2, 100, DEPTH_MAX / each, DEPTH_MAX / each + 1] {
            let inner = r#""]}\"[{""#;
            let text = format!("{}{inner}{}", open.repeat(count), close.repeat(count));
            let depth = count * each;
            let parsed = parse(text.as_bytes());
            assert_eq!(parsed.is_ok(), depth <= DEPTH_MAX, "{open} {count}");
            assert_eq!(super::check(text.as_bytes()), parsed.clone().map(drop), "{open} {count}");
            assert!(
                text_nests_within(&text, depth) && !text_nests_within(&text, depth - 1),
                "{open} {count}"
            );
            let Ok(value) = parsed else { continue };
            assert!(
                nests_within(&value, depth) && !nests_within(&value, depth - 1),
                "{open} {count}"
            );
            let holder = Value::from([("a", Value::raw(text.into()))]);
            assert!(
                nests_within(&holder, depth + 1) && !nests_within(&holder, depth),
                "{open} {count}"
            );
        }
    }
}

#[test]
fn text_nests_as_deep_as_its_value() {
    fn depth(value: &Value) -> usize {
        match value {
            Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or(0),
            Value::Object(members) => 1 + members.values().map(depth).max().unwrap_or(0),
            _ => 0,
        }
    }
    let wide = format!("[{}[[]]]", "[{}],".repeat(300));
    let braces = format!(r#"{{"{}":[{{}},"[["]}}"#, "{[a".repeat(300));
    for text in [
        "0",
        r#""[[""#,
        "[]",
        "{}",
        "[[]]",
        "[1]",
        r#"{"a":{}}"#,
        r#"[{"a":{"]":"{}"}},{},[[]]]"#,
        wide.as_str(),
        braces.as_str(),
    ] {
        let value = parse(text.as_bytes()).unwrap();
        let raw = Value::raw(text.into());
        for levels in 0..1000 {
            let expected = depth(&value) <= levels;
            assert_eq!(nests_within(&value, levels), expected, "{levels} of {text}");
            assert_eq!(nests_within(&raw, levels), expected, "{levels} of {text}");
        }
    }
}

#[test]
fn check_agrees_with_parse() {
    for text in ["", "{", "[1,]", "1e999", "[1e999]", r#"{"a":1e999}"#, "{} x", "null", "[1,{}]"] {
        assert_eq!(super::check(text.as_bytes()), parse(text.as_bytes()).map(drop), "{text}");
    }
}

#[test]
fn valid_json_stays_raw_without_a_check() {
    let path = ["a", "raw"];
    for json in [
        r#"{"a":{"raw":{"f:b":{".":{},"k:{\"c\":1}":[]}},"b":1}}"#,
        r#"{"a":[{"raw":[1,{"b":"]}"}]},{"raw":null},{"raw":"{"}],"c":{"raw":{"d":[]}}}"#,
        r#" { "a" : { "raw" : { "b" : [ 1 , "<" ] } , "c" : 2 } } "#,
        r#"{"a":{"raw":{}}}"#,
    ] {
        let expected = parse_with_raw(json.as_bytes(), &path).expect("it is JSON");
        assert_eq!(parse_valid_with_raw(json.as_bytes(), &path), Ok(expected), "{json}");
    }
}

/// A key that `key_is` leaves is returned by `key`.
#[test]
fn keys_of_compact_text_are_compared() {
    for (text, name, is_consumed) in [
        (r#"{"ab":1}"#, "ab", true),
        (r#"{"x":0,"ab":1}"#, "ab", true),
        (r#"{"x":{"y":[]},"ab":1}"#, "ab", true),
        (r#"{"ab":1}"#, "a", false),
        (r#"{"ab":1}"#, "abc", false),
        (r#"{"ab": 1}"#, "ab", true),
        (r#"{ "ab":1}"#, "ab", false),
        (r#"{"ab" :1}"#, "ab", false),
        (r#"{"x":0, "ab":1}"#, "ab", false),
        (r#"{"x":0 ,"ab":1}"#, "ab", false),
        (r#"{"x":0"ab":1}"#, "ab", false),
        (r#"{,"ab":1}"#, "ab", false),
        (r#"{"x":0,,"ab":1}"#, "ab", false),
        (r#"{"\u0061b":1}"#, "ab", false),
        (r#"{"ab"#, "ab", false),
        (r#"{"ab""#, "ab", false),
        (r#"{"ab":"#, "ab", true),
        ("{}", "ab", false),
        ("{", "", false),
    ] {
        let (compared, consumed) = keys(text, name);
        assert_eq!(consumed > 0, is_consumed, "{text}");
        assert_eq!(compared, keys(text, "absent").0, "{text}");
    }
}

/// The keys and values of an object and the error after them, where keys are first compared with
/// `name`; and the number of keys that were equal.
fn keys(text: &str, name: &str) -> (Vec<String>, usize) {
    let mut reader = Reader::new(text);
    let (mut read, mut consumed) = (vec![format!("{:?}", reader.value())], 0);
    loop {
        if reader.key_is(name) {
            consumed += 1;
            read.push(name.to_owned());
        } else {
            match reader.key() {
                Ok(Some(key)) => read.push(key.to_owned()),
                end => {
                    read.push(format!("{end:?}"));
                    return (read, consumed);
                }
            }
        }
        let value = reader.json();
        read.push(format!("{value:?}"));
        if value.is_err() {
            return (read, consumed);
        }
    }
}
