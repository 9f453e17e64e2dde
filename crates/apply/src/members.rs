//! Merges the members of two objects.

use pintle_value::{Map, Str, Value};

/// Merges `changes` into `current` in one pass, as both are sorted by key. For each member of
/// `changes`, `merge` gets the key, the current value and the change, and returns the new value or
/// `None` to remove the member.
pub(crate) fn merge<E>(
    current: Map,
    changes: Map,
    mut merge: impl FnMut(&Str, Option<Value>, Value) -> Result<Option<Value>, E>,
) -> Result<Map, E> {
    let mut members = Vec::with_capacity(current.len() + changes.len());
    let mut current = current.into_iter().peekable();
    for (key, change) in changes {
        while let Some(before) = current.next_if(|(name, _)| *name < key) {
            members.push(before);
        }
        let value = current.next_if(|(name, _)| *name == key).map(|(_, value)| value);
        if let Some(value) = merge(&key, value, change)? {
            members.push((key, value));
        }
    }
    members.extend(current);
    Ok(Map::from_sorted(members))
}
