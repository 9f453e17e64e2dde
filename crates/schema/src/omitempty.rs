//! What becomes of an object that upstream keeps as a message (Protobuf) and reads again: a message does not
//! tell an empty list from none, so one that is written in any case is `null` then, and others are gone.

use pintle_value::Value;

use crate::{Field, Presence, Schema, Shape, TypeId};

/// Makes the empty lists and maps of an object what they are when upstream has kept it.
pub fn forget_empty(schema: &Schema, ty: TypeId, value: &mut Value) {
    forget(schema, ty, value, &[Presence::Always, Presence::Distinct]);
}

/// Makes the empty lists and maps with such a presence what they are when upstream has kept them.
fn forget(schema: &Schema, ty: TypeId, value: &mut Value, of: &[Presence]) {
    let index = schema.index();
    if !index.has_forgotten(ty) {
        return;
    }
    match (&schema.get(ty).shape, value) {
        (Shape::Struct { fields, by_name, .. }, Value::Object(members)) => {
            for &rank in index.forgotten(ty) {
                let field = &fields[usize::from(by_name[usize::from(rank)])];
                let Some(member) = members.get_mut(&field.name) else { continue };
                let goes = of.contains(&field.presence) && is_forgotten(schema, field);
                match field.presence {
                    _ if !(goes && is_empty(member)) => forget(schema, field.ty, member, of),
                    Presence::Distinct => _ = members.remove(&field.name),
                    _ => *member = Value::Null,
                }
            }
        }
        (Shape::Map { value: ty, .. }, Value::Object(members)) => {
            members.iter_mut().for_each(|(_, member)| forget(schema, *ty, member, of));
        }
        (Shape::List { item: ty, .. }, Value::Array(items)) => {
            items.iter_mut().for_each(|item| forget(schema, *ty, item, of));
        }
        _ => {}
    }
}

/// The object without the empty lists and maps that are there only until it is kept; `None` where it has none.
pub fn without_distinct(schema: &Schema, ty: TypeId, value: &Value) -> Option<Value> {
    if !has_distinct(schema, ty, value) {
        return None;
    }
    let mut value = value.clone();
    forget(schema, ty, &mut value, &[Presence::Distinct]);
    Some(value)
}

fn has_distinct(schema: &Schema, ty: TypeId, value: &Value) -> bool {
    if !schema.index().has_forgotten(ty) {
        return false;
    }
    match (&schema.get(ty).shape, value) {
        (Shape::Struct { fields, by_name, .. }, Value::Object(members)) => {
            schema.index().forgotten(ty).iter().any(|&rank| {
                let field = &fields[usize::from(by_name[usize::from(rank)])];
                members.get(&field.name).is_some_and(|member| {
                    field.presence == Presence::Distinct && is_empty(member)
                        || has_distinct(schema, field.ty, member)
                })
            })
        }
        (Shape::Map { value: ty, .. }, Value::Object(members)) => {
            members.iter().any(|(_, member)| has_distinct(schema, *ty, member))
        }
        (Shape::List { item: ty, .. }, Value::Array(items)) => {
            items.iter().any(|item| has_distinct(schema, *ty, item))
        }
        _ => false,
    }
}

/// Whether a field is a list or a map that a message has, and that an object may have while it is empty.
pub(crate) fn is_forgotten(schema: &Schema, field: &Field) -> bool {
    matches!(field.presence, Presence::Always | Presence::Distinct)
        && field.tag != 0
        && matches!(schema.get(field.ty).shape, Shape::List { .. } | Shape::Map { .. })
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Array(items) => items.is_empty(),
        Value::Object(members) => members.is_empty(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use pintle_value::json;

    use super::*;
    use crate::builtin;

    #[test]
    fn empty_lists_are_none_where_json_shows_them_anyway() {
        for (ty, before, after) in [
            ("rbac.v1.ClusterRole", r#"{"rules":[]}"#, r#"{"rules":null}"#),
            (
                "rbac.v1.Role",
                r#"{"rules":[{"verbs":[]},{"verbs":["get"]}]}"#,
                r#"{"rules":[{"verbs":null},{"verbs":["get"]}]}"#,
            ),
            (
                "core.v1.PodTemplate",
                r#"{"template":{"spec":{"containers":[]}}}"#,
                r#"{"template":{"spec":{"containers":null}}}"#,
            ),
            (
                "core.v1.PodTemplate",
                r#"{"template":{"spec":{"containers":null,"overhead":{}}}}"#,
                r#"{"template":{"spec":{"containers":null}}}"#,
            ),
            ("core.v1.ConfigMap", r#"{"data":{}}"#, r#"{"data":{}}"#),
        ] {
            let ty = builtin().find(&format!("io.k8s.api.{ty}")).unwrap();
            let mut value = json::parse(before.as_bytes()).unwrap();
            forget_empty(builtin(), ty, &mut value);
            assert_eq!(value, json::parse(after.as_bytes()).unwrap(), "{before}");
        }
    }
}
