//! Encodes and decodes `metadata.managedFields`: a list with an entry for each manager.

use pintle_meta::time;
use pintle_value::{Map, Value, json};

use super::{FieldSet, Identity, Managers, Operation, Owned};

/// The only encoding of fields that exists.
const FIELDS_TYPE: &str = "FieldsV1";

/// The value of an object's `managedFields`.
pub(crate) enum Record {
    /// No managers, or an empty list: clients that do not know managers write an empty list.
    Absent,
    /// `[{}]`, by which a client removes all managers (SSA-42).
    Reset,
    /// A list of entries.
    Entries(Vec<Value>),
}

/// Takes `managedFields` out of an object.
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

/// The origin of entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// A client: any format.
    Client,
    /// The store: the entries are already in the format in which they are written.
    Store,
}

/// Decodes a list of entries. The iterator yields `None` for an invalid entry.
pub(crate) fn read(
    entries: impl IntoIterator<Item = Value>,
    source: Source,
) -> impl Iterator<Item = Option<(Identity, Owned)>> {
    entries.into_iter().map(move |mut entry| {
        let members = entry.as_object_mut()?;
        let fields = match members.remove("fieldsV1").unwrap_or_default() {
            Value::Raw(json) => json,
            Value::Null => "{}".into(),
            other => json::to_string(&other).into(),
        };
        let text = |member| members.get(member).and_then(Value::as_str).unwrap_or_default();
        let operation = match text("operation") {
            "Apply" => Operation::Apply,
            "Update" => Operation::Update,
            _ => return None,
        };
        let api_version = text("apiVersion");
        if api_version.is_empty() || text("fieldsType") != FIELDS_TYPE {
            return None;
        }
        let unix_micros = time::parse(text("time")).ok();
        let owned = if source == Source::Store && fields.starts_with('{') {
            Owned::from_json(api_version.into(), fields, unix_micros)
        } else {
            let fields = FieldSet::from_json(&fields).ok()?;
            Owned::new(api_version.into(), fields, unix_micros)
        };
        let identity = Identity::new(text("manager"), operation, api_version, text("subresource"));
        Some((identity, owned))
    })
}

/// Takes the managers out of a stored object. Invalid entries are dropped (SSAI-08).
pub(crate) fn take(object: &mut Value) -> Managers {
    match record(object) {
        Record::Entries(entries) => read(entries, Source::Store).flatten().collect(),
        Record::Absent | Record::Reset => Managers::new(),
    }
}

/// Writes the entries into an object, in upstream's order (SSAI-06).
pub(crate) fn write(object: &mut Value, managers: Managers) {
    let metadata = object.object_entry("metadata");
    if managers.is_empty() {
        metadata.remove("managedFields");
        return;
    }
    let mut entries: Vec<_> = managers.into_iter().collect();
    entries.sort_by(|a, b| order(a).cmp(&order(b)));
    let entries: Vec<Value> =
        entries.into_iter().map(|(identity, owned)| entry(identity, owned)).collect();
    metadata.insert("managedFields", entries);
}

fn order((identity, owned): &(Identity, Owned)) -> impl Ord {
    let second = owned.unix_micros.map_or(0, |t| t.div_euclid(1_000_000));
    (identity.operation, second, &identity.manager, &owned.api_version, &identity.subresource)
}

fn entry(identity: Identity, owned: Owned) -> Value {
    let (mut entry, unix_micros) = (Map::with_capacity(7), owned.unix_micros);
    entry.insert("apiVersion", owned.api_version.clone());
    entry.insert("fieldsType", FIELDS_TYPE);
    entry.insert("fieldsV1", Value::Raw(owned.into_json()));
    if !identity.manager.is_empty() {
        entry.insert("manager", identity.manager);
    }
    entry.insert("operation", identity.operation.name());
    if !identity.subresource.is_empty() {
        entry.insert("subresource", identity.subresource);
    }
    if let Some(micros) = unix_micros {
        entry.insert("time", time::format(micros));
    }
    entry.into()
}
