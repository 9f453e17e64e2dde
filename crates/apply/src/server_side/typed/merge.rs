//! An applied configuration over what is there.

use pintle_value::Value;

use super::items::Unkeyed;
use super::{Items, Typing, View};
use crate::server_side::fieldset::PathElement;

/// Sets in `live` all that `applied` has. Items come in the order of `live`, but in that of `applied`
/// where the two disagree. Nothing goes; an empty list, an empty object and null say nothing of the
/// items and members that are there.
pub(crate) fn merge(ty: Typing<'_>, live: &mut Value, applied: Value) -> Result<(), Unkeyed> {
    match (ty.view(), &mut *live, applied) {
        (View::Items(items), Value::Array(old), Value::Array(new)) if !old.is_empty() => {
            if !new.is_empty() && items.are_aligned(old, &new) {
                for (old, new) in old.iter_mut().zip(new) {
                    merge(items.ty, old, new)?;
                }
            } else if !new.is_empty() {
                *old = merge_items(items, std::mem::take(old), new)?;
            }
        }
        (View::Members | View::Deduced, Value::Object(old), Value::Object(new))
            if !old.is_empty() =>
        {
            for (name, value) in new {
                match old.get_mut(&name) {
                    Some(old) => merge(ty.member(&name).0, old, value)?,
                    None => {
                        old.insert(name, value);
                    }
                }
            }
        }
        (View::Items(_), Value::Array(old), Value::Null) if !old.is_empty() => {}
        (View::Members | View::Deduced, Value::Object(old), Value::Null) if !old.is_empty() => {}
        (_, live, applied) => *live = applied,
    }
    Ok(())
}

/// The items of one list that stand for those of a path element.
struct Keyed {
    elements: Vec<PathElement>,
    /// Indices into `elements`, in the order of these.
    order: Vec<usize>,
}

impl Keyed {
    fn new(items: Items<'_>, list: &[Value]) -> Result<Self, Unkeyed> {
        let elements: Vec<_> = list.iter().map(|i| items.element(i)).collect::<Result<_, _>>()?;
        let mut order: Vec<usize> = (0..elements.len()).collect();
        order.sort_by(|&a, &b| elements[a].cmp(&elements[b])); // stable: the first of equals is first
        Ok(Self { elements, order })
    }

    /// Where the item, or the first of several, is; and whether it is the only one.
    fn find(&self, element: &PathElement) -> Option<(usize, bool)> {
        let at = self.order.partition_point(|&i| self.elements[i] < *element);
        let is = |at: usize| self.order.get(at).is_some_and(|&i| self.elements[i] == *element);
        is(at).then(|| (self.order[at], !is(at + 1)))
    }
}

/// Upstream's order: both lists are gone through at once; items that only `old` has come where they
/// stand there, items that both have come where they stand in `new`.
fn merge_items(items: Items<'_>, old: Vec<Value>, new: Vec<Value>) -> Result<Vec<Value>, Unkeyed> {
    let (of_old, of_new) = (Keyed::new(items, &old)?, Keyed::new(items, &new)?);
    // For each item, where the other list has it.
    let in_new: Vec<_> = of_old.elements.iter().map(|e| of_new.find(e).map(|(i, _)| i)).collect();
    let in_old: Vec<_> = of_new.elements.iter().map(|e| of_old.find(e)).collect();
    // For each place in `new`, the next item that both have.
    let mut next_shared: Vec<Option<usize>> = vec![None; new.len() + 1];
    for (i, shared) in in_old.iter().enumerate().rev() {
        next_shared[i] = shared.map_or(next_shared[i + 1], |_| Some(i));
    }
    let (mut old, mut new) = (parts(old), parts(new));
    let mut merged = Vec::with_capacity(old.len().max(new.len()));
    let (mut at_old, mut at_new) = (0, 0);
    while at_old < old.len() || at_new < new.len() {
        let shared = in_new.get(at_old).copied().flatten();
        let next = next_shared[at_new];
        match shared {
            // It comes when its turn in `new` has come.
            Some(_) if at_new < new.len() && next.is_some() && next != shared => {
                at_old += 1;
                continue;
            }
            // It came, or comes now.
            Some(i) if i <= at_new => at_old += 1,
            Some(_) => {}
            None if at_old < old.len() => {
                merged.extend(old[at_old].take());
                at_old += 1;
                continue;
            }
            None => {}
        }
        if at_new < new.len() {
            let applied = new[at_new].take().unwrap_or_default();
            // Which of several equal items would be meant cannot be told: none is merged into.
            let live = in_old[at_new].filter(|(_, only)| *only);
            merged.push(match live.and_then(|(i, _)| old[i].take()) {
                Some(mut live) => {
                    merge(items.ty, &mut live, applied)?;
                    live
                }
                None => applied,
            });
            at_new += 1;
        }
    }
    Ok(merged)
}

fn parts(list: Vec<Value>) -> Vec<Option<Value>> {
    list.into_iter().map(Some).collect()
}
