//! The effect of upstream's storage in Protobuf on empty lists and maps. Protobuf cannot
//! distinguish an empty list from an absent one, so after a round trip a list that is always
//! written is `null`, and others are absent.

use pintle_value::Value;

use crate::{Presence, Schema, Shape, TypeId, table::is_lossy};

/// Replaces empty lists and maps as a round trip through upstream's storage does.
pub fn drop_empty(schema: &Schema, ty: TypeId, value: &mut Value) {
    drop_empty_with(schema, ty, value, &[Presence::Always, Presence::Distinct]);
}

/// Replaces empty lists and maps with one of these presences.
fn drop_empty_with(schema: &Schema, ty: TypeId, value: &mut Value, of: &[Presence]) {
    let index = schema.index();
    if !index.has_lossy(ty) {
        return;
    }
    match (&schema.get(ty).shape, value) {
        (Shape::Struct { fields, by_name, .. }, Value::Object(members)) => {
            for &rank in index.lossy(ty) {
                let field = &fields[usize::from(by_name[usize::from(rank)])];
                let Some(member) = members.get_mut(&field.name) else { continue };
                let goes = of.contains(&field.presence) && is_lossy(schema, field);
                match field.presence {
                    _ if !(goes && is_empty(member)) => {
                        drop_empty_with(schema, field.ty, member, of)
                    }
                    Presence::Distinct => _ = members.remove(&field.name),
                    _ => *member = Value::Null,
                }
            }
        }
        (Shape::Map { value: ty, .. }, Value::Object(members)) => {
            members.iter_mut().for_each(|(_, member)| drop_empty_with(schema, *ty, member, of));
        }
        (Shape::List { item: ty, .. }, Value::Array(items)) => {
            items.iter_mut().for_each(|item| drop_empty_with(schema, *ty, item, of));
        }
        _ => {}
    }
}

/// Returns the object without the empty lists and maps of [`Presence::Distinct`]; `None` if it has
/// none.
pub fn without_empty_distinct(schema: &Schema, ty: TypeId, value: &Value) -> Option<Value> {
    if !has_empty_distinct(schema, ty, value) {
        return None;
    }
    let mut value = value.clone();
    drop_empty_with(schema, ty, &mut value, &[Presence::Distinct]);
    Some(value)
}

fn has_empty_distinct(schema: &Schema, ty: TypeId, value: &Value) -> bool {
    if !schema.index().has_lossy(ty) {
        return false;
    }
    match (&schema.get(ty).shape, value) {
        (Shape::Struct { fields, by_name, .. }, Value::Object(members)) => {
            schema.index().lossy(ty).iter().any(|&rank| {
                let field = &fields[usize::from(by_name[usize::from(rank)])];
                members.get(&field.name).is_some_and(|member| {
                    field.presence == Presence::Distinct && is_empty(member)
                        || has_empty_distinct(schema, field.ty, member)
                })
            })
        }
        (Shape::Map { value: ty, .. }, Value::Object(members)) => {
            members.iter().any(|(_, member)| has_empty_distinct(schema, *ty, member))
        }
        (Shape::List { item: ty, .. }, Value::Array(items)) => {
            items.iter().any(|item| has_empty_distinct(schema, *ty, item))
        }
        _ => false,
    }
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
    fn empty_lists_become_null_where_they_are_always_written() {
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
            drop_empty(builtin(), ty, &mut value);
            assert_eq!(value, json::parse(after.as_bytes()).unwrap(), "{before}");
        }
    }
}
