use pintle_value::json;

use super::*;
use crate::structural::Structural;

fn value(text: &str) -> Value {
    json::parse(text.as_bytes()).unwrap_or_else(|error| panic!("{error}: {text}"))
}

fn errors(schema: &str, new: &str, old: Option<&str>) -> Vec<String> {
    let schema = Structural::read(&value(schema));
    let old = old.map(value);
    let errors = validate(&schema, &value(new), old.as_ref(), "");
    errors.iter().map(ToString::to_string).collect()
}

/// A schema whose objects have one member `x`.
fn of_x(schema: &str) -> String {
    format!(r#"{{"type":"object","properties":{{"x":{schema}}}}}"#)
}

#[test]
fn validation_errors_match_upstream() {
    for (schema, x, expected) in [
        (
            r#"{"type":"integer"}"#,
            r#""a""#,
            &[r#"x: Invalid value: "string": x in body must be of type integer: "string""#][..],
        ),
        (
            r#"{"type":"integer"}"#,
            "1.5",
            &[
                r#"x: Invalid value: "number": x in body must be of type integer: "number""#,
                r#"<nil>: Invalid value: "": Checked value must be of type integer (default format) in x"#,
            ],
        ),
        (
            r#"{"type":"string","format":"date"}"#,
            "1",
            &[r#"x: Invalid value: "int64": x in body must be of type date: "int64""#],
        ),
        (
            r#"{"type":"string","format":"date-time"}"#,
            "1.5",
            &[r#"x: Invalid value: "float64": x in body must be of type date-time: "float64""#],
        ),
        (
            r#"{"type":"string","format":"date"}"#,
            "true",
            &[r#"x: Invalid value: "": x in body must be of type date: """#],
        ),
        (r#"{"type":"string","format":"date"}"#, "[]", &[]),
        (
            r#"{"type":"string","format":"int32"}"#,
            "1",
            &[r#"x: Invalid value: "integer": x in body must be of type string: "integer""#],
        ),
        (
            r#"{"type":"integer","format":"int32"}"#,
            "{}",
            &[r#"x: Invalid value: "": x in body must be of type int32: """#],
        ),
        (
            r#"{"type":"integer","format":"int32"}"#,
            r#""a""#,
            &[r#"x: Invalid value: "string": x in body must be of type integer: "string""#],
        ),
        (
            r#"{"type":"number","anyOf":[{"format":"date"}]}"#,
            "1",
            &[
                r#"<nil>: Invalid value: "": "x" must validate at least one schema (anyOf)"#,
                r#"x: Invalid value: "int64": x in body must be of type date: "int64""#,
            ],
        ),
        (
            r#"{"type":"number","multipleOf":0.1}"#,
            "1e20",
            &["x: Invalid value: 1e+20: x in body should be a multiple of 0.1"],
        ),
        (
            r#"{"type":"integer"}"#,
            "null",
            &[r#"x: Invalid value: "null": x in body must be of type integer: "null""#],
        ),
        (r#"{"type":"integer","nullable":true}"#, "null", &[]),
        (r#"{"type":"number"}"#, "1", &[]),
        (
            r#"{"x-kubernetes-int-or-string":true}"#,
            "true",
            &[
                r#"x: Invalid value: "boolean": x in body must be of type integer,string: "boolean""#,
            ],
        ),
        (
            r#"{"type":"integer","maximum":10}"#,
            "11",
            &["x: Invalid value: 11: x in body should be less than or equal to 10"],
        ),
        (
            r#"{"type":"integer","maximum":10,"exclusiveMaximum":true}"#,
            "10",
            &["x: Invalid value: 10: x in body should be less than 10"],
        ),
        (
            r#"{"type":"integer","minimum":1}"#,
            "0",
            &["x: Invalid value: 0: x in body should be greater than or equal to 1"],
        ),
        (
            r#"{"type":"number","minimum":0.5}"#,
            "0.25",
            &["x: Invalid value: 0.25: x in body should be greater than or equal to 0.5"],
        ),
        (
            r#"{"type":"integer","multipleOf":3}"#,
            "4",
            &["x: Invalid value: 4: x in body should be a multiple of 3"],
        ),
        (r#"{"type":"number","multipleOf":0.1}"#, "0.3", &[]),
        (
            r#"{"type":"number","multipleOf":0.1}"#,
            "3",
            &["x: Invalid value: 0: factor MultipleOf declared for x must be positive: 0"],
        ),
        (r#"{"type":"number","minimum":1.5}"#, "1", &[]),
        (
            r#"{"type":"number","maximum":0.5}"#,
            "1",
            &["x: Invalid value: 1: x in body should be less than or equal to 0"],
        ),
        (
            r#"{"type":"integer","minimum":1.5}"#,
            "2",
            &[
                r#"<nil>: Invalid value: "": Minimum boundary value must be of type integer (default format) in x"#,
            ],
        ),
        (
            r#"{"type":"integer","minimum":1.5}"#,
            "1",
            &[
                r#"<nil>: Invalid value: "": Minimum boundary value must be of type integer (default format) in x"#,
                "x: Invalid value: 1: x in body should be greater than or equal to 1.5",
            ],
        ),
        (
            r#"{"type":"string","maxLength":2}"#,
            r#""abc""#,
            &["x: Too long: may not be more than 2 bytes"],
        ),
        (
            r#"{"type":"string","minLength":2}"#,
            r#""a""#,
            &[r#"x: Invalid value: "a": x in body should be at least 2 chars long"#],
        ),
        (
            r#"{"type":"string","pattern":"^a+$"}"#,
            r#""b""#,
            &[r#"x: Invalid value: "b": x in body should match '^a+$'"#],
        ),
        (
            r#"{"type":"string","enum":["a","b"]}"#,
            r#""c""#,
            &[r#"x: Unsupported value: "c": supported values: "a", "b""#],
        ),
        (
            r#"{"type":"string","format":"ipv4"}"#,
            r#""x""#,
            &[r#"x: Invalid value: "x": x in body must be of type ipv4: "x""#],
        ),
        (r#"{"type":"string","format":"unheard-of"}"#, r#""x""#, &[]),
        (
            r#"{"type":"integer","format":"int32"}"#,
            "3000000000",
            &[
                r#"<nil>: Invalid value: "": Checked value must be of type integer with format int32 in x"#,
            ],
        ),
        (
            r#"{"type":"array","items":{"type":"string"},"maxItems":1}"#,
            r#"["a","b"]"#,
            &["x: Too many: 2: must have at most 1 item"],
        ),
        (
            r#"{"type":"array","items":{"type":"string"},"minItems":1}"#,
            "[]",
            &["x: Invalid value: 0: x in body should have at least 1 items"],
        ),
        (
            r#"{"type":"array","items":{"type":"string"}}"#,
            "[1]",
            &[r#"x[0]: Invalid value: "integer": x[0] in body must be of type string: "integer""#],
        ),
        (
            r#"{"type":"object","required":["a"],"properties":{"a":{"type":"string"}}}"#,
            "{}",
            &["x.a: Required value"],
        ),
        (
            r#"{"type":"object","maxProperties":1,"additionalProperties":{"type":"string"}}"#,
            r#"{"a":"","b":""}"#,
            &["x: Too many: 2: must have at most 1 item"],
        ),
        (
            r#"{"type":"object","additionalProperties":{"type":"string"}}"#,
            r#"{"a":1}"#,
            &[r#"x.a: Invalid value: "integer": x.a in body must be of type string: "integer""#],
        ),
        (
            r#"{"type":"integer","not":{"enum":[3]}}"#,
            "3",
            &[r#"<nil>: Invalid value: "": "x" must not validate the schema (not)"#],
        ),
        (
            r#"{"type":"integer","anyOf":[{"minimum":5},{"maximum":1}]}"#,
            "3",
            &[
                r#"<nil>: Invalid value: "": "x" must validate at least one schema (anyOf)"#,
                "x: Invalid value: 3: x in body should be greater than or equal to 5",
            ],
        ),
        (
            r#"{"type":"integer","oneOf":[{"minimum":1},{"minimum":2}]}"#,
            "3",
            &[
                r#"<nil>: Invalid value: "": "x" must validate one and only one schema (oneOf). Found 2 valid alternatives"#,
            ],
        ),
        (
            r#"{"type":"integer","allOf":[{"minimum":5},{"maximum":9}]}"#,
            "3",
            &[
                "x: Invalid value: 3: x in body should be greater than or equal to 5",
                r#"<nil>: Invalid value: "": "x" must validate all the schemas (allOf)"#,
            ],
        ),
    ] {
        let object = format!(r#"{{"x":{x}}}"#);
        assert_eq!(errors(&of_x(schema), &object, None), expected, "{schema} {x}");
    }
}

#[test]
fn unchanged_parts_are_ratcheted() {
    let schema = r#"{"type":"object","properties":{
        "a":{"type":"integer","maximum":1},"b":{"type":"string"},
        "set":{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["k"],
            "items":{"type":"object","properties":{"k":{"type":"string"},"v":{"type":"integer","maximum":1}}}},
        "list":{"type":"array","items":{"type":"integer","maximum":1}}}}"#;
    for (old, new, count) in [
        (r#"{"a":5}"#, r#"{"a":5,"b":"x"}"#, 0),
        (r#"{"a":5}"#, r#"{"a":6}"#, 1),
        (r#"{"set":[{"k":"a","v":5}]}"#, r#"{"set":[{"k":"b","v":1},{"k":"a","v":5}]}"#, 0),
        (r#"{"set":[{"k":"a","v":5}]}"#, r#"{"set":[{"k":"b","v":5}]}"#, 1),
        (r#"{"list":[5]}"#, r#"{"list":[5],"b":"x"}"#, 0),
        (r#"{"list":[5]}"#, r#"{"list":[5,1]}"#, 1),
    ] {
        assert_eq!(errors(schema, new, Some(old)).len(), count, "{old} {new}");
    }
}

#[test]
fn duplicate_items_are_reported_once() {
    let check = |schema: &str, x: &str| {
        let schema = Structural::read(&value(&of_x(schema)));
        let object = value(&format!(r#"{{"x":{x}}}"#));
        let errors = lists::duplicates(&schema, &object);
        errors.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    let set = r#"{"type":"array","x-kubernetes-list-type":"set","items":{"type":"string"}}"#;
    assert_eq!(check(set, r#"["a","b","a","a"]"#), [r#"x[2]: Duplicate value: "a""#]);
    let map = r#"{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["k"],
        "items":{"type":"object","properties":{"k":{"type":"string"}}}}"#;
    assert_eq!(check(map, r#"[{"k":"a"},{"k":"a"}]"#), [r#"x[1]: Duplicate value: {"k":"a"}"#]);
    let wrong = "x[0]: Invalid value: 1: must be an object for an array of list-type map";
    assert_eq!(check(map, "[1]"), [wrong]);
}

#[test]
fn embedded_objects_need_type_metadata() {
    let schema = r#"{"type":"object","x-kubernetes-embedded-resource":true,
        "x-kubernetes-preserve-unknown-fields":true}"#;
    let schema = Structural::read(&value(&of_x(schema)));
    let check = |x: &str| {
        let object = value(&format!(r#"{{"x":{x}}}"#));
        let errors = embedded::validate(&schema, &object, &Path::root());
        errors.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    assert_eq!(check("{}"), ["x.apiVersion: Required value", "x.kind: Required value"]);
    assert_eq!(check(r#"{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"}}"#), [""; 0]);
    let wrong = check(r#"{"apiVersion":"a/b/c","kind":"","metadata":{"name":".."}}"#);
    assert_eq!(wrong.len(), 3, "{wrong:?}");
}

/// Each error below a long key would copy the key: here 500 GB.
#[test]
fn many_errors_below_a_long_key_take_little_time() {
    let begin = std::time::Instant::now();
    let long = "k".repeat(1_000_000);
    let items = |item: &str| vec![item; 250_000].join(",");
    let map = |schema: &str| format!(r#"{{"type":"object","additionalProperties":{schema}}}"#);
    let list = |schema: &str| map(&format!(r#"{{"type":"array","items":{schema}}}"#));
    let text = r#"{"type":"string"}"#;
    for (schema, item, count) in [
        (list(text), "1", 1001),
        (list(r#"{"type":"integer","maximum":0}"#), "1", 1001),
        (list(r#"{"type":"object","required":["a"]}"#), "{}", 1001),
        (list(r#"{"type":"object","additionalProperties":false}"#), r#"{"a":1}"#, 1001),
        (list(r#"{"type":"integer","anyOf":[{"minimum":5},{"maximum":4}]}"#), "1", 0),
        (list(r#"{"type":"integer","anyOf":[{"minimum":5},{"minimum":6}]}"#), "1", 1001),
    ] {
        let object = value(&format!(r#"{{"{long}":[{}]}}"#, items(item)));
        let schema = Structural::read(&value(&schema));
        let errors = validate(&schema, &object, None, "");
        assert_eq!(errors.len(), count);
        assert!(errors.iter().all(|error| error.field.len() < 5000));
        let embedded = embedded::validate(&schema, &object, &Path::root());
        assert_eq!((embedded.len(), lists::duplicates(&schema, &object).len()), (0, 0));
    }
    assert!(begin.elapsed() < std::time::Duration::from_secs(120), "{:?}", begin.elapsed());
}

/// A schema may have many alternatives, and an object many values.
#[test]
fn too_many_attempts_are_refused() {
    let alternatives = |count: usize| {
        let one = |n| format!(r#"{{"maxLength":{n}}}"#);
        (0..count).map(one).collect::<Vec<_>>().join(",")
    };
    let items = |count: usize, text: &str| format!("[{}]", vec![text; count].join(","));
    let many =
        "<nil>: Forbidden: the schemas of anyOf, oneOf, allOf and not apply to too many values";
    for (operator, schemas, count, text, is_refused) in [
        ("allOf", 1000, 100, r#""""#, false),
        ("allOf", 3000, 1500, r#""""#, true),
        ("anyOf", 3000, 1500, r#""""#, false), // the first one is valid
        ("oneOf", 3000, 1500, r#""""#, false), // there are too many other errors
        ("oneOf", 3000, 1, &*format!("{:?}", "a".repeat(200_000)), true),
    ] {
        let schema = of_x(&format!(
            r#"{{"type":"array","items":{{"type":"string","{operator}":[{}]}}}}"#,
            alternatives(schemas)
        ));
        let object = format!(r#"{{"x":{}}}"#, items(count, text));
        let found = errors(&schema, &object, None);
        assert_eq!(
            found == [many],
            is_refused,
            "{operator} of {schemas} for {count}: {:?}",
            found.first()
        );
    }
}

#[test]
fn a_value_is_found_among_many_choices() {
    let choices: Vec<String> = (0..40_000).rev().map(|n| n.to_string()).collect();
    let choices = choices.join(",");
    let schema =
        of_x(&format!(r#"{{"type":"array","items":{{"type":"number","enum":[{choices}]}}}}"#));
    assert!(errors(&schema, &format!(r#"{{"x":[{choices}]}}"#), None).is_empty());
    assert!(errors(&schema, r#"{"x":[7.0]}"#, None).is_empty());
    assert_eq!(errors(&schema, r#"{"x":[7.5]}"#, None).len(), 1);
}
