//! Orders a merged list: first by the patch's order, then by the list's order before the patch.

use std::collections::BTreeMap;

use pintle_meta::quote::plain;
use pintle_value::Value;

use super::{
    PATCH, SET_ORDER,
    items::{Key, key},
};
use crate::Error;

/// Checks that the items that `patch` keeps appear in `order`, in the same sequence.
pub(super) fn check(patch: &[Value], order: &[Value], merge_key: &str) -> Result<(), Error> {
    if patch.is_empty() || order.is_empty() {
        return Ok(());
    }
    let directive = |item: &Value| item.get(PATCH).filter(|_| !merge_key.is_empty()).cloned();
    let stays = |item: &&Value| directive(item).is_none_or(|d| d.as_str() != Some("delete"));
    let mut items = patch.iter().filter(stays).peekable();
    let mut positions = order.iter().peekable();
    while let (Some(item), Some(position)) = (items.peek(), positions.peek()) {
        if directive(item).is_some() {
            items.next();
            continue;
        }
        if key(item, merge_key)? == key(position, merge_key)? {
            items.next();
        }
        positions.next();
    }
    if items.peek().is_some() { Err(mismatch(patch, order)) } else { Ok(()) }
}

fn mismatch(patch: &[Value], order: &[Value]) -> Error {
    let [patch, order] = [patch, order].map(|list| plain(&Value::Array(list.to_vec())));
    Error::Unclassified(format!(
        "The order in patch list:\n{patch}\n doesn't match {SET_ORDER} list:\n{order}\n"
    ))
}

/// The position of each key in a list: that of the first item with the key.
pub(super) type Positions = BTreeMap<Key, usize>;

/// Computes the position of each key in a list.
pub(super) fn positions(list: &[Value], merge_key: &str) -> Result<Positions, Error> {
    let mut positions = Positions::new();
    for (i, item) in list.iter().enumerate() {
        if !merge_key.is_empty() && item.as_object().is_none() {
            return Err(Error::Unclassified(format!("value for key {i} is not a map")));
        }
        positions.entry(key(item, merge_key)?).or_insert(i);
    }
    Ok(positions)
}

/// Arranges `items`. Items in `order` come in that order; the other items, which only the server
/// has, come in the order of `before`. A server item goes before the first patch item that it
/// preceded in the original list.
pub(super) fn arrange(
    items: Vec<Value>,
    order: &Positions,
    before: &Positions,
    merge_key: &str,
) -> Result<Vec<Value>, Error> {
    let (mut patched, mut others) = (Vec::new(), Vec::new());
    for item in items {
        let key = key(&item, merge_key)?;
        let was = before.get(&key).copied();
        match order.get(&key) {
            Some(&position) => patched.push(Item { position: Some(position), was, value: item }),
            None => others.push(Item { position: was, was, value: item }),
        }
    }
    sort(&mut patched);
    sort(&mut others);
    Ok(interleaved(others, patched))
}

struct Item {
    /// The position in the list that gives the order.
    position: Option<usize>,
    /// The position in the original list.
    was: Option<usize>,
    value: Value,
}

/// Sorts as upstream's insertion sort does: an item goes after the last item that is at its position
/// or before, and to the front if there is none. So an item without a position goes to the front.
/// Such items exist only if an empty order is set for a list that has items.
///
/// An item with a smaller position than all before it goes to the front, too, and begins a run. Any
/// other item with a position belongs to the run with the largest first position that is not larger
/// than its own. So the list is found from back to front, and each run is sorted once.
fn sort(items: &mut Vec<Item>) {
    let mut parts: Vec<Vec<Item>> = Vec::new(); // back to front: runs, and items without a position
    let mut runs: Vec<(usize, usize)> = Vec::new(); // the first position of each run, and its part
    for item in items.drain(..) {
        // The first positions descend, because each run begins with a new minimum.
        let run = item
            .position
            .and_then(|position| runs.get(runs.partition_point(|(first, _)| *first > position)));
        if let Some((_, part)) = run {
            parts[*part].push(item);
            continue;
        }
        runs.extend(item.position.map(|position| (position, parts.len())));
        parts.push(vec![item]);
    }
    for mut part in parts.into_iter().rev() {
        part.sort_by_key(|item| item.position);
        items.extend(part);
    }
}

fn interleaved(others: Vec<Item>, patched: Vec<Item>) -> Vec<Value> {
    let mut out = Vec::with_capacity(others.len() + patched.len());
    let (mut others, mut patched) = (others.into_iter().peekable(), patched.into_iter().peekable());
    loop {
        let other_first = match (others.peek(), patched.peek()) {
            (Some(other), Some(patched)) => {
                matches!((other.was, patched.was), (Some(a), Some(b)) if a < b)
            }
            (other, _) => other.is_some(),
        };
        let next = if other_first { others.next() } else { patched.next() };
        match next {
            Some(item) => out.push(item.value),
            None => return out,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Upstream's sort, which inserts one item after the other.
    fn sort_by_insertion(items: Vec<(usize, Option<usize>)>) -> Vec<usize> {
        let mut sorted: Vec<(usize, Option<usize>)> = Vec::new();
        for item in items {
            let stays = |before: &(usize, Option<usize>)| matches!((item.1, before.1), (Some(a), Some(b)) if a >= b);
            let at = sorted.iter().rposition(stays).map_or(0, |i| i + 1);
            sorted.insert(at, item);
        }
        sorted.into_iter().map(|(number, _)| number).collect()
    }

    proptest! {
        #[test]
        fn items_are_sorted_as_by_insertion(
            positions in prop::collection::vec(prop::option::of(0..6_usize), 0..24),
        ) {
            let numbered: Vec<_> = positions.into_iter().enumerate().collect();
            let item = |&(number, position): &(usize, Option<usize>)| {
                Item { position, was: None, value: (number as i64).into() }
            };
            let mut items: Vec<Item> = numbered.iter().map(item).collect();
            sort(&mut items);
            let sorted: Vec<Value> = items.into_iter().map(|item| item.value).collect();
            let expected = sort_by_insertion(numbered);
            prop_assert_eq!(sorted, expected.into_iter().map(|n| Value::from(n as i64)).collect::<Vec<_>>());
        }
    }
}
