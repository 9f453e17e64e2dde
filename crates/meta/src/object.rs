//! Accessors for the metadata of an object's tree.

use pintle_value::{Map, Str, Value};

/// Returns `metadata.<field>`; `""` if it is absent or not a string.
pub fn text<'a>(object: &'a Value, field: &str) -> &'a str {
    object.str_at(&["metadata", field]).unwrap_or_default()
}

/// The object's name.
pub fn name(object: &Value) -> &str {
    text(object, "name")
}

/// The object's namespace, `""` for a cluster-scoped object.
pub fn namespace(object: &Value) -> &str {
    text(object, "namespace")
}

/// The object's uid.
pub fn uid(object: &Value) -> &str {
    text(object, "uid")
}

/// The object's resource version.
pub fn resource_version(object: &Value) -> &str {
    text(object, "resourceVersion")
}

/// `metadata.generation`; 0 if it is absent.
pub fn generation(object: &Value) -> i64 {
    object.at(&["metadata", "generation"]).and_then(Value::as_int).unwrap_or(0)
}

/// Whether the object has a deletion timestamp.
pub fn is_terminating(object: &Value) -> bool {
    object.at(&["metadata", "deletionTimestamp"]).is_some_and(|t| !t.is_null())
}

/// The labels.
pub fn labels(object: &Value) -> Option<&Map> {
    object.at(&["metadata", "labels"])?.as_object()
}

/// The annotations.
pub fn annotations(object: &Value) -> Option<&Map> {
    object.at(&["metadata", "annotations"])?.as_object()
}

/// The finalizers, in order.
pub fn finalizers(object: &Value) -> impl Iterator<Item = &str> {
    let list = object.at(&["metadata", "finalizers"]).and_then(Value::as_array);
    list.unwrap_or_default().iter().filter_map(Value::as_str)
}

/// Returns `metadata`, inserting it if absent.
pub fn metadata_mut(object: &mut Value) -> &mut Map {
    object.object_entry("metadata")
}

/// Sets `metadata.<field>`, or removes it if `text` is empty.
pub fn set_text(object: &mut Value, field: &str, text: impl Into<Str>) {
    let text = text.into();
    let metadata = metadata_mut(object);
    if text.is_empty() {
        metadata.remove(field);
    } else {
        metadata.insert(field, text);
    }
}

/// Whether Go's `Semantic.DeepEqual` finds two values equal, at any depth: an absent value equals
/// null and an empty one.
pub fn same(a: Option<&Value>, b: Option<&Value>) -> bool {
    fn visible(value: Option<&Value>) -> Option<&Value> {
        value.filter(|value| match value {
            Value::Null => false,
            Value::Object(members) => !members.is_empty(),
            Value::Array(items) => !items.is_empty(),
            _ => true,
        })
    }
    match (visible(a), visible(b)) {
        // Mostly both have the same members, so that none has to be searched.
        (Some(Value::Object(a)), Some(Value::Object(b))) if a.keys().eq(b.keys()) => {
            a.values().zip(b.values()).all(|(a, b)| same(Some(a), Some(b)))
        }
        (Some(Value::Object(a)), Some(Value::Object(b))) => {
            a.iter().all(|(member, value)| same(Some(value), b.get(member)))
                && b.iter().all(|(member, value)| a.contains_key(member) || same(None, Some(value)))
        }
        (Some(Value::Array(a)), Some(Value::Array(b))) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(Some(a), Some(b)))
        }
        (a, b) => a == b,
    }
}
