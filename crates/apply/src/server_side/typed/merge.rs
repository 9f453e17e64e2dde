//! Merges an applied configuration into a live object.

use std::convert::Infallible;

use pintle_value::{Map, Str, Value};

use super::compare::{self, Change, Children, Comparison};
use super::items::Unkeyed;
use super::{Items, Typing, View};
use crate::members;
use crate::server_side::fieldset::PathElement;

/// The effects of a merge.
pub(crate) struct Merged {
    /// The fields that were added or modified, as [`super::compare()`] would report them.
    pub(crate) change: Comparison,
    /// Whether items changed their positions.
    pub(crate) moved: bool,
}

impl Merged {
    /// Whether the object differs from before.
    pub(crate) const fn changed_object(&self) -> bool {
        self.moved || !self.change.is_empty()
    }
}

/// Sets in `live` everything that `applied` has. Items keep the order of `live` where it does not
/// contradict that of `applied`. Nothing is removed: an empty list, an empty object or null in
/// `applied` does not affect existing items and members.
pub(crate) fn merge(ty: Typing<'_>, live: &mut Value, applied: &Value) -> Result<Merged, Unkeyed> {
    let mut moved = false;
    let change = walk(ty, live, applied, &mut moved)?.below;
    Ok(Merged { change, moved })
}

fn walk(
    ty: Typing<'_>,
    live: &mut Value,
    applied: &Value,
    moved: &mut bool,
) -> Result<Change, Unkeyed> {
    match (ty.view(), &mut *live, applied) {
        (View::Items(items), Value::Array(old), Value::Array(new)) if !old.is_empty() => {
            if new.is_empty() {
                return Ok(Change::default());
            }
            if !items.are_aligned(old, new) {
                return merge_items(items, old, new, moved);
            }
            let mut children = Children::default();
            for (old, new) in old.iter_mut().zip(new) {
                let change = walk(items.ty, old, new, moved)?;
                if !change.is_none() {
                    let element = items.element(old)?;
                    children.add(|| element.clone(), change);
                }
            }
            Ok(children.finish())
        }
        (View::Members | View::Deduced, Value::Object(old), Value::Object(new))
            if !old.is_empty() =>
        {
            let (mut children, mut added) = (Children::default(), Vec::new());
            for (name, value) in new.iter() {
                let ty = ty.member(name).0;
                let change = match old.get_mut(name) {
                    Some(old) => walk(ty, old, value, moved)?,
                    None => {
                        added.push((name.clone(), value.clone()));
                        Change::added(ty, value)
                    }
                };
                children.add(|| PathElement::Field(name.clone()), change);
            }
            // One by one, each would shift the members behind it.
            if !added.is_empty() {
                let (own, added) = (std::mem::take(old), Map::from_sorted(added));
                let add = |_: &Str, _, value| Ok::<_, Infallible>(Some(value));
                let Ok(all) = members::merge(own, added, add);
                *old = all;
            }
            Ok(children.finish())
        }
        (View::Items(_), Value::Array(old), Value::Null) if !old.is_empty() => {
            Ok(Change::default())
        }
        (View::Members | View::Deduced, Value::Object(old), Value::Null) if !old.is_empty() => {
            Ok(Change::default())
        }
        (_, live, applied) => {
            let change = compare::walk(ty, live, applied);
            if !change.is_none() {
                *live = applied.clone();
            }
            Ok(change)
        }
    }
}

/// The path elements of a list's items.
struct Keyed {
    elements: Vec<PathElement>,
    /// Indices into `elements`, sorted by element.
    order: Vec<usize>,
}

impl Keyed {
    fn new(items: Items<'_>, list: &[Value]) -> Result<Self, Unkeyed> {
        let elements: Vec<_> = list.iter().map(|i| items.element(i)).collect::<Result<_, _>>()?;
        let mut order: Vec<usize> = (0..elements.len()).collect();
        order.sort_by(|&a, &b| elements[a].cmp(&elements[b])); // stable: the first of equals is first
        Ok(Self { elements, order })
    }

    /// The index of the first item with this element, and whether it is the only one.
    fn find(&self, element: &PathElement) -> Option<(usize, bool)> {
        let at = self.order.partition_point(|&i| self.elements[i] < *element);
        let is = |at: usize| self.order.get(at).is_some_and(|&i| self.elements[i] == *element);
        is(at).then(|| (self.order[at], !is(at + 1)))
    }
}

/// Merges two lists in upstream's order, walking both at once: an item that only `old` has comes at
/// its position in `old`, an item that both have comes at its position in `new`.
fn merge_items(
    items: Items<'_>,
    list: &mut Vec<Value>,
    new: &[Value],
    moved: &mut bool,
) -> Result<Change, Unkeyed> {
    let (of_old, of_new) = (Keyed::new(items, list)?, Keyed::new(items, new)?);
    // For each item, its index in the other list.
    let in_new: Vec<_> = of_old.elements.iter().map(|e| of_new.find(e).map(|(i, _)| i)).collect();
    let in_old: Vec<_> = of_new.elements.iter().map(|e| of_old.find(e)).collect();
    // For each position in `new`, the index of the next item that both lists have.
    let mut next_shared: Vec<Option<usize>> = vec![None; new.len() + 1];
    for (i, shared) in in_old.iter().enumerate().rev() {
        next_shared[i] = shared.map_or(next_shared[i + 1], |_| Some(i));
    }
    let mut old: Vec<_> = std::mem::take(list).into_iter().map(Some).collect();
    list.reserve(old.len().max(new.len()));
    let mut children = Children::default();
    let (mut at_old, mut at_new, mut last) = (0, 0, 0);
    let mut moved_within = false;
    let mut comes = |at: usize| {
        *moved |= at < last;
        last = at;
    };
    while at_old < old.len() || at_new < new.len() {
        let shared = in_new.get(at_old).copied().flatten();
        let next = next_shared[at_new];
        match shared {
            // A shared item waits for its position in `new`.
            Some(_) if at_new < new.len() && next.is_some() && next != shared => {
                at_old += 1;
                continue;
            }
            // The shared item is already merged, or is merged now.
            Some(i) if i <= at_new => at_old += 1,
            Some(_) => {}
            None if at_old < old.len() => {
                list.extend(old[at_old].take());
                comes(at_old);
                at_old += 1;
                continue;
            }
            None => {}
        }
        if let Some(applied) = new.get(at_new) {
            let (live, only) = in_old[at_new].unzip();
            // Of several items with the same key none can be singled out, so none is merged into.
            let same = live.filter(|_| only == Some(true));
            let (item, change) = match same.and_then(|at| Some((at, old[at].take()?))) {
                Some((at, mut live)) => {
                    comes(at);
                    let change = walk(items.ty, &mut live, applied, &mut moved_within)?;
                    (live, change)
                }
                None => {
                    let change = Change::added(items.ty, applied);
                    let many = only == Some(false);
                    (applied.clone(), if many { change.replacing_duplicates() } else { change })
                }
            };
            list.push(item);
            children.add(|| of_new.elements[at_new].clone(), change);
            at_new += 1;
        }
    }
    *moved |= moved_within;
    Ok(children.finish())
}
