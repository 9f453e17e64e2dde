//! The fixed specs of the mandatory flow schemas and priority levels.

use std::sync::LazyLock;

use pintle_value::{Value, json};

/// The spec of a mandatory object, by the name of its list in the file and its own name.
pub(super) fn spec(entries: &str, name: &str) -> Option<&'static Value> {
    static FILE: LazyLock<Value> = LazyLock::new(|| {
        // A test ensures that the file is valid.
        json::parse(include_bytes!("../../bootstrap/flowcontrol.json")).unwrap_or_default()
    });
    let is_it = |entry: &&Value| {
        entry.str_at(&["name"]) == Some(name)
            && entry.get("mandatory").and_then(Value::as_bool) == Some(true)
    };
    FILE.get(entries)?.as_array()?.iter().find(is_it)?.get("spec")
}
