//! Compares two objects: which fields were added, modified or removed.

use pintle_value::{Map, Str, Value};

use super::{Items, Typing, View};
use crate::server_side::fieldset::{Builder, FieldSet, Filter, PathElement, order};

/// The fields that differ. A field is in one of the sets only, with one exception: an item that
/// replaces several items with the same key, or the reverse, is in `added` and in `removed`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Comparison {
    /// Fields that only the new object has.
    pub(crate) added: FieldSet,
    /// Fields that both objects have with different values.
    pub(crate) modified: FieldSet,
    /// Fields that only the old object has.
    pub(crate) removed: FieldSet,
    /// Whether a changed list has items that cannot be identified. Such items are in none of the
    /// sets.
    pub(crate) unkeyed: bool,
}

impl Comparison {
    /// Whether no field differs.
    pub(crate) const fn is_empty(&self) -> bool {
        self.added.is_empty() && self.modified.is_empty() && self.removed.is_empty()
    }

    /// The part of the comparison that passes a filter.
    pub(crate) fn filtered(self, filter: &Filter) -> Self {
        Self {
            added: filter.retain(self.added),
            modified: filter.retain(self.modified),
            removed: filter.retain(self.removed),
            unkeyed: self.unkeyed,
        }
    }
}

/// Compares two objects of one type.
pub(crate) fn compare(ty: Typing<'_>, old: &Value, new: &Value) -> Comparison {
    walk(ty, old, new).below
}

/// The change of one path, and of the paths below it.
#[derive(Default)]
pub(super) struct Change {
    added: bool,
    modified: bool,
    removed: bool,
    pub(super) below: Comparison,
}

impl Change {
    /// Whether nothing changed.
    pub(super) const fn is_none(&self) -> bool {
        !(self.added || self.modified || self.removed) && self.below.is_empty()
    }

    /// The change where `value` was added.
    pub(super) fn added(ty: Typing<'_>, value: &Value) -> Self {
        let mut below = Comparison::default();
        below.added = everything(ty, value, &mut below.unkeyed);
        Self { added: true, below, ..Self::default() }
    }

    /// The change where `value` was removed.
    fn removed(ty: Typing<'_>, value: &Value) -> Self {
        let mut below = Comparison::default();
        below.removed = everything(ty, value, &mut below.unkeyed);
        Self { removed: true, below, ..Self::default() }
    }

    /// The change of a value that is compared as a whole.
    fn modified(modified: bool) -> Self {
        Self { modified, ..Self::default() }
    }

    /// The change where one item replaces several items with the same key.
    pub(super) fn replacing_duplicates(self) -> Self {
        Self { removed: true, ..self }
    }
}

/// Collects the changes of a path's children.
#[derive(Default)]
pub(super) struct Children {
    added: Builder,
    modified: Builder,
    removed: Builder,
    unkeyed: bool,
}

impl Children {
    pub(super) fn add(&mut self, element: impl Fn() -> PathElement, change: Change) {
        let Change { added, modified, removed, below } = change;
        self.added.add(&element, added, below.added);
        self.modified.add(&element, modified, below.modified);
        self.removed.add(&element, removed, below.removed);
        self.unkeyed |= below.unkeyed;
    }

    /// The change of a path that both objects have.
    pub(super) fn finish(self) -> Change {
        let below = Comparison {
            added: self.added.finish(),
            modified: self.modified.finish(),
            removed: self.removed.finish(),
            unkeyed: self.unkeyed,
        };
        Change { below, ..Change::default() }
    }
}

/// Compares the old and the new value at a path.
pub(super) fn walk(ty: Typing<'_>, old: &Value, new: &Value) -> Change {
    let as_a_whole = || Change::modified(!order::same(old, new));
    match ty.view() {
        View::Leaf => as_a_whole(),
        // Most of an object is unchanged, and testing for equality is cheaper than walking.
        View::Items(_) | View::Members if old == new => Change::default(),
        View::Items(items) => match (list(old), list(new)) {
            ([], []) => as_a_whole(),
            (old, new) => compare_items(items, old, new),
        },
        // Empty and absent differ only if neither side has members.
        View::Members | View::Deduced => match (members(old), members(new)) {
            ([], []) => as_a_whole(),
            (old_members, new_members) => {
                let change = compare_members(ty, old_members, new_members);
                let whole = |value: &Value| !matches!(value, Value::Object(_) | Value::Null);
                match ty.view() {
                    // The value's own type changes in addition to its members.
                    View::Deduced if whole(old) || whole(new) => {
                        Change { modified: true, ..change }
                    }
                    _ => change,
                }
            }
        },
    }
}

/// All paths below a path that is added or removed; each prefix is a member, too. Several items
/// with the same key are one field without content.
fn everything(ty: Typing<'_>, value: &Value, unkeyed: &mut bool) -> FieldSet {
    match (ty.view(), value) {
        (View::Items(items), Value::Array(list)) => {
            let mut set = Builder::with_room(list.len());
            let index = items.index(list);
            *unkeyed |= !index.all_keyed;
            for (element, only) in index.iter() {
                let below = only.map(|item| everything(items.ty, item, unkeyed));
                set.add(|| element.to_path_element(), true, below.unwrap_or_default());
            }
            set.finish()
        }
        (View::Members | View::Deduced, Value::Object(members)) => {
            let mut set = Builder::with_room(members.len());
            for (name, value) in members.iter() {
                let below = everything(ty.member(name).0, value, unkeyed);
                set.add(|| PathElement::field(name), true, below);
            }
            set.finish()
        }
        _ => FieldSet::new(),
    }
}

fn compare_members(ty: Typing<'_>, mut old: &[(Str, Value)], mut new: &[(Str, Value)]) -> Change {
    let mut children = Children::default();
    loop {
        let name = match (old.first(), new.first()) {
            (Some((old, _)), Some((new, _))) => old.min(new),
            (Some((name, _)), None) | (None, Some((name, _))) => name,
            (None, None) => return children.finish(),
        };
        let ty = ty.member(name).0;
        let change = match (take(&mut old, name), take(&mut new, name)) {
            (Some(old), Some(new)) => walk(ty, old, new),
            (Some(old), None) => Change::removed(ty, old),
            (None, Some(new)) => Change::added(ty, new),
            (None, None) => Change::default(),
        };
        children.add(|| PathElement::field(name), change);
    }
}

/// Takes the value of `name` if it is the next entry.
fn take<'v>(entries: &mut &'v [(Str, Value)], name: &str) -> Option<&'v Value> {
    let ((first, value), rest) = entries.split_first()?;
    (first == name).then(|| {
        *entries = rest;
        value
    })
}

/// Compares items. Several items with the same key are compared as a whole: their content has no
/// owner.
fn compare_items(items: Items<'_>, old: &[Value], new: &[Value]) -> Change {
    let (old, new) = (items.index(old), items.index(new));
    let unkeyed = !(old.all_keyed && new.all_keyed);
    let mut children = Children { unkeyed, ..Children::default() };
    old.zip(&new, |element, old, new| {
        let change = match (old, new) {
            ([], []) => Change::default(),
            ([(_, old)], [(_, new)]) => walk(items.ty, old, new),
            ([(_, old)], []) => Change::removed(items.ty, old),
            ([], [(_, new)]) => Change::added(items.ty, new),
            ([_, _, ..], []) => Change { removed: true, ..Change::default() },
            ([], [_, _, ..]) => Change { added: true, ..Change::default() },
            ([_, _, ..], [(_, new)]) => Change::added(items.ty, new).replacing_duplicates(),
            ([(_, old)], [_, _, ..]) => Change { added: true, ..Change::removed(items.ty, old) },
            ([_, _, ..], [_, _, ..]) => {
                let equal = old.len() == new.len()
                    && old.iter().zip(new).all(|(old, new)| order::same(old.1, new.1));
                Change::modified(!equal)
            }
        };
        children.add(|| element.to_path_element(), change);
    });
    children.finish()
}

fn list(value: &Value) -> &[Value] {
    value.as_array().unwrap_or_default()
}

fn members(value: &Value) -> &[(Str, Value)] {
    value.as_object().map_or(&[], Map::as_slice)
}
