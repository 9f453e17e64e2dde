//! Adapts ownership to a changed schema. A list or map that became atomic is owned as a whole by
//! every manager that owned something in it (SSA-31). The opposite change needs no work (SSA-32):
//! the owner of the whole keeps its path and owns nothing below it.

use super::{Typing, View};
use crate::server_side::fieldset::{FieldSet, PathElement};

/// Adapts the set to the current type. Returns whether it changed.
pub(crate) fn reconcile(ty: Typing<'_>, set: &mut FieldSet) -> bool {
    let mut changed = false;
    set.change_nodes(|element, member, below| {
        if below.is_empty() {
            return;
        }
        let child = match (element, ty.view()) {
            (PathElement::Field(name), View::Members) => ty.member(name).0,
            (_, View::Items(items)) => items.ty,
            _ => return,
        };
        match child.view() {
            View::Leaf if child.is_container() => {
                *member = true;
                *below = FieldSet::new();
                changed = true;
            }
            View::Members | View::Items(_) => changed |= reconcile(child, below),
            View::Leaf | View::Deduced => {}
        }
    });
    changed
}
