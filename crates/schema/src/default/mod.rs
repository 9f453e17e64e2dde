//! Sets the defaults that the table declares.

#[cfg(test)]
mod tests;

use pintle_value::{DEPTH_MAX, Map, Str, Value, json};

use crate::{
    Default, Field, Presence, Schema, Shape, TypeId,
    zero::{is_zero, zero},
};

/// Sets the declared defaults of absent members, and the defaults within those. A zero value counts
/// as absent where Go has no pointer (`name: ""`, `replicas: 0`).
pub fn apply(schema: &Schema, ty: TypeId, value: &mut Value) {
    set(schema, ty, value, 0);
}

fn set(schema: &Schema, ty: TypeId, value: &mut Value, depth: usize) {
    let index = schema.index();
    if depth > DEPTH_MAX || !index.has_defaults(ty) {
        return; // the depth bounds the defaults of recursive types
    }
    match (&schema.get(ty).shape, value) {
        (Shape::Struct { fields, by_name, .. }, Value::Object(members)) => {
            let field = |rank: u16| &fields[usize::from(by_name[usize::from(rank)])];
            for &rank in index.defaulted(ty) {
                set_member(schema, field(rank), members);
            }
            for (key, member) in members.iter_mut() {
                if !matches!(member, Value::Object(_) | Value::Array(_)) {
                    continue;
                }
                if let Some(rank) = index.rank(ty, fields, by_name, key) {
                    set(schema, field(rank).ty, member, depth + 1);
                }
            }
        }
        (Shape::Map { value: ty, .. }, Value::Object(members)) => {
            members.iter_mut().for_each(|(_, member)| set(schema, *ty, member, depth + 1));
        }
        (Shape::List { item: ty, .. }, Value::Array(items)) => {
            items.iter_mut().for_each(|item| set(schema, *ty, item, depth + 1));
        }
        _ => {}
    }
}

fn set_member(schema: &Schema, field: &Field, members: &mut Map) {
    let Some(default) = &field.default else { return };
    let given = members.get(&field.name).is_some_and(|value| match field.presence {
        Presence::Pointer | Presence::Distinct => true,
        Presence::Null => !value.is_null(),
        Presence::OmitZero | Presence::Always => !is_zero(schema, field.ty, value),
    });
    if given {
        return;
    }
    let value = default_value(schema, field.ty, default);
    // OpenAPI declares this default, but Go's encoder omits it.
    if field.presence == Presence::OmitZero && is_zero(schema, field.ty, &value) {
        return;
    }
    members.insert(Str::from(&*field.name), value);
}

fn default_value(schema: &Schema, ty: TypeId, default: &Default) -> Value {
    match default {
        Default::String(text) => Value::from(&**text),
        Default::Int(n) => Value::Int(*n),
        Default::Bool(b) => Value::Bool(*b),
        // Invalid JSON was rejected when the schema was made; the zero value is a safe fallback.
        Default::Json(text) => json::parse(text.as_bytes()).unwrap_or_else(|_| zero(schema, ty)),
    }
}
