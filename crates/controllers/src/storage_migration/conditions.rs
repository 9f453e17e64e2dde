//! The conditions of a migration.

use pintle_value::{Map, Value};

/// Whether the object has the condition with status `True`.
pub(super) fn is_true(object: &Value, kind: &str) -> bool {
    find(object, kind).is_some_and(|condition| condition.str_at(&["status"]) == Some("True"))
}

/// Whether a migration succeeded or failed.
pub(super) fn is_terminal(migration: &Value) -> bool {
    is_true(migration, "Succeeded") || is_true(migration, "Failed")
}

/// The observed generation of a condition.
pub(super) fn observed(object: &Value, kind: &str) -> Option<i64> {
    find(object, kind)?.get("observedGeneration")?.as_int()
}

fn find<'v>(object: &'v Value, kind: &str) -> Option<&'v Value> {
    let conditions = object.at(&["status", "conditions"])?.as_array()?;
    conditions.iter().find(|condition| condition.str_at(&["type"]) == Some(kind))
}

/// Adds a condition with status `True`, unless the migration has one of this type.
pub(super) fn set(migration: &mut Value, kind: &str, (reason, words): (&str, &str), now: &str) {
    if find(migration, kind).is_some() {
        return;
    }
    push(migration, condition(kind, "True", (reason, words), now));
}

/// Sets the condition `Running` to `False`.
pub(super) fn complete(migration: &mut Value, generation: i64, now: &str) {
    let words = ("MigrationCompleted", "Migration completed");
    let mut complete = condition("Running", "False", words, now);
    complete.insert("observedGeneration", generation);
    let status = migration.object_entry("status");
    if let Some(Value::Array(conditions)) = status.get_mut("conditions") {
        let is_it = |c: &&mut Value| c.str_at(&["type"]) == Some("Running");
        if let Some(condition) = conditions.iter_mut().find(is_it) {
            *condition = Value::from(complete);
        }
    }
}

fn condition(kind: &str, status: &str, (reason, words): (&str, &str), now: &str) -> Map {
    let members = [
        ("type", kind),
        ("status", status),
        ("lastTransitionTime", now),
        ("reason", reason),
        ("message", words),
    ];
    members.into_iter().map(|(member, text)| (member.into(), Value::from(text))).collect()
}

fn push(migration: &mut Value, condition: Map) {
    let status = migration.object_entry("status");
    match status.get_mut("conditions") {
        Some(Value::Array(conditions)) => conditions.push(condition.into()),
        _ => _ = status.insert("conditions", vec![Value::from(condition)]),
    }
}
