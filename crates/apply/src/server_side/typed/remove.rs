//! Removes fields from an object.

use pintle_value::Value;

use super::{Typing, View};
use crate::server_side::fieldset::{FieldSet, PathElement};

/// Removes these fields and everything below them. A value that becomes empty becomes null.
pub(crate) fn remove(ty: Typing<'_>, value: &mut Value, fields: &FieldSet) {
    match (ty.view(), &mut *value) {
        (View::Items(items), Value::Array(list)) => list.retain_mut(|item| {
            let Ok(element) = items.element(item) else { return true };
            if let Some(below) = fields.below(&element) {
                remove(items.ty, item, below);
            }
            !fields.has_member(&element)
        }),
        (View::Members | View::Deduced, Value::Object(members)) => members.retain(|name, value| {
            let element = PathElement::field(name);
            if let Some(below) = fields.below(&element) {
                remove(ty.member(name).0, value, below);
            }
            !fields.has_member(&element)
        }),
        // If a field below an atomic value is removed, the whole value is; a scalar has no content.
        (_, value @ (Value::Array(_) | Value::Object(_))) => *value = Value::Null,
        _ => {}
    }
    if is_empty(value) {
        *value = Value::Null;
    }
}

pub(super) fn is_empty(value: &Value) -> bool {
    match value {
        Value::Array(items) => items.is_empty(),
        Value::Object(members) => members.is_empty(),
        _ => false,
    }
}
