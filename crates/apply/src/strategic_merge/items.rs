//! The items of lists: of which type they are, and what identifies each.

use pintle_meta::quote::plain;
use pintle_value::{Map, Value};

use crate::Error;

/// The type of a list's items.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum ItemKind {
    Object,
    Scalar,
}

/// Returns whether the items of the lists are objects or scalars. All items must be of one type.
pub(super) fn item_kind(lists: &[&[Value]]) -> Result<ItemKind, Error> {
    let mut items = lists.iter().copied().flatten();
    let Some(first) = items.next() else {
        return Err(Error::Unclassified("no elements in any of the given slices".to_owned()));
    };
    if matches!(first, Value::Array(_)) {
        return Err(Error::DoesNotApply("lists of lists are not supported".to_owned()));
    }
    if first.is_null() || !items.all(|item| super::same_type(first, item)) {
        let lists: Vec<Value> = lists.iter().map(|list| Value::Array(list.to_vec())).collect();
        let lists = plain(&Value::Array(lists));
        return Err(Error::Unclassified(format!("list element types are not identical: {lists}")));
    }
    Ok(if matches!(first, Value::Object(_)) { ItemKind::Object } else { ItemKind::Scalar })
}

/// The identity of an item: a scalar item itself, or an object's merge key. It is encoded as JSON
/// so that it is ordered.
pub(super) type Key = String;

/// Returns the identity of an item.
pub(super) fn key(item: &Value, merge_key: &str) -> Result<Key, Error> {
    if merge_key.is_empty() {
        return Ok(scalar_key(item));
    }
    let object =
        item.as_object().ok_or_else(|| super::wrong_type("map[string]interface {}", item))?;
    object.get(merge_key).map(scalar_key).ok_or_else(|| no_merge_key(object, merge_key))
}

pub(super) fn scalar_key(value: &Value) -> Key {
    pintle_value::json::to_string(value)
}

fn no_merge_key(object: &Map, merge_key: &str) -> Error {
    let object = plain(&Value::Object(object.clone()));
    Error::Unclassified(format!("map: {object} does not contain declared merge key: {merge_key}"))
}
