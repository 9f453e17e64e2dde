//! Upstream's cases, and properties that hold for any patch.

mod schema;

use pintle_value::{Value, json};

use super::apply;
use schema::schema;

/// What becomes of `original`, as JSON, or the error.
fn outcome(ty: &str, original: &Value, patch: &[u8]) -> Result<String, String> {
    let schema = schema();
    let ty = schema.find(ty).expect("the row names a type of the schema");
    let patched = apply(&schema, ty, original, patch).map_err(|e| e.to_string())?;
    Ok(json::to_string(&patched.value))
}

/// The cases of upstream's own tests of `strategicpatch`, each with what upstream makes of it.
#[test]
fn agrees_with_upstream() {
    let rows = include_str!("../../testdata/strategic_merge.jsonl");
    let mut failures = Vec::new();
    for row in rows.lines() {
        let row = json::parse(row.as_bytes()).expect("rows are JSON");
        let text = |member: &str| row.get(member).and_then(Value::as_str).unwrap_or_default();
        let (original, patch) = (row.get("original").unwrap(), row.get("patch").unwrap());
        let expected = match row.get("result") {
            Some(result) => Ok(json::to_string(result)),
            None => Err(text("error").to_owned()),
        };
        let patch = json::to_string(patch);
        let found = outcome(text("type"), original, patch.as_bytes());
        if found != expected {
            let original = json::to_string(original);
            failures.push(format!("{original}\n  {patch}\n  {found:?}\n  {expected:?}"));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}
