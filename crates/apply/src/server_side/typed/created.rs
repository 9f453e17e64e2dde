//! The fields that a create sets, written directly as FieldsV1. The result is that of a comparison
//! with the empty object, without building the sets. Most writes that set many fields are creates.
//!
//! Whatever else the result depends on must be part of an [`Outline`](super::Outline).

use pintle_value::Value;

use super::{Typing, View};
use crate::server_side::fieldset::{ElementRef, FieldSet, PathElement, Writer, order};

/// The fields to leave out.
#[derive(Clone, Copy)]
pub(crate) struct Exclusions<'a> {
    /// Exactly these fields.
    pub(crate) fields: &'a FieldSet,
    /// These fields and everything below them.
    pub(crate) trees: &'a FieldSet,
}

impl Exclusions<'_> {
    pub(super) const fn is_empty(self) -> bool {
        self.fields.is_empty() && self.trees.is_empty()
    }

    pub(super) fn below(self, element: &PathElement) -> Self {
        const NONE: &FieldSet = &FieldSet::new();
        Self {
            fields: self.fields.below(element).unwrap_or(NONE),
            trees: self.trees.below(element).unwrap_or(NONE),
        }
    }
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

/// The content of several items with the same key: they are one field.
const NO_CONTENT: &Value = &Value::Null;

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
        if empty.is_none() && without.is_empty() {
            return self.all_below(ty, new, field);
        }
        match (ty.view(), new) {
            (View::Items(items), Value::Array(list)) => {
                items.index(list).complete()?.iter().try_for_each(|(element, only)| {
                    let new = only.unwrap_or(NO_CONTENT);
                    self.child(element, items.ty, (None, new), field, without)
                })
            }
            (View::Members | View::Deduced, Value::Object(members)) => {
                members.iter().try_for_each(|(name, new)| {
                    let (element, ty) = (ElementRef::Field(name), ty.member(name).0);
                    let empty = empty.and_then(|empty| empty.get(name));
                    self.child(&element, ty, (empty, new), field, without)
                })
            }
            _ => Some(()),
        }
    }

    fn child(
        &mut self,
        element: &ElementRef<'_>,
        ty: Typing<'_>,
        (empty, new): (Option<&Value>, &Value),
        in_field: bool,
        without: Exclusions<'_>,
    ) -> Option<()> {
        let element = &element.to_path_element();
        if without.trees.has_member(element) {
            return Some(());
        }
        let changed = empty.map_or(Some(true), |empty| is_changed(ty, empty, new))?;
        let field = changed && !without.fields.has_member(element);
        let begin = self.out.open(element, in_field);
        self.below(ty, (empty, new), field, without.below(element))?;
        self.out.close(begin, field);
        Some(())
    }

    /// Writes the fields below a path that only the new object has, none of which is left out.
    fn all_below(&mut self, ty: Typing<'_>, new: &Value, field: bool) -> Option<()> {
        match (ty.view(), new) {
            (View::Items(items), Value::Array(list)) => {
                items.index(list).complete()?.iter().try_for_each(|(element, only)| {
                    let begin = self.out.open(element, field);
                    self.all_below(items.ty, only.unwrap_or(NO_CONTENT), true)?;
                    self.out.close(begin, true);
                    Some(())
                })
            }
            (View::Members | View::Deduced, Value::Object(members)) => {
                members.iter().try_for_each(|(name, new)| {
                    let begin = self.out.open_field(name, field);
                    if is_container(new) {
                        self.all_below(ty.member(name).0, new, true)?;
                    }
                    self.out.close(begin, true);
                    Some(())
                })
            }
            _ => Some(()),
        }
    }
}

/// Whether a value that both objects have differs as a whole; changes below it do not count.
fn is_changed(ty: Typing<'_>, empty: &Value, new: &Value) -> Option<bool> {
    match ty.view() {
        View::Leaf => Some(!order::same(empty, new)),
        _ if !is_container(empty) && !is_container(new) => Some(!order::same(empty, new)),
        // Changes of members and items are written below.
        _ => matches!(empty, Value::Null | Value::Object(_)).then_some(false),
    }
}

/// Whether a value has members or items.
pub(super) fn is_container(value: &Value) -> bool {
    match value {
        Value::Array(items) => !items.is_empty(),
        Value::Object(members) => !members.is_empty(),
        _ => false,
    }
}
