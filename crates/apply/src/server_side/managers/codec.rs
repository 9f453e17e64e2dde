//! `metadata.managedFields`: a list of entries, one for each manager.

use pintle_meta::time;
use pintle_value::{Map, Value};

use super::{FieldSet, Identity, Managers, Operation, Owned};

/// The only encoding of fields there is.
const FIELDS_TYPE: &str = "FieldsV1";

/// What an object says of its managers.
pub(crate) enum Record {
    /// Nothing. An empty list says nothing, too: clients that know nothing of managers write that.
    Absent,
    /// That it is to have none: `[{}]` (SSA-42).
    Reset,
    /// This.
    Entries(Vec<Value>),
}

/// Takes the record out of an object.
pub(crate) fn record(object: &mut Value) -> Record {
    let entries = object.get_mut("metadata").and_then(Value::as_object_mut);
    match entries.and_then(|metadata| metadata.remove("managedFields")) {
        Some(Value::Array(entries)) => match &entries[..] {
            [] => Record::Absent,
            [Value::Object(only)] if only.values().all(|v| v.is_null() || is_empty(v)) => {
                Record::Reset
            }
            _ => Record::Entries(entries),
        },
        _ => Record::Absent,
    }
}

fn is_empty(value: &Value) -> bool {
    value.as_str().is_some_and(str::is_empty)
}

/// Reads a list of entries. `None` in the place of those that cannot be read.
pub(crate) fn read(entries: &[Value]) -> impl Iterator<Item = Option<(Identity, Owned)>> {
    entries.iter().map(|entry| {
        let text = |member| entry.get(member).and_then(Value::as_str).unwrap_or_default();
        let operation = match text("operation") {
            "Apply" => Operation::Apply,
            "Update" => Operation::Update,
            _ => return None,
        };
        let api_version = text("apiVersion");
        if api_version.is_empty() || text("fieldsType") != FIELDS_TYPE {
            return None;
        }
        let fields = entry.get("fieldsV1").unwrap_or(&Value::Null);
        let owned = Owned {
            api_version: api_version.into(),
            fields: FieldSet::from_value(fields).ok()?,
            unix_micros: time::parse(text("time")).ok(),
        };
        let identity = Identity::new(text("manager"), operation, api_version, text("subresource"));
        Some((identity, owned))
    })
}

/// Writes the entries into an object, in upstream's order (SSAI-06).
pub(crate) fn write(object: &mut Value, managers: &Managers) {
    let metadata = object.object_entry("metadata");
    if managers.is_empty() {
        metadata.remove("managedFields");
        return;
    }
    let mut entries: Vec<_> = managers.iter().collect();
    entries.sort_by_key(|(who, owned)| {
        let second = owned.unix_micros.map_or(0, |t| t.div_euclid(1_000_000));
        (who.operation, second, &who.manager, &owned.api_version, &who.subresource)
    });
    let entries: Vec<Value> = entries.into_iter().map(|(who, owned)| entry(who, owned)).collect();
    metadata.insert("managedFields", entries);
}

fn entry(who: &Identity, owned: &Owned) -> Value {
    let mut entry = Map::with_capacity(7);
    entry.insert("apiVersion", owned.api_version.clone());
    entry.insert("fieldsType", FIELDS_TYPE);
    entry.insert("fieldsV1", owned.fields.to_value());
    if !who.manager.is_empty() {
        entry.insert("manager", who.manager.clone());
    }
    entry.insert("operation", who.operation.name());
    if !who.subresource.is_empty() {
        entry.insert("subresource", who.subresource.clone());
    }
    if let Some(micros) = owned.unix_micros {
        entry.insert("time", time::format(micros));
    }
    entry.into()
}
