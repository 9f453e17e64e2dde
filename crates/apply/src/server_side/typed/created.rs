//! The fields that a create sets, written directly as FieldsV1. The result is that of a comparison
//! with the empty object, without building the sets. Most writes that set many fields are creates.

use pintle_value::Value;

use super::{Typing, View};
use crate::server_side::fieldset::{FieldSet, PathElement, Writer, order};

/// The fields to leave out.
#[derive(Clone, Copy)]
pub(crate) struct Exclusions<'a> {
    /// Exactly these fields.
    pub(crate) fields: &'a FieldSet,
    /// These fields and everything below them.
    pub(crate) trees: &'a FieldSet,
}

/// Returns the fields of an object that differ from those of the `empty` one, whose lists have no
/// items. `None` where only a comparison can tell: a value of another type is replaced by an
/// object, or items cannot be identified.
pub(crate) fn created(
    ty: Typing<'_>,
    empty: &Value,
    new: &Value,
    without: Exclusions<'_>,
) -> Option<Box<str>> {
    let mut walk = Walk { out: Writer::new() };
    walk.below(ty, (Some(empty), new), false, without)?;
    Some(walk.out.finish().into())
}

struct Walk {
    out: Writer,
}

impl Walk {
    /// Writes the fields below a path. `field` says whether that path itself is written.
    fn below(
        &mut self,
        ty: Typing<'_>,
        (empty, new): (Option<&Value>, &Value),
        field: bool,
        without: Exclusions<'_>,
    ) -> Option<()> {
        match (ty.view(), new) {
            (View::Items(items), Value::Array(list)) => {
                let index = items.index(list);
                let mut keyed = index.all_keyed.then_some(());
                index.for_each(|element, only| {
                    // Several items with the same key are one field without content.
                    let item = only.unwrap_or(&Value::Null);
                    keyed = keyed.and_then(|()| {
                        self.child(&element, items.ty, (None, item), field, without)
                    });
                });
                keyed
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
        without: Exclusions<'_>,
    ) -> Option<()> {
        const NONE: &FieldSet = &FieldSet::new();
        if without.trees.has_member(element) {
            return Some(());
        }
        let changed = empty.map_or(Some(true), |empty| is_changed(ty, empty, new))?;
        let field = changed && !without.fields.has_member(element);
        let without = Exclusions {
            fields: without.fields.below(element).unwrap_or(NONE),
            trees: without.trees.below(element).unwrap_or(NONE),
        };
        let begin = self.out.open(element, in_field);
        self.below(ty, (empty, new), field, without)?;
        self.out.close(begin, field);
        Some(())
    }
}

/// Whether a value that both objects have differs as a whole; changes below it do not count.
fn is_changed(ty: Typing<'_>, empty: &Value, new: &Value) -> Option<bool> {
    let is_container = |value: &Value| match value {
        Value::Array(items) => !items.is_empty(),
        Value::Object(members) => !members.is_empty(),
        _ => false,
    };
    match ty.view() {
        View::Leaf => Some(!order::same(empty, new)),
        _ if !is_container(empty) && !is_container(new) => Some(!order::same(empty, new)),
        // Changes of members and items are written below.
        _ => matches!(empty, Value::Null | Value::Object(_)).then_some(false),
    }
}
