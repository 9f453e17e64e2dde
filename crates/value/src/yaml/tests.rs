use proptest::prelude::*;

use super::*;
use crate::json;

/// Checks that the YAML on the left reads as the JSON on the right, or fails with that message.
fn check_read(yaml: &str, expected: &str) {
    let shown = match parse(yaml.as_bytes()) {
        Ok(value) => json::to_string(&value),
        Err(error) => error.to_string(),
    };
    assert_eq!(shown, expected, "{yaml:.200}");
}

/// Checks that a value is written as the YAML on the right, and that it reads back.
fn check_write(value: &Value, expected: &str) {
    let mut out = Vec::new();
    write(value, &mut out);
    assert_eq!(String::from_utf8(out).unwrap(), expected, "{value:?}");
    assert_eq!(&parse(expected.as_bytes()).unwrap(), value, "{expected}");
}

#[test]
fn scalars_resolve_as_in_go_yaml() {
    for (yaml, expected) in [
        ("", "null"),
        ("~", "null"),
        ("Null", "null"),
        ("yes", "true"),
        ("Off", "false"),
        ("y", "true"),
        ("YeS", "\"YeS\""),
        ("0o17", "15"),
        ("017", "15"),
        ("08", "8"),
        ("0x1F", "31"),
        ("-0b11", "-3"),
        ("1_000", "1000"),
        ("+5", "5"),
        ("--5", "\"--5\""),
        ("-+5", "\"-+5\""),
        ("0x-5", "\"0x-5\""),
        ("18446744073709551615", "18446744073709552000"),
        ("-9223372036854775808", "-9223372036854775808"),
        ("1.0", "1"),
        (".5", "0.5"),
        ("5.", "5"),
        (".", "\".\""),
        ("1e3", "1000"),
        ("1e999", "\"1e999\""),
        ("1.2.3", "\"1.2.3\""),
        ("2001-01-01", "\"2001-01-01\""),
        ("12:30:45", "\"12:30:45\""),
        ("'5'", "\"5\""),
        ("\"true\"", "\"true\""),
        ("!!str 5", "\"5\""),
        ("!!int '5'", "5"),
        ("!!float 5", "5"),
        ("!!binary aGk=", "\"hi\""),
        ("!mine 5", "\"5\""),
        ("|\n  a\n  b\n", "\"a\\nb\\n\""),
        (">-\n  a\n  b\n", "\"a b\""),
        (".inf", "json: unsupported value: +Inf"),
        (".NaN", "json: unsupported value: NaN"),
        ("!!int x", "yaml: cannot decode !!str `x` as a !!int"),
    ] {
        check_read(yaml, expected);
    }
}

#[test]
fn lists_and_maps_read_as_json() {
    for (yaml, expected) in [
        ("a: 1\nb: [x, {k: z}]\n", r#"{"a":1,"b":["x",{"k":"z"}]}"#),
        ("a:\n- 1\n- - 2\n  - 3\n", r#"{"a":[1,[2,3]]}"#),
        (
            "1: a\ntrue: b\n1.50: c\n0x10: d\n2001-01-01: e\n",
            r#"{"1":"a","1.5":"c","16":"d","2001-01-01":"e","true":"b"}"#,
        ),
        ("on: push\n", r#"{"true":"push"}"#),
        ("a: 1\na: 2\n", r#"{"a":2}"#),
        ("x: &x {a: 1, b: 2}\nz: *x\n", r#"{"x":{"a":1,"b":2},"z":{"a":1,"b":2}}"#),
        (
            "x: &x {a: 1, b: 2}\nz:\n  b: 3\n  <<: *x\n  a: 4\n",
            r#"{"x":{"a":1,"b":2},"z":{"a":4,"b":2}}"#,
        ),
        (
            "- &x {a: 1, b: 1}\n- &y {b: 2, c: 2}\n- <<: [*x, *y]\n  d: 3\n",
            r#"[{"a":1,"b":1},{"b":2,"c":2},{"a":1,"b":1,"c":2,"d":3}]"#,
        ),
        ("? a\n: b\n", r#"{"a":"b"}"#),
        ("&k a: *k\n", r#"{"a":"a"}"#),
        ("# only\n---\na: 1\n", r#"{"a":1}"#),
        ("---\na: 1\n---\n# nothing\n---\n", r#"{"a":1}"#),
        ("a: 1\n---\nb: 2\n", "yaml: more than one document"),
        ("a: *x\n", "yaml: unknown anchor 'x' referenced"),
        ("a: &x [*x]\n", "yaml: anchor 'x' value contains itself"),
        ("<<: 1\n", "yaml: map merge requires map or sequence of maps as the value"),
        ("a: b: c\n", "yaml: line 1: mapping values are not allowed in this context"),
        ("~: 1\n", "unsupported map key of type: %!s(<nil>), key: <nil>"),
        ("{\"a\": [1, \"\\u0041\"]}", r#"{"a":[1,"A"]}"#),
        ("a:\t1\n", r#"{"a":1}"#),
        ("\ta: 1", "yaml: found character that cannot start any token"),
        ("# b\n\ta: 1", "yaml: line 2: found character that cannot start any token"),
    ] {
        check_read(yaml, expected);
    }
}

#[test]
fn empty_documents_of_a_file_are_skipped() {
    let documents = parse_documents(b"---\na: 1\n---\n# nothing\n---\n- b\n...\n").unwrap();
    assert_eq!(json::to_string(&documents.into()), r#"[{"a":1},["b"]]"#);
    assert_eq!(parse_documents(b"").unwrap(), []);
}

#[test]
fn alias_bombs_are_rejected() {
    const WORDS: &str = "yaml: document contains excessive aliasing";
    let laughs = |mark: &str| {
        let mut text = "a0: &a0 {k: v}\n".to_owned();
        for level in 1..12 {
            let names = vec![format!("*a{}", level - 1); 10].join(", ");
            text += &format!("a{level}: &a{level} {}\n", mark.replace('$', &names));
        }
        text
    };
    check_read(&laughs("[$]"), WORDS);
    check_read(&laughs("{<<: [$]}"), WORDS);
    let text = "x".repeat(100_000);
    check_read(&format!("- &a {text}\n{}", "- *a\n".repeat(90)), WORDS);
    check_read(&format!("- &a\n  ? {text}\n  : 1\n{}", "- *a\n".repeat(90)), WORDS);
    check_read(&"[".repeat(100_000), "exceeded max depth");
    check_read(&"- ".repeat(100_000), "exceeded max depth");
    check_read(&"[{a: ".repeat(400), "exceeded max depth");
}

#[test]
fn values_are_written_as_go_yaml_does() {
    for (json, expected) in [
        ("{}", "{}\n".to_owned()),
        ("[]", "[]\n".to_owned()),
        ("null", "null\n".to_owned()),
        (r#"{"b":[1,2.5],"a":{"c":{}},"d":[]}"#, "a:\n  c: {}\nb:\n- 1\n- 2.5\nd: []\n".to_owned()),
        (r#"[[1,[2]],{"a":1,"b":[{"c":2}]}]"#, "- - 1\n  - - 2\n- a: 1\n  b:\n  - c: 2\n".to_owned()),
        (r#"["","5","0x1","yes","~","1e3","2001-01-01","1:30",".5"]"#,
         "- \"\"\n- \"5\"\n- \"0x1\"\n- \"yes\"\n- \"~\"\n- \"1e3\"\n- \"2001-01-01\"\n- \"1:30\"\n- \".5\"\n".to_owned()),
        (r##"["a: b","a:b","- a","-a","#a","a #b","a#b","'a'","a'b","*a","@a","{a","a{","?","? a","?a"]"##,
         "- 'a: b'\n- a:b\n- '- a'\n- -a\n- '#a'\n- 'a #b'\n- a#b\n- '''a'''\n- a'b\n- '*a'\n- '@a'\n- '{a'\n- a{\n- '?'\n- '? a'\n- ?a\n".to_owned()),
        (r#"[" a","a ","a\tb","a\u0000","---","\ud83d\ude00","é"]"#,
         "- ' a'\n- 'a '\n- \"a\\tb\"\n- \"a\\0\"\n- '---'\n- \"\\U0001F600\"\n- é\n".to_owned()),
        (r#"{"k":"a\nb","l":"a\nb\n","m":"a\n\n","n":" a\n","o":"a \nb","p":"\n"}"#,
         "k: |-\n  a\n  b\nl: |\n  a\n  b\nm: |+\n  a\n\n\"n\": |2\n   a\no: \"a \\nb\"\np: |2+\n\n".to_owned()),
        (r#"{"a10":1,"a9":2,"a-b":3,"ab":4,"A":5}"#, "A: 5\na-b: 3\na9: 2\na10: 1\nab: 4\n".to_owned()),
        (r#"{"x":1000000.5,"y":1e30,"z":0.00001}"#, "x: 1.0000005e+06\n\"y\": 1e+30\nz: 1e-05\n".to_owned()),
    ] {
        check_write(&json::parse(json.as_bytes()).unwrap(), &expected);
    }
}

#[test]
fn long_text_is_folded_after_column_80() {
    let words = "word ".repeat(40);
    let (plain, quoted) = (words.trim_end(), format!("#{words}x"));
    let control = format!("{words}\t{words}  x");
    let line = |count: usize| "word ".repeat(count).trim_end().to_owned();
    for (text, expected) in [
        (plain, format!("k: {}\n  {}\n  {}\n", line(16), line(16), line(8))),
        (&quoted, format!("k: '#{}\n  {}\n  {} x'\n", line(16), line(16), line(8))),
        (
            &control,
            format!(
                "k: \"{}\n  {}\n  {} \\t{}\n  {}\n  {}\n  \\  x\"\n",
                line(16),
                line(16),
                line(8),
                line(8),
                line(16),
                line(16)
            ),
        ),
    ] {
        check_write(&Value::from([("k", text)]), &expected);
    }
}

#[test]
fn list_items_are_written_one_by_one() {
    let long = "word ".repeat(40);
    let items = [
        r#"{"a":{"b":[1,{"c":"x\ny\n"}]},"d":"x\ny"}"#,
        r#"{"a":"x\n\n"}"#,
        "[[1,[]],{}]",
        "{}",
        "[]",
        r#""a""#,
        "null",
        &format!("{{\"a\":[\"{long}x\"]}}"),
    ];
    let items = items.map(|item| json::parse(item.as_bytes()).unwrap());
    let mut expected = Vec::new();
    write(&Value::from([("items", Value::Array(items.to_vec()))]), &mut expected);
    let mut out = b"items:\n".to_vec();
    items.iter().for_each(|item| write_item(item, &mut out));
    assert_eq!(String::from_utf8(out).unwrap(), String::from_utf8(expected).unwrap());
}

#[test]
fn long_and_multiline_keys_are_explicit_keys() {
    let long = "k".repeat(129);
    for (key, expected) in [
        (long.as_str(), format!("? {long}\n: - 1\n")),
        ("a\nb", "? |-\n  a\n  b\n: - 1\n".to_owned()),
    ] {
        check_write(&Value::from([(key, vec![1])]), &expected);
    }
}

#[test]
fn keys_are_sorted_by_a_non_transitive_order() {
    let mut keys = vec!["111", "1a-", "2a1-", "1a-a", "2a1", "110", "0110"];
    order::sort(&mut keys, |key| key);
    assert_eq!(keys.len(), 7);
    let mut keys = vec!["a100", "a99", "b1", "a1b", "a-1", "a01", "a1", "A", "_"];
    order::sort(&mut keys, |key| key);
    assert_eq!(keys, ["_", "A", "a-1", "a1", "a1b", "a01", "a99", "a100", "b1"]);
}

#[test]
fn duplicate_keys_are_reported_with_lines() {
    let check = |text: &str, expected: &[&str]| {
        let reader = Reader::new(text).expect("YAML");
        assert_eq!(reader.duplicates().collect::<Vec<_>>(), expected, "{text}");
    };
    check("a: 1\nb: 2\n", &[]);
    check(
        "a: 1\na: 2\nb: {c: 1, c: 2}\n",
        &["line 2: key \"a\" already set in map", "line 3: key \"c\" already set in map"],
    );
    check(
        "a: 1\na:\n  b: 2\n  b: 3\n1: x\n1: y\n",
        &[
            "line 4: key \"b\" already set in map",
            "line 3: key \"a\" already set in map",
            "line 6: key 1 already set in map",
        ],
    );
    check("- a: 1\n- a: 1\n", &[]);
}

/// The errors are those of go-yaml's `readerc.go`.
#[test]
fn bytes_that_are_no_characters_are_refused() {
    let rows: &[(&[u8], &str)] = &[
        (b"a: \xc3(", "invalid trailing UTF-8 octet"),
        (b"a: \xff", "invalid leading UTF-8 octet"),
        (b"a: \x80", "invalid leading UTF-8 octet"),
        (b"a: \xe2\x82", "incomplete UTF-8 octet sequence"),
        (b"a: \xc0\xaf", "invalid length of a UTF-8 sequence"),
        (b"a: \xe0\x80\xaf", "invalid length of a UTF-8 sequence"),
        (b"a: \xf0\x80\x80\xaf", "invalid length of a UTF-8 sequence"),
        (b"a: \xed\xa0\x80", "invalid Unicode character"),
        (b"a: \xf4\x90\x80\x80", "invalid Unicode character"),
    ];
    for (bytes, why) in rows {
        let error = parse(bytes).expect_err("it is refused").to_string();
        assert_eq!(error, format!("yaml: {why}"), "{bytes:x?}");
    }
}

proptest! {
    #[test]
    fn fast_paths_agree_with_the_full_analysis(text in "[ -~]{0,6}", other in "[ -/:-~]{0,4}", third in "[ -/:-~]{0,4}") {
        prop_assert!(!scalar::is_plain_ascii(&text) || scalar::Traits::of(&text).allows_plain());
        let mut keys = [other.as_str(), &third];
        keys.sort_by(|a, b| order::compare(a, b));
        let mut sorted = vec![other.as_str(), &third];
        order::sort(&mut sorted, |key| key);
        prop_assert_eq!(sorted, keys);
    }
}
