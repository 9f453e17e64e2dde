use pintle_value::{Value, json};
use proptest::prelude::*;

use super::{Selector, format_label_selector};
use crate::tests;

#[test]
fn selectors_parse_as_upstream() {
    tests::check(include_str!("../../testdata/label_selectors.jsonl"), Selector::parse);
}

fn labels(json: &str) -> Value {
    json::parse(json.as_bytes()).unwrap()
}

#[test]
fn selectors_match_by_labels() {
    let object = labels(r#"{"foo":"bar","baz":"blah","n":"5","empty":"","in":"notin"}"#);
    for (text, matches) in [
        ("", true),
        ("foo=bar", true),
        ("foo==bar,baz=blah", true),
        ("foo=blah", false),
        ("foo=bar,foobar=bar", false),
        ("foo!=bar", false),
        ("foo!=x", true),
        ("absent!=x", true),
        ("foo", true),
        ("!foo", false),
        ("absent", false),
        ("!absent", true),
        ("foo in (x,bar)", true),
        ("foo in (x,y)", false),
        ("foo notin (x,y)", true),
        ("foo notin (x,bar)", false),
        ("absent notin (x)", true),
        ("absent in (x)", false),
        ("empty=", true),
        ("empty", true),
        ("absent=", false),
        ("empty in (,a)", true),
        ("in=notin", true),
        ("n>4", true),
        ("n>5", false),
        ("n<6", true),
        ("n<5", false),
        ("foo>1", false),
        ("absent<1", false),
        ("foo=bar,foo=x", false),
    ] {
        let selector = Selector::parse(text).unwrap();
        assert_eq!(selector.matches_map(object.as_object()), matches, "{text}");
    }
    assert!(Selector::everything().matches_map(None));
    assert!(!Selector::nothing().matches_map(object.as_object()));
}

#[test]
fn label_selectors_of_objects_are_converted() {
    for (selector, text) in [
        ("null", "<none>"),
        ("{}", "<none>"),
        (r#"{"matchLabels":{"b":"2","a":"1"}}"#, "a=1,b=2"),
        (
            r#"{"matchLabels":{"z":"1"},"matchExpressions":[
                {"key":"d","operator":"DoesNotExist"},
                {"key":"c","operator":"Exists"},
                {"key":"b","operator":"NotIn","values":["y","x"]},
                {"key":"a","operator":"In","values":["1"]}]}"#,
            "a in (1),b notin (x,y),c,!d,z=1",
        ),
        (r#"{"matchExpressions":[{"key":"a","operator":"In"}]}"#, "<error>"),
        (r#"{"matchExpressions":[{"key":"a","operator":"Exists","values":["1"]}]}"#, "<error>"),
        (r#"{"matchExpressions":[{"key":"a","operator":"Gt","values":["1"]}]}"#, "<error>"),
        (r#"{"matchLabels":{"a b":"1"}}"#, "<error>"),
    ] {
        assert_eq!(format_label_selector(Some(&labels(selector))), text, "{selector}");
    }
    assert_eq!(format_label_selector(None), "<none>");
    assert!(Selector::from_label_selector(None).unwrap().is_nothing());
    assert!(Selector::from_label_selector(Some(&Value::object())).unwrap().is_everything());
}

#[test]
fn errors_in_label_selectors_match_upstream() {
    for (selector, error) in [
        (
            r#"{"matchExpressions":[{"key":"a","operator":"Gt"}]}"#,
            r#""Gt" is not a valid label selector operator"#,
        ),
        (
            r#"{"matchExpressions":[{"key":"a","operator":"In"}]}"#,
            "values: Invalid value: null: for 'in', 'notin' operators, values set can't be empty",
        ),
        (
            r#"{"matchExpressions":[{"key":"a","operator":"Exists","values":["1","2"]}]}"#,
            r#"values: Invalid value: ["1","2"]: values set must be empty for exists and does not exist"#,
        ),
    ] {
        let found = Selector::from_label_selector(Some(&labels(selector))).unwrap_err();
        assert_eq!(found.to_string(), error);
    }
}

#[test]
fn a_map_selects_by_equality() {
    let map = labels(r#"{"b":"2","a":"1"}"#);
    assert_eq!(Selector::from_map(map.as_object()).to_string(), "a=1,b=2");
    assert!(Selector::from_map(None).is_everything());
}

#[test]
fn exact_match_returns_a_single_value() {
    let selector = Selector::parse("a=1,b in (2),c in (1,2),d!=1,e").unwrap();
    let found = ["a", "b", "c", "d", "e", "f"].map(|key| selector.exact_match(key));
    assert_eq!(found, [Some("1"), Some("2"), None, None, None, None]);
}

#[test]
fn length_is_bounded() {
    assert!(Selector::parse(&"a,".repeat(Selector::LENGTH_MAX)).is_err());
}

proptest! {
    #[test]
    fn formatted_text_parses_back(text in "(!?[ab]|[ab](=|==|!=)[a1]?|[ab] (not)?in \\([a1,]*\\)|a>1){1}(,(!?[ab]|[ab]!=1)){0,3}") {
        let selector = Selector::parse(&text).unwrap();
        prop_assert_eq!(Selector::parse(&selector.to_string()), Ok(selector));
    }

    #[test]
    fn arbitrary_text_does_not_panic(text in "([a=!,<>() é\0]|in|notin){0,20}") {
        if let Ok(selector) = Selector::parse(&text) {
            prop_assert_eq!(Selector::parse(&selector.to_string()), Ok(selector));
        }
    }
}
