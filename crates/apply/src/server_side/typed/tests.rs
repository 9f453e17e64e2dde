//! Upstream's cases of walking objects.

use pintle_value::{Value, json};

use super::{
    Typing, check, compare, extract, field_set, merge, reconcile, remove, with_named_fields,
};
use crate::server_side::fieldset::FieldSet;
use crate::server_side::tests::{report, schemas};

/// The result of a row and the expected one, both as text.
fn outcome(row: &Value, ty: Typing<'_>) -> (String, String) {
    let value = |member: &str| row.get(member).unwrap_or(&Value::Null);
    let text = |member: &str| value(member).as_str().unwrap_or("{}").to_owned();
    let set = |member: &str| FieldSet::from_json(&text(member)).expect("a set is FieldsV1");
    let show = |value: &Value| json::to_string(value);
    match text("do").as_str() {
        "set" => (field_set(ty, value("object")).to_json(), text("set")),
        "compare" => {
            let change = compare(ty, value("old"), value("new"));
            let found = [change.added, change.modified, change.removed].map(|set| set.to_json());
            let expected = ["added", "modified", "removed"].map(text);
            (found.join(" "), expected.join(" "))
        }
        "merge" => {
            let mut merged = value("live").clone();
            let outcome = merge(ty, &mut merged, value("applied"));
            (outcome.map_or_else(|e| e.to_string(), |_| show(&merged)), show(value("result")))
        }
        "remove" => {
            let mut object = value("object").clone();
            remove(ty, &mut object, &set("set"));
            (show(&object), show(value("result")))
        }
        "extract" => (show(&extract(ty, value("object"), &set("set"))), show(value("result"))),
        "reconcile" => {
            let mut fields = set("set");
            reconcile(ty, &mut fields);
            (fields.to_json(), text("result"))
        }
        "named" => {
            let fields = with_named_fields(set("set"), ty);
            (fields.to_json(), set("result").to_json())
        }
        "check" => {
            let duplicates = value("duplicates").as_bool().unwrap_or_default();
            let outcome = check(ty, value("object"), duplicates);
            let expected = value("error").as_str().unwrap_or("fits");
            (outcome.map_or_else(|e| e.to_string(), |_| "fits".to_owned()), expected.to_owned())
        }
        other => panic!("nothing does {other}"),
    }
}

/// Members that are added do not shift those behind them one by one.
#[test]
fn many_members_are_added_in_linear_time() {
    let names = |prefix: &str| -> Value {
        let members = (0..150_000).map(|i| (format!("{prefix}{i:06}").into(), "".into()));
        pintle_value::Map::from_sorted(members.collect()).into()
    };
    let schema = pintle_schema::builtin();
    let map = schema.find("io.k8s.api.core.v1.ConfigMap").expect("a built-in type");
    let object = |data: Value| Value::from([("data", data)]);
    let (mut live, applied) = (object(names("b")), object(names("a")));
    let began = std::time::Instant::now();
    merge(Typing::new(schema, map), &mut live, &applied).expect("merged");
    assert_eq!(live.at(&["data"]).and_then(Value::as_object).map(|data| data.len()), Some(300_000));
    assert!(began.elapsed().as_secs() < 10, "{:?}", began.elapsed());
}

#[test]
fn matches_upstream() {
    let (schemas, rows) = schemas::cases(include_str!("../../../testdata/server_side/typed.yaml"));
    let mut failures = Vec::new();
    for row in &rows {
        let text = |member: &str| row.get(member).and_then(Value::as_str).unwrap_or_default();
        let (schema, ty) = schemas::with_type(&schemas[text("schema")], text("type"));
        let (found, expected) = outcome(row, Typing::new(&schema, ty));
        if found != expected {
            failures.push(format!("{}\n  {found}\n  {expected}", json::to_string(row)));
        }
    }
    report(&failures);
}
