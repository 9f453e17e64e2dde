//! What a new object sets, as FieldsV1: what a comparison with the empty object says, written without the
//! sets in between. Most writes that set many fields are these.

use pintle_value::Value;

use super::{Typing, View};
use crate::server_side::fieldset::{FieldSet, PathElement, Writer, order};

/// What is left out.
#[derive(Clone, Copy)]
pub(crate) struct Without<'a> {
    /// These fields.
    pub(crate) fields: &'a FieldSet,
    /// These and what is in them.
    pub(crate) trees: &'a FieldSet,
}

/// The fields of an object that are not as they are in the `empty` one, which has items in no list. `None`
/// where only a comparison can tell: members are in the place of something else, or items have no path.
pub(crate) fn made(
    ty: Typing<'_>,
    empty: &Value,
    new: &Value,
    without: Without<'_>,
) -> Option<Box<str>> {
    let mut walk = Walk { out: Writer::new() };
    walk.below(ty, (Some(empty), new), false, without)?;
    Some(walk.out.finish().into())
}

struct Walk {
    out: Writer,
}

impl Walk {
    /// Writes the fields below a path that is a `field` itself or not.
    fn below(
        &mut self,
        ty: Typing<'_>,
        (empty, new): (Option<&Value>, &Value),
        field: bool,
        without: Without<'_>,
    ) -> Option<()> {
        match (ty.view(), new) {
            (View::Items(items), Value::Array(list)) => {
                let index = items.index(list);
                let mut told = index.is_whole.then_some(());
                index.for_each(|element, only| {
                    // Items that come more than once are one field, whatever is in them.
                    let item = only.unwrap_or(&Value::Null);
                    told = told.and_then(|()| {
                        self.child(&element, items.ty, (None, item), field, without)
                    });
                });
                told
            }
            (View::Members | View::Deduced, Value::Object(members)) => {
                for (name, new) in members.iter() {
                    let (element, ty) = (PathElement::field(name), ty.member(name).0);
                    let empty = empty.and_then(|empty| empty.get(name));
                    self.child(&element, ty, (empty, new), field, without)?;
                }
                Some(())
            }
            _ => Some(()),
        }
    }

    fn child(
        &mut self,
        element: &PathElement,
        ty: Typing<'_>,
        (empty, new): (Option<&Value>, &Value),
        in_field: bool,
        without: Without<'_>,
    ) -> Option<()> {
        const NONE: &FieldSet = &FieldSet::new();
        if without.trees.has_member(element) {
            return Some(());
        }
        let changed = empty.map_or(Some(true), |empty| is_changed(ty, empty, new))?;
        let field = changed && !without.fields.has_member(element);
        let without = Without {
            fields: without.fields.below(element).unwrap_or(NONE),
            trees: without.trees.below(element).unwrap_or(NONE),
        };
        let begin = self.out.open(element, in_field);
        self.below(ty, (empty, new), field, without)?;
        self.out.close(begin, field);
        Some(())
    }
}

/// Whether a value that is there in both objects is another as a whole, apart from what is below it.
fn is_changed(ty: Typing<'_>, empty: &Value, new: &Value) -> Option<bool> {
    let is_container = |value: &Value| match value {
        Value::Array(items) => !items.is_empty(),
        Value::Object(members) => !members.is_empty(),
        _ => false,
    };
    match ty.view() {
        View::Leaf => Some(!order::same(empty, new)),
        _ if !is_container(empty) && !is_container(new) => Some(!order::same(empty, new)),
        // What has members or items changes below.
        _ => matches!(empty, Value::Null | Value::Object(_)).then_some(false),
    }
}
