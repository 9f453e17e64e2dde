//! Reads members of an object along a path; an absent member has its zero value.

use pintle_meta::time;
use pintle_registry::table::UnixSeconds;
use pintle_value::Value;

/// The value at a path of members with dots between; `null` is absent.
pub(super) fn at<'a>(value: &'a Value, path: &str) -> Option<&'a Value> {
    path.split('.').try_fold(value, |node, key| node.get(key)).filter(|found| !found.is_null())
}

/// True if the object has a value at a path.
pub(super) fn has(value: &Value, path: &str) -> bool {
    at(value, path).is_some()
}

/// The string at a path, or `""`.
pub(super) fn str_at<'a>(value: &'a Value, path: &str) -> &'a str {
    at(value, path).and_then(Value::as_str).unwrap_or_default()
}

/// The integer at a path, or 0.
pub(super) fn int_at(value: &Value, path: &str) -> i64 {
    at(value, path).and_then(Value::as_int).unwrap_or_default()
}

/// The boolean at a path.
pub(super) fn bool_at(value: &Value, path: &str) -> Option<bool> {
    at(value, path).and_then(Value::as_bool)
}

/// The items of the list at a path, or none.
pub(super) fn items_at<'a>(value: &'a Value, path: &str) -> &'a [Value] {
    at(value, path).and_then(Value::as_array).unwrap_or_default()
}

/// The number of items in the list or map at a path.
pub(super) fn count_at(value: &Value, path: &str) -> i64 {
    let count = match at(value, path) {
        Some(Value::Array(items)) => items.len(),
        Some(Value::Object(members)) => members.len(),
        _ => 0,
    };
    count as i64
}

/// Go's zero time, 0001-01-01T00:00:00Z: no time at all.
pub(super) const ZERO_TIME: UnixSeconds = -62_135_596_800;

/// The time at a path, without fractions of a second; `None` if it is absent or the zero time.
pub(super) fn time_at(value: &Value, path: &str) -> Option<UnixSeconds> {
    let micros = time::parse(str_at(value, path)).ok()?;
    Some(micros.div_euclid(time::SECOND)).filter(|&seconds| seconds != ZERO_TIME)
}

/// The value of an annotation, whose key may have dots in it.
pub(super) fn annotation<'a>(object: &'a Value, key: &str) -> Option<&'a str> {
    object.str_at(&["metadata", "annotations", key])
}

/// Whether the object is being deleted.
pub(super) fn deleting(object: &Value) -> bool {
    has(object, "metadata.deletionTimestamp")
}

/// The first condition of a type in `status.conditions`.
pub(super) fn condition<'a>(object: &'a Value, kind: &str) -> Option<&'a Value> {
    items_at(object, "status.conditions").iter().find(|c| str_at(c, "type") == kind)
}

/// Whether the first condition of a type is `True`.
pub(super) fn holds(object: &Value, kind: &str) -> bool {
    condition(object, kind).is_some_and(is_true)
}

/// Whether a condition's status is `True`.
pub(super) fn is_true(condition: &Value) -> bool {
    str_at(condition, "status") == "True"
}
