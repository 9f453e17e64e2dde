//! Computes the set of an object's fields.

use pintle_value::{Map, Value};

use super::{Items, Role, Typing, View};
use crate::server_side::fieldset::{Builder, FieldSet, PathElement};

/// The fields of `value`: every leaf, and every map entry and list item above a leaf.
pub(crate) fn field_set(ty: Typing<'_>, value: &Value) -> FieldSet {
    walk(ty, value).1
}

/// Returns whether the value itself is a field, and the fields below it.
pub(super) fn walk(ty: Typing<'_>, value: &Value) -> (bool, FieldSet) {
    match (ty.view(), value) {
        (View::Leaf, _) => (true, FieldSet::new()),
        (View::Items(items), Value::Array(list)) => (false, item_set(items, list)),
        (View::Members | View::Deduced, Value::Object(members)) => {
            let mut set = Builder::with_room(members.len());
            for (name, value) in members.iter() {
                let (ty, role) = ty.member(name);
                let (leaf, below) = walk(ty, value);
                let member = leaf || is_null_or_empty(value) || role != Role::Field;
                set.add(|| PathElement::field(name), member, below);
            }
            (false, set.finish())
        }
        (View::Deduced, Value::Null) | (View::Items(_) | View::Members, _) => {
            (false, FieldSet::new())
        }
        (View::Deduced, _) => (true, FieldSet::new()),
    }
}

/// Whether a member is a field because it has no content.
pub(super) fn is_null_or_empty(value: &Value) -> bool {
    value.is_null() || value.as_object().is_some_and(Map::is_empty)
}

/// Several items with the same key are one field without content.
fn item_set(items: Items<'_>, list: &[Value]) -> FieldSet {
    let mut set = Builder::with_room(list.len());
    for (element, only) in items.index(list).iter() {
        let below = only.map(|item| walk(items.ty, item).1);
        set.add(|| element.to_path_element(), true, below.unwrap_or_default());
    }
    set.finish()
}

/// Adds the declared fields above the set's members. Such fields are not in the set of an object's
/// fields, but are removed together with their content.
pub(crate) fn with_named_fields(mut set: FieldSet, ty: Typing<'_>) -> FieldSet {
    name_fields(&mut set, ty);
    set
}

fn name_fields(set: &mut FieldSet, ty: Typing<'_>) {
    set.change_nodes(|element, member, below| {
        if below.is_empty() {
            return;
        }
        match (element, ty.view()) {
            (PathElement::Field(name), _) => {
                let (ty, role) = ty.member(name);
                *member |= role == Role::Field;
                name_fields(below, ty);
            }
            (PathElement::Key(_), View::Items(items)) => name_fields(below, items.ty),
            _ => {}
        }
    });
}
