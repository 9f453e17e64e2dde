//! What becomes of an object that upstream keeps as a message (Protobuf) and reads again: a message does not
//! tell an empty list from none, so one that is written in any case is `null` then.

use pintle_value::Value;

use crate::{Field, Presence, Schema, Shape, TypeId};

/// Makes the empty lists and maps of an object what they are when upstream has kept it.
pub fn forget_empty(schema: &Schema, ty: TypeId, value: &mut Value) {
    let index = schema.index();
    if !index.has_null_when_empty(ty) {
        return;
    }
    match (&schema.get(ty).shape, value) {
        (Shape::Struct { fields, by_name, .. }, Value::Object(members)) => {
            for &rank in index.null_when_empty(ty) {
                let field = &fields[usize::from(by_name[usize::from(rank)])];
                match members.get_mut(&field.name) {
                    Some(member) if is_null_when_empty(schema, field) && is_empty(member) => {
                        *member = Value::Null;
                    }
                    Some(member) => forget_empty(schema, field.ty, member),
                    None => {}
                }
            }
        }
        (Shape::Map { value: ty, .. }, Value::Object(members)) => {
            members.iter_mut().for_each(|(_, member)| forget_empty(schema, *ty, member));
        }
        (Shape::List { item: ty, .. }, Value::Array(items)) => {
            items.iter_mut().for_each(|item| forget_empty(schema, *ty, item));
        }
        _ => {}
    }
}

/// Whether a field is a list or a map that a message has and JSON always shows.
pub(crate) fn is_null_when_empty(schema: &Schema, field: &Field) -> bool {
    field.presence == Presence::Always
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
            ("core.v1.ConfigMap", r#"{"data":{}}"#, r#"{"data":{}}"#),
        ] {
            let ty = builtin().find(&format!("io.k8s.api.{ty}")).unwrap();
            let mut value = json::parse(before.as_bytes()).unwrap();
            forget_empty(builtin(), ty, &mut value);
            assert_eq!(value, json::parse(after.as_bytes()).unwrap(), "{before}");
        }
    }
}
