//! Tests of all patch types, and rows of upstream's results.

use std::collections::BTreeMap;

use pintle_schema::{Schema, TypeId, builtin};
use pintle_value::{DEPTH_MAX, Map, Str, Value, json};
use proptest::prelude::*;

use crate::{Error, PatchType, apply, shown};

/// Checks rows of `{"original": …, "patch": …}` with the expected `result`, or an `error` where
/// upstream rejects the patch.
pub(crate) fn check_rows(rows: &str, outcome: impl Fn(&Value, &[u8]) -> Result<Value, Error>) {
    let mut failures = Vec::new();
    for line in rows.lines() {
        let row = json::parse(line.as_bytes()).expect("rows are JSON");
        let [original, patch] = ["original", "patch"].map(|m| row.get(m).expect("rows have both"));
        let expected = match row.get("result") {
            Some(result) => Ok(result.clone()),
            None => Err(row.str_at(&["error"]).expect("rows have an outcome").to_owned()),
        };
        let found = outcome(original, json::to_string(patch).as_bytes());
        let found = found.map_err(|e| e.to_string());
        if found != expected {
            let found = found.map(|value| json::to_string(&value));
            failures.push(format!("{line}\n  found {found:?}"));
        }
    }
    assert!(failures.is_empty(), "\n{}", failures.join("\n"));
}

fn pod() -> (&'static Schema, TypeId) {
    let ty = builtin().find("io.k8s.api.core.v1.Pod").expect("the table has pods");
    (builtin(), ty)
}

fn patched(patch_type: PatchType, current: &Value, patch: &[u8]) -> Result<Value, Error> {
    let (schema, ty) = pod();
    apply(patch_type, schema, ty, current, patch).map(|patched| patched.value)
}

#[test]
fn json_patches_match_upstream() {
    let rows = include_str!("../testdata/json_patch.jsonl");
    check_rows(rows, |original, patch| patched(PatchType::Json, original, patch));
}

#[test]
fn merge_patches_match_upstream() {
    let rows = include_str!("../testdata/merge_patch.jsonl");
    check_rows(rows, |original, patch| patched(PatchType::Merge, original, patch));
}

#[test]
fn untouched_parts_are_shown_as_they_were() {
    use PatchType::{Json, Merge};
    let rows = [
        (
            Merge,
            r#"{"z":{"y":1,"x":{"d":1,"c":2}},"a":[{"q":1,"p":null}]}"#,
            r#"{"z": {"y": null}, "b": {"n": null, "m": [null, {"k": null, "j": 1}]}}"#,
            r#"{"a":[{"q":1,"p":null}],"b":{"m":[null,{"j":1}]},"z":{"x":{"d":1,"c":2}}}"#,
        ),
        (
            Merge,
            r#"{"z":{"y":1,"x":null}}"#,
            r#"{"z":{"x":{"b":null,"a":"<"}}}"#,
            r#"{"z":{"x":{"a":"\u003c"},"y":1}}"#,
        ),
        (
            Merge,
            r#"{"z":{"y":1}}"#,
            r#"{"z":[{"b":null,"a":1.0}]}"#,
            r#"{"z":[{"b":null,"a":1.0}]}"#,
        ),
        (
            Json,
            r#"{"z":{"y":1,"x":{"d":1,"c":2}},"a":[{"q":1,"p":null}]}"#,
            r#"[{"op":"add","path":"/a/-","value":{"f":1.5,"e":null,"d": "A&"}}]"#,
            r#"{"a":[{"q":1,"p":null},{"f":1.5,"e":null,"d":"A\u0026"}],"z":{"y":1,"x":{"d":1,"c":2}}}"#,
        ),
        (
            Json,
            r#"{"z":{"y":1,"x":{"d":1,"c":2}}}"#,
            r#"[{"op":"test","path":"/z","value":{"x":{"c":2,"d":1},"y":1}}]"#,
            r#"{"z":{"x":{"c":2,"d":1},"y":1}}"#,
        ),
        (
            Json,
            r#"{"z":{"y":1,"x":{"d":1,"c":2}}}"#,
            r#"[{"op":"copy","from":"/z/x","path":"/z/w"},{"op":"replace","path":"/z/x/d","value":2}]"#,
            r#"{"z":{"w":{"d":1,"c":2},"x":{"c":2,"d":2},"y":1}}"#,
        ),
        (
            Json,
            r#"{"z":{"y":1,"x":{"d":1,"c":2}}}"#,
            r#"[{"op":"remove","path":"/z/y"},{"op":"move","from":"/z/x","path":"/x"}]"#,
            r#"{"x":{"d":1,"c":2},"z":{}}"#,
        ),
    ];
    for (patch_type, current, patch, expected) in rows {
        let found = shown(patch_type, current.as_bytes(), patch.as_bytes());
        assert_eq!(found.as_deref(), Some(expected), "{patch}");
    }
}

/// Each level of the path would copy a megabyte.
#[test]
fn a_long_and_deep_object_is_not_shown_as_it_was_written() {
    let (depth, list) = (450, "{\"b\":1.0},".repeat(100_000));
    let chain = format!("{}[{}0]{}", "{\"a\":".repeat(depth), list, "}".repeat(depth));
    let operations = format!(
        r#"[{{"op":"add","path":"/x","value":{chain}}},{{"op":"add","path":"/x{}/c","value":1}}]"#,
        "/a".repeat(depth - 1)
    );
    let found = shown(PatchType::Json, b"{}", operations.as_bytes()).expect("it applies");
    assert!(
        found.contains(r#"{"b":1}"#)
            && found.ends_with(&format!(",\"c\":1{}", "}".repeat(depth + 1)))
    );
}

#[test]
fn malformed_patches_are_rejected() {
    use PatchType::{Json, Merge, StrategicMerge};
    const MAP: &str = "into Go value of type map[string]interface {}";
    let decoding = |why: &str| format!("error decoding patch: {why}");
    for (patch_type, body, message) in [
        (Json, "", decoding("unexpected end of JSON input")),
        (
            Json,
            "[{\"op\":\"a\"},]",
            decoding("invalid character ']' looking for beginning of value"),
        ),
        (
            Json,
            "{}",
            decoding("json: cannot unmarshal object into Go value of type []handlers.jsonPatchOp"),
        ),
        (
            Json,
            "[1]",
            decoding("json: cannot unmarshal number into Go value of type handlers.jsonPatchOp"),
        ),
        (
            Json,
            r#"[{"op":"add","path":[]}]"#,
            decoding(
                "json: cannot unmarshal array into Go struct field jsonPatchOp.path of type string",
            ),
        ),
        (Merge, "{\"a\":}", decoding("invalid character '}' looking for beginning of value")),
        (Merge, "[]", decoding(&format!("json: cannot unmarshal array {MAP}"))),
        (Merge, "null", "Invalid JSON Patch".to_owned()),
        (StrategicMerge, "{", "unexpected end of JSON input".to_owned()),
        (StrategicMerge, "1", format!("json: cannot unmarshal number {MAP}")),
        (
            StrategicMerge,
            r#"{"$deleteFromPrimitiveList":[]}"#,
            "invalid patch format of primitive list".to_owned(),
        ),
        (
            StrategicMerge,
            r#"{"$setElementOrder":[]}"#,
            "invalid patch format of setElementOrder list".to_owned(),
        ),
        (StrategicMerge, r#"{"$retainKeys":1}"#, "invalid patch format of retainKeys".to_owned()),
    ] {
        let error = patched(patch_type, &Value::object(), body.as_bytes()).unwrap_err();
        assert_eq!((error.to_string(), error.status().code), (message, 400), "{body}");
    }
    assert_eq!(patched(Json, &Value::object(), b"null"), Ok(Value::object()));
    assert_eq!(patched(StrategicMerge, &Value::object(), b"null"), Ok(Value::object()));
}

#[test]
fn errors_map_to_upstream_statuses() {
    let add = r#"{"op":"add","path":"/a","value":1}"#;
    let operations = |count: usize| format!("[{}]", vec![add; count].join(","));
    let unordered = r#"{"spec":{"containers":[{"image":"x"}]}}"#;
    for (patch_type, body, code, message) in [
        (
            PatchType::Json,
            operations(10_001).as_str(),
            413,
            "Request entity too large: The allowed maximum operations in a JSON patch is 10000, \
             got 10001",
        ),
        (
            PatchType::Json,
            r#"[{"op":"remove","path":"/x"}]"#,
            422,
            "the server rejected our request due to an error in our request",
        ),
        (
            PatchType::StrategicMerge,
            unordered,
            500,
            "map: map[image:x] does not contain declared merge key: name",
        ),
    ] {
        let current = Value::from([("spec", Value::from([("containers", vec![Value::object()])]))]);
        let status = patched(patch_type, &current, body.as_bytes()).unwrap_err().status();
        assert_eq!((status.code, status.message.as_str()), (code, message));
    }
    assert!(patched(PatchType::Json, &Value::object(), operations(10_000).as_bytes()).is_ok());
}

#[test]
fn duplicate_members_are_reported() {
    for (patch_type, body, problems) in [
        (
            PatchType::Merge,
            r#"{"a":{"b":1,"b":2},"a":{"b":3,"b":4},"l":[0,{"c":1,"c":2}]}"#,
            vec![
                r#"duplicate field "a.b""#,
                r#"duplicate field "a""#,
                r#"duplicate field "l[1].c""#,
            ],
        ),
        (PatchType::StrategicMerge, r#"{"a":1,"a":2}"#, vec![r#"duplicate field "a""#]),
        (
            PatchType::Json,
            r#"[{"op":"test","op":"add","path":"/a","value":{"b":1,"b":2},"x":{"y":1,"y":1}}]"#,
            vec![
                r#"json patch unknown field "[0].x""#,
                r#"json patch duplicate field "[0].op""#,
                r#"json patch duplicate field "[0].value.b""#,
            ],
        ),
    ] {
        let (schema, ty) = pod();
        let patched = apply(patch_type, schema, ty, &Value::object(), body.as_bytes()).unwrap();
        assert_eq!(patched.problems, problems, "{body}");
    }
}

#[test]
fn copied_bytes_are_bounded() {
    // Each copy counts the whole value, although the second and third replace the first.
    let current = Value::from([("a", "x".repeat(1 << 20))]);
    let copy = r#"{"op":"copy","from":"/a","path":"/b"}"#;
    let patch = |count: usize| format!("[{}]", vec![copy; count].join(","));
    assert!(patched(PatchType::Json, &current, patch(2).as_bytes()).is_ok());
    let error = patched(PatchType::Json, &current, patch(3).as_bytes()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "Unable to complete the copy, the accumulated size increase of copy is 3145734, exceeding \
         the limit 3145728"
    );
}

#[test]
fn patched_depth_is_bounded() {
    let nested = |depth: usize| format!("{}1{}", r#"{"a":"#.repeat(depth), "}".repeat(depth));
    let value = nested(DEPTH_MAX - 2);
    let add = format!(r#"[{{"op":"add","path":"/a","value":{value}}}]"#);
    let deep = patched(PatchType::Json, &Value::object(), add.as_bytes()).unwrap();
    // One level more is allowed, two are not; nor is a deep copy into itself.
    let step = |path: &str| format!(r#"[{{"op":"add","path":"{path}","value":{value}}}]"#);
    let base = Value::from([("b", Value::from([("c", Value::object())]))]);
    assert!(patched(PatchType::Json, &base, step("/b/x").as_bytes()).is_ok());
    let error = patched(PatchType::Json, &base, step("/b/c/x").as_bytes()).unwrap_err();
    assert_eq!(error.to_string(), "exceeded max depth");
    let copy = br#"[{"op":"copy","from":"/a","path":"/a/a/a"}]"#;
    assert!(patched(PatchType::Json, &deep, copy).is_err());
    // Many moves to deeper locations that do not make the document deeper.
    let moves: Vec<_> = (0..2000)
        .map(|_| {
            r#"{"op":"move","from":"/s","path":"/b/c/s"},{"op":"move","from":"/b/c/s","path":"/s"}"#
        })
        .collect();
    let current = Value::from([("s", Value::from(1)), ("b", base.get("b").unwrap().clone())]);
    let moves = format!("[{}]", moves.join(","));
    assert_eq!(patched(PatchType::Json, &current, moves.as_bytes()), Ok(current));
}

fn scalar() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::Bool),
        (0..3_i64).prop_map(Value::Int),
        "[xy~/]{0,2}".prop_map(Value::from),
    ]
}

fn members<S: Strategy<Value = Value>>(value: S) -> impl Strategy<Value = Value> {
    let members = prop::collection::btree_map("[abc~/]{1,2}|[012]", value, 0..4);
    members.prop_map(|members: BTreeMap<String, Value>| {
        let members = members.into_iter().map(|(key, value)| (Str::from(key), value));
        Value::Object(members.collect::<Map>())
    })
}

fn tree() -> impl Strategy<Value = Value> {
    scalar().prop_recursive(3, 20, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::Array),
            members(inner),
        ]
    })
}

fn object() -> impl Strategy<Value = Value> {
    members(tree())
}

/// RFC 7386, section 2, literally. Upstream differs for patches with lists.
fn merged(target: Value, patch: &Value) -> Value {
    let Value::Object(patch) = patch else {
        return patch.clone();
    };
    let mut target = if let Value::Object(target) = target { target } else { Map::new() };
    for (key, value) in patch.iter() {
        if value.is_null() {
            target.remove(key);
        } else {
            let current = target.remove(key).unwrap_or_default();
            target.insert(key.clone(), merged(current, value));
        }
    }
    Value::Object(target)
}

fn has_list(value: &Value) -> bool {
    match value {
        Value::Array(_) => true,
        Value::Object(members) => members.values().any(has_list),
        _ => false,
    }
}

/// The operations that turn `a` into `b`, without optimization.
fn diff(a: &Value, b: &Value, path: &str, operations: &mut Vec<String>) {
    let escaped = |key: &str| key.replace('~', "~0").replace('/', "~1");
    let quoted = |text: &str| json::to_string(&Value::from(text));
    match (a, b) {
        (Value::Object(a), Value::Object(b)) => {
            for key in a.keys().filter(|key| !b.contains_key(key)) {
                let path = quoted(&format!("{path}/{}", escaped(key)));
                operations.push(format!(r#"{{"op":"remove","path":{path}}}"#));
            }
            for (key, value) in b.iter() {
                let path = format!("{path}/{}", escaped(key));
                match a.get(key) {
                    Some(old) => diff(old, value, &path, operations),
                    None => {
                        let (path, value) = (quoted(&path), json::to_string(value));
                        operations.push(format!(r#"{{"op":"add","path":{path},"value":{value}}}"#));
                    }
                }
            }
        }
        (Value::Array(a), Value::Array(b)) => {
            let at = |i: usize| quoted(&format!("{path}/{i}"));
            for i in (b.len()..a.len()).rev() {
                operations.push(format!(r#"{{"op":"remove","path":{}}}"#, at(i)));
            }
            for (i, (old, new)) in a.iter().zip(b).enumerate() {
                diff(old, new, &format!("{path}/{i}"), operations);
            }
            for (i, new) in b.iter().enumerate().skip(a.len()) {
                let new = json::to_string(new);
                operations.push(format!(r#"{{"op":"add","path":{},"value":{new}}}"#, at(i)));
            }
        }
        (a, b) if a == b => {
            let (path, value) = (quoted(path), json::to_string(a));
            operations.push(format!(r#"{{"op":"test","path":{path},"value":{value}}}"#));
        }
        (_, b) => {
            let (path, value) = (quoted(path), json::to_string(b));
            operations.push(format!(r#"{{"op":"replace","path":{path},"value":{value}}}"#));
        }
    }
}

proptest! {
    #[test]
    fn merge_patches_agree_with_the_rfc(current in object(), patch in object()) {
        prop_assume!(!has_list(&patch)); // upstream differs here; see the rows
        let expected = merged(current.clone(), &patch);
        let found = patched(PatchType::Merge, &current, json::to_string(&patch).as_bytes());
        prop_assert_eq!(found, Ok(expected));
    }

    #[test]
    fn applying_a_diff_of_two_objects_yields_the_second(a in object(), b in object()) {
        let mut operations = Vec::new();
        diff(&a, &b, "", &mut operations);
        let patch = format!("[{}]", operations.join(","));
        prop_assert_eq!(patched(PatchType::Json, &a, patch.as_bytes()), Ok(b), "{}", patch);
    }

    #[test]
    fn empty_patches_change_nothing(current in object()) {
        for (patch_type, patch) in [
            (PatchType::Json, "[]"),
            (PatchType::Merge, "{}"),
            (PatchType::StrategicMerge, "{}"),
        ] {
            prop_assert_eq!(patched(patch_type, &current, patch.as_bytes()), Ok(current.clone()));
        }
    }

    #[test]
    fn arbitrary_bytes_do_not_panic(bytes in prop::collection::vec(any::<u8>(), 0..80)) {
        crate::fuzz(&bytes);
    }

    #[test]
    fn arbitrary_operations_do_not_panic(
        current in object(),
        operations in prop::collection::vec(
            (
                "add|remove|replace|move|copy|test",
                "(/[abc~]?[01-]?){0,4}",
                "(/[abc~]?[01-]?){0,4}",
                tree(),
            ),
            0..6,
        )
    ) {
        let quoted = |text: &str| json::to_string(&Value::from(text));
        let operations: Vec<_> = operations.iter().map(|(op, path, from, value)| {
            let (path, from, value) = (quoted(path), quoted(from), json::to_string(value));
            format!(r#"{{"op":"{op}","path":{path},"from":{from},"value":{value}}}"#)
        }).collect();
        let _ = patched(PatchType::Json, &current, format!("[{}]", operations.join(",")).as_bytes());
    }
}

#[test]
fn a_json_patch_shifts_a_bounded_number_of_items() {
    // OAS-11: each removal of the first item shifts all others.
    let patch = |path: &str| {
        let items: Vec<Value> = vec![Value::from(0); 20_000];
        let filled = Value::from([
            ("op", Value::from("add")),
            ("path", "/x".into()),
            ("value", items.into()),
        ]);
        let removal = Value::from([("op", "remove"), ("path", path)]);
        let all: Vec<Value> = std::iter::once(filled).chain(vec![removal; 9_000]).collect();
        json::to_string(&Value::from(all))
    };
    let schema = pintle_schema::builtin();
    let ty = schema.find("io.k8s.api.core.v1.Pod").expect("pods are built in");
    let outcome = |path: &str| {
        let patch = patch(path);
        crate::apply(crate::PatchType::Json, schema, ty, &Value::object(), patch.as_bytes())
    };
    assert!(outcome("/x/-1").is_ok());
    let error = outcome("/x/0").map(|patched| patched.problems).unwrap_err().to_string();
    assert!(error.contains("move more than 67108864 items"), "{error}");
}
