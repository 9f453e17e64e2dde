//! Which fields an object has.

use pintle_value::{Map, Value};

use super::{Items, Role, Typing, View};
use crate::server_side::fieldset::{Builder, FieldSet, PathElement};

/// The fields of `value`: every leaf, and every map entry and list item on the way.
pub(crate) fn field_set(ty: Typing<'_>, value: &Value) -> FieldSet {
    walk(ty, value).1
}

/// Whether the value is a field itself, and the fields in it.
pub(super) fn walk(ty: Typing<'_>, value: &Value) -> (bool, FieldSet) {
    match (ty.view(), value) {
        (View::Leaf, _) => (true, FieldSet::new()),
        (View::Items(items), Value::Array(list)) => (false, of_items(items, list)),
        (View::Members | View::Deduced, Value::Object(members)) => {
            let mut set = Builder::with_room(members.len());
            for (name, value) in members.iter() {
                let (ty, role) = ty.member(name);
                let (leaf, below) = walk(ty, value);
                let member = leaf || is_bare(value) || role != Role::Field;
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

/// Whether a member is a field for having nothing in it.
pub(super) fn is_bare(value: &Value) -> bool {
    value.is_null() || value.as_object().is_some_and(Map::is_empty)
}

/// Items that come more than once have one owner, whatever is in them.
fn of_items(items: Items<'_>, list: &[Value]) -> FieldSet {
    let mut set = Builder::with_room(list.len());
    items.index(list).for_each(|element, only| {
        let below = only.map(|item| walk(items.ty, item).1);
        set.add(|| element, true, below.unwrap_or_default());
    });
    set.finish()
}

/// The set with the declared fields above its members: such fields are in no set for themselves, but
/// go when all that is in them goes.
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
