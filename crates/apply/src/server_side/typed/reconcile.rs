//! Ownership after a change of the schema: what has become atomic is owned as a whole by whoever
//! owned something in it (SSA-31). The other way (SSA-32) needs nothing: who owned the whole goes on
//! to own the path of it, and nothing below.

use super::{Typing, View};
use crate::server_side::fieldset::{FieldSet, PathElement};

/// Makes the set one of a type as it is now; says whether it was another.
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
