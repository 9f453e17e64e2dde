//! An object without some of its fields, or with only those.

use pintle_value::{Map, Value};

use super::{Typing, View};
use crate::server_side::fieldset::{FieldSet, PathElement};

/// Takes these fields out, with all that is in them. Where nothing is left, null is.
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
        // What is below an atomic goes with it; a single value has nothing below.
        (_, value @ (Value::Array(_) | Value::Object(_))) => *value = Value::Null,
        _ => {}
    }
    if is_empty(value) {
        *value = Value::Null;
    }
}

/// Leaves only these fields, atomics as they are. Where there are none, null is.
pub(crate) fn extract(ty: Typing<'_>, value: &Value, fields: &FieldSet) -> Value {
    match (ty.view(), value) {
        (_, value) if is_empty(value) => value.clone(),
        (View::Items(items), Value::Array(list)) => {
            let some = list.iter().filter_map(|item| {
                let element = items.element(item).ok()?;
                match fields.below(&element) {
                    Some(below) => Some(extract(items.ty, item, below)),
                    None => fields.has_member(&element).then(|| item.clone()),
                }
            });
            something(Value::Array(some.collect()))
        }
        (View::Members | View::Deduced, Value::Object(members)) => {
            let some = members.iter().filter_map(|(name, value)| {
                let (element, ty) = (PathElement::field(name), ty.member(name).0);
                let below = fields.below(&element);
                let below = match fields.has_member(&element) {
                    true => below.unwrap_or(const { &FieldSet::new() }),
                    false => below?,
                };
                Some((name.clone(), extract(ty, value, below)))
            });
            something(Value::Object(some.collect::<Map>()))
        }
        (View::Items(_) | View::Members, _) => Value::Null,
        (View::Leaf | View::Deduced, value) => value.clone(),
    }
}

fn something(value: Value) -> Value {
    if is_empty(&value) { Value::Null } else { value }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Array(items) => items.is_empty(),
        Value::Object(members) => members.is_empty(),
        _ => false,
    }
}
