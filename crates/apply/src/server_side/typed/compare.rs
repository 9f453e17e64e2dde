//! What changed from one object to another.

use pintle_value::{Map, Value};

use super::{Items, Typing, View};
use crate::server_side::fieldset::{Builder, FieldSet, Filter, PathElement, order};

/// The fields that differ; no field is in two of the sets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Comparison {
    /// Only in the new object.
    pub(crate) added: FieldSet,
    /// In both, and different.
    pub(crate) modified: FieldSet,
    /// Only in the old one.
    pub(crate) removed: FieldSet,
}

impl Comparison {
    /// What a filter keeps of it.
    pub(crate) fn filtered(self, filter: &Filter) -> Self {
        Self {
            added: filter.keep(self.added),
            modified: filter.keep(self.modified),
            removed: filter.keep(self.removed),
        }
    }
}

/// Compares two objects of one type.
pub(crate) fn compare(ty: Typing<'_>, old: &Value, new: &Value) -> Comparison {
    walk(ty, Some(old), Some(new)).below
}

/// What changed at one path: of itself, and below it.
#[derive(Default)]
struct Change {
    added: bool,
    modified: bool,
    removed: bool,
    below: Comparison,
}

/// The changes of the children of a path.
#[derive(Default)]
struct Children {
    added: Builder,
    modified: Builder,
    removed: Builder,
}

impl Children {
    fn add(&mut self, element: impl Fn() -> PathElement, change: Change) {
        let Change { added, modified, removed, below } = change;
        self.added.add(&element, added, below.added);
        self.modified.add(&element, modified, below.modified);
        self.removed.add(&element, removed, below.removed);
    }

    fn finish(self) -> Comparison {
        Comparison {
            added: self.added.finish(),
            modified: self.modified.finish(),
            removed: self.removed.finish(),
        }
    }
}

fn walk(ty: Typing<'_>, old: Option<&Value>, new: Option<&Value>) -> Change {
    match ty.view() {
        View::Leaf => leaf(old, new),
        View::Items(items) => {
            let (old_items, new_items) = (list(old), list(new));
            if old_items.is_empty() && new_items.is_empty() {
                return leaf(old, new);
            }
            // Most lists do not change: to see that takes less than to index them.
            if old_items == new_items {
                return Change::default();
            }
            container(old, new, of_items(items, old_items, new_items))
        }
        View::Members => of_object(ty, old, new),
        View::Deduced => {
            let whole = |value: Option<&Value>| {
                value.is_some_and(|v| !matches!(v, Value::Object(_) | Value::Null))
            };
            if !whole(old) && !whole(new) {
                return of_object(ty, old, new);
            }
            // Members come or go beside the change of what the value is.
            let below = of_members(ty, members(old), members(new));
            Change { below, ..leaf(old, new) }
        }
    }
}

/// A path that is owned as a whole.
fn leaf(old: Option<&Value>, new: Option<&Value>) -> Change {
    let mut change = Change::default();
    match (old, new) {
        (None, Some(_)) => change.added = true,
        (Some(_), None) => change.removed = true,
        (Some(old), Some(new)) => change.modified = !order::same(old, new),
        (None, None) => {}
    }
    change
}

/// A path with children: it is there or it isn't.
fn container(old: Option<&Value>, new: Option<&Value>, below: Comparison) -> Change {
    Change { added: old.is_none(), removed: new.is_none(), modified: false, below }
}

/// Empty and absent are told apart only where there are no members on either side.
fn of_object(ty: Typing<'_>, old: Option<&Value>, new: Option<&Value>) -> Change {
    let (old_members, new_members) = (members(old), members(new));
    let empty = |members: Option<&Map>| members.is_none_or(Map::is_empty);
    if empty(old_members) && empty(new_members) {
        return leaf(old, new);
    }
    container(old, new, of_members(ty, old_members, new_members))
}

fn of_members(ty: Typing<'_>, old: Option<&Map>, new: Option<&Map>) -> Comparison {
    let mut children = Children::default();
    let (mut old, mut new) = (entries(old), entries(new));
    loop {
        let name = match (old.first(), new.first()) {
            (Some((old, _)), Some((new, _))) => old.min(new),
            (Some((name, _)), None) | (None, Some((name, _))) => name,
            (None, None) => return children.finish(),
        };
        let (old, new) = (take(&mut old, name), take(&mut new, name));
        let change = walk(ty.member(name).0, old, new);
        children.add(|| PathElement::field(name), change);
    }
}

/// Takes the value of `name` if it comes next.
fn take<'v>(entries: &mut &'v [(pintle_value::Str, Value)], name: &str) -> Option<&'v Value> {
    let ((first, value), rest) = entries.split_first()?;
    (first == name).then(|| {
        *entries = rest;
        value
    })
}

/// Items that come more than once are compared as a whole: what was or is in them has no owner.
fn of_items(items: Items<'_>, old: &[Value], new: &[Value]) -> Comparison {
    let mut children = Children::default();
    let (old, new) = (items.index(old), items.index(new));
    old.zip(&new, |element, old, new| {
        let change = match (old, new) {
            ([] | [_], [] | [_]) => {
                walk(items.ty, old.first().map(|(_, v)| *v), new.first().map(|(_, v)| *v))
            }
            ([_, _, ..], [_, _, ..]) => {
                let equal = old.len() == new.len()
                    && old.iter().zip(new).all(|(old, new)| order::same(old.1, new.1));
                Change { modified: !equal, ..Change::default() }
            }
            ([_, _, ..], _) => {
                let one = new.first().map(|(_, new)| walk(items.ty, None, Some(new)));
                Change { removed: true, ..one.unwrap_or_default() }
            }
            (_, [_, _, ..]) => {
                let one = old.first().map(|(_, old)| walk(items.ty, Some(old), None));
                Change { added: true, ..one.unwrap_or_default() }
            }
        };
        children.add(|| element.clone(), change);
    });
    children.finish()
}

fn list(value: Option<&Value>) -> &[Value] {
    value.and_then(Value::as_array).unwrap_or_default()
}

fn members(value: Option<&Value>) -> Option<&Map> {
    value.and_then(Value::as_object)
}

fn entries(members: Option<&Map>) -> &[(pintle_value::Str, Value)] {
    members.map_or(&[], Map::as_slice)
}
