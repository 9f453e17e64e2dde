use pintle_value::{Path, Value, json};

use super::{DETAIL_BYTES_MAX, ERRORS_MAX, Error, Errors, SHOWN_BYTES_MAX, aggregate, shown};

#[test]
fn errors_match_upstream() {
    let path = Path::new("a").field("b").index(0).key("k");
    let x = Value::from("x");
    for (error, reason, text) in [
        (Error::required(&path, ""), "FieldValueRequired", "Required value"),
        (Error::required(&path, "d"), "FieldValueRequired", "Required value: d"),
        (Error::invalid(&path, &x, "d"), "FieldValueInvalid", r#"Invalid value: "x": d"#),
        (Error::invalid(&path, &x, ""), "FieldValueInvalid", r#"Invalid value: "x""#),
        (Error::type_invalid(&path, &x, "d"), "FieldValueTypeInvalid", r#"Invalid value: "x": d"#),
        (Error::duplicate(&path, &x), "FieldValueDuplicate", r#"Duplicate value: "x""#),
        (Error::not_found(&path, &x), "FieldValueNotFound", r#"Not found: "x""#),
        (Error::forbidden(&path, "d"), "FieldValueForbidden", "Forbidden: d"),
        (
            Error::not_supported(&path, &x, &["a", "b"]),
            "FieldValueNotSupported",
            r#"Unsupported value: "x": supported values: "a", "b""#,
        ),
        (
            Error::not_supported(&path, &x, &[]),
            "FieldValueNotSupported",
            r#"Unsupported value: "x""#,
        ),
        (Error::too_long(&path, 1), "FieldValueTooLong", "Too long: may not be more than 1 byte"),
        (Error::too_long(&path, 2), "FieldValueTooLong", "Too long: may not be more than 2 bytes"),
        (
            Error::too_long_characters(&path, 2),
            "FieldValueTooLong",
            "Too long: may not be more than 2 characters",
        ),
        (
            Error::too_short(&path, 1),
            "FieldValueTooShort",
            "Too short: must be at least 1 character",
        ),
        (
            Error::too_many(&path, 3, 1),
            "FieldValueTooMany",
            "Too many: 3: must have at most 1 item",
        ),
        (Error::too_few(&path, 0, 2), "FieldValueTooFew", "Too few: 0: must have at least 2 items"),
        (Error::internal(&path, "d"), "InternalError", "Internal error: d"),
    ] {
        assert_eq!(error.to_string(), format!("a.b[0][k]: {text}"));
        assert_eq!((error.error_type.reason(), error.body().as_str()), (reason, text));
    }
}

#[test]
fn values_are_formatted_as_in_go() {
    for (value, text) in [
        ("null", "null"),
        ("true", "true"),
        ("-5", "-5"),
        ("1.5", "1.5"),
        ("1e30", "1e+30"),
        (r#""a\"b\n""#, r#""a\"b\n""#),
        (r#"["a",1,{"b":null}]"#, r#"["a",1,{"b":null}]"#),
        ("{}", "{}"),
    ] {
        assert_eq!(shown(&json::parse(value.as_bytes()).unwrap()), text);
    }
}

#[test]
fn the_number_of_errors_is_bounded() {
    let path = Path::new("spec");
    let error = |i: usize| Error::invalid(&path, &Value::from(format!("v{i}")), "no");
    let mut errors: Errors = (0..ERRORS_MAX).map(error).collect();
    assert!(!errors.is_full());
    assert!(aggregate(&errors).ends_with("\"v999\": no]"));
    errors.extend((0..50_000).map(error));
    assert!(errors.is_full());
    assert_eq!(errors.len(), ERRORS_MAX + 1);
    assert!(aggregate(&errors).ends_with("\"v999\": no, and more errors]"));
}

#[test]
fn the_length_of_errors_is_bounded() {
    let path = Path::root().key(&"k".repeat(100_000));
    let list: Vec<Value> = (0..100_000).map(|i| Value::from(format!("é{i}"))).collect();
    for value in [Value::from("é".repeat(100_000)), Value::from(list)] {
        let error = Error::invalid(&path, &value, "w".repeat(1_000_000));
        assert!(error.value.as_ref().is_some_and(|shown| shown.len() < 2 * SHOWN_BYTES_MAX));
        assert!(error.field.len() < 2 * SHOWN_BYTES_MAX && error.field.ends_with("..."));
        assert!(error.detail.len() < 2 * DETAIL_BYTES_MAX);
    }
}

#[test]
fn duplicate_messages_are_dropped() {
    let error = |text: &str| Error::invalid(&Path::new("a"), &Value::from(text), "no");
    let errors: Errors = ["x", "y", "x"].into_iter().map(error).collect();
    let expected = r#"[a: Invalid value: "x": no, a: Invalid value: "y": no]"#;
    assert_eq!(aggregate(&errors), expected);
}
