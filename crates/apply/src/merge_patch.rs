//! JSON merge patch (RFC 7386), as upstream's library applies it.
//!
//! One difference from the RFC: if a list is added or replaces a value that is no object, null
//! members of the objects in the list are dropped, too.

use std::convert::Infallible;

use pintle_value::{Map, Value, json};

use crate::{
    Error, Patched, lazy, members,
    read::{read, texts},
};

pub(crate) fn apply(current: &Value, patch: &[u8]) -> Result<Patched, Error> {
    let malformed = |why: &str| Error::Malformed(format!("error decoding patch: {why}"));
    let (patch, problems) = read(patch).map_err(|e| malformed(&e.to_string()))?;
    let patch = match patch {
        Value::Object(patch) => patch,
        Value::Null => return Err(Error::malformed("Invalid JSON Patch")),
        other => {
            let found = other.type_name();
            return Err(malformed(&format!(
                "json: cannot unmarshal {found} into Go value of type map[string]interface {{}}"
            )));
        }
    };
    let current = current.as_object().cloned().unwrap_or_default();
    let value = merge(current, patch).into();
    Ok(Patched { value, problems: texts(&problems) })
}

/// Returns the result with each value as the text that it was, unless the patch changed something
/// in it: then its members are sorted.
pub(crate) fn shown(mut current: Value, patch: &[u8]) -> Value {
    let mut patch = lazy::raw(patch);
    lazy::open(&mut current);
    lazy::open(&mut patch);
    match (current, patch) {
        (Value::Object(current), Value::Object(patch)) => merge(current, patch).into(),
        (current, _) => current,
    }
}

fn merge(current: Map, patch: Map) -> Map {
    let Ok(merged) = members::merge(current, patch, |_, mut current, mut change| {
        current.iter_mut().for_each(lazy::open);
        lazy::open(&mut change);
        Ok::<_, Infallible>(match (current, change) {
            (_, Value::Null) => None,
            (Some(Value::Object(current)), Value::Object(change)) => {
                Some(merge(current, change).into())
            }
            (Some(Value::Object(_)), change) => Some(change),
            (_, mut change) => {
                json::parse_raw(&mut change);
                prune(&mut change);
                Some(change)
            }
        })
    });
    merged
}

/// Removes all null members, at every depth.
fn prune(value: &mut Value) {
    match value {
        Value::Object(members) => members.retain(|_, value| {
            prune(value);
            !value.is_null()
        }),
        Value::Array(items) => items.iter_mut().for_each(prune),
        _ => {}
    }
}
