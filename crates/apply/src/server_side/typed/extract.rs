//! Extracts some fields of an object, as client-go's `Extract…` does. Only tests need it, for
//! upstream's cases.

use pintle_value::{Map, Value};

use super::remove::is_empty;
use super::{Typing, View};
use crate::server_side::fieldset::{FieldSet, PathElement};

/// Keeps only these fields, atomic values unchanged. An empty result becomes null.
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
