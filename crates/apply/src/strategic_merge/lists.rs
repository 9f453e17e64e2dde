//! Merges lists whose items are identified by a merge key or by their own value.

use std::collections::{BTreeMap, BTreeSet};

use pintle_schema::TypeId;
use pintle_value::Value;

use super::{
    Merger, PATCH,
    items::{ItemKind, Key, item_kind, key, scalar_key},
    kind,
    order::{self, Positions},
    unknown_directive,
};
use crate::Error;

impl Merger<'_> {
    /// Merges `patch` into a list with items of the type `item`. With `deletes`, removes the scalar
    /// items that are in `patch`; objects are merged nevertheless.
    pub(super) fn lists(
        self,
        original: Vec<Value>,
        patch: Vec<Value>,
        item: TypeId,
        merge_key: &str,
        deletes: bool,
    ) -> Result<Vec<Value>, Error> {
        if original.is_empty() && patch.is_empty() {
            return Ok(original);
        }
        match item_kind(&[&original, &patch])? {
            ItemKind::Scalar if deletes => {
                let gone: BTreeSet<Key> = patch.iter().map(scalar_key).collect();
                let stays = |value: &Value| !gone.contains(&scalar_key(value));
                Ok(original.into_iter().filter(stays).collect())
            }
            ItemKind::Scalar => {
                let order = order::positions(&patch, merge_key)?;
                let before = order::positions(&original, merge_key)?;
                let merged = deduplicated(original.into_iter().chain(patch));
                order::arrange(merged, &order, &before, merge_key)
            }
            ItemKind::Object if merge_key.is_empty() => {
                let kind = kind(&self.schema.get(item).shape);
                Err(Error::Unclassified(format!("cannot merge lists without merge key for {kind}")))
            }
            ItemKind::Object => {
                let (original, patch) = apply_item_directives(original, patch, merge_key)?;
                let order = order::positions(&patch, merge_key)?;
                let before = order::positions(&original, merge_key)?;
                let merged = self.objects_by_key(original, patch, item, merge_key)?;
                order::arrange(merged, &order, &before, merge_key)
            }
        }
    }

    fn objects_by_key(
        self,
        mut original: Vec<Value>,
        patch: Vec<Value>,
        item: TypeId,
        merge_key: &str,
    ) -> Result<Vec<Value>, Error> {
        let mut positions = BTreeMap::new();
        for (i, value) in original.iter().enumerate() {
            if let Some(key) = value.get(merge_key) {
                positions.entry(scalar_key(key)).or_insert(i);
            }
        }
        for value in patch {
            let key = key(&value, merge_key)?;
            match positions.get(&key) {
                Some(&i) => {
                    let current = std::mem::take(original[i].make_object());
                    let Value::Object(change) = value else { continue };
                    original[i] = self.objects(current, change, item)?.into();
                }
                None => {
                    positions.insert(key, original.len());
                    original.push(value);
                }
            }
        }
        Ok(original)
    }
}

/// Applies the items that are directives. Returns the remaining items of `original` and of `patch`.
fn apply_item_directives(
    mut original: Vec<Value>,
    patch: Vec<Value>,
    merge_key: &str,
) -> Result<(Vec<Value>, Vec<Value>), Error> {
    let mut values = Vec::with_capacity(patch.len());
    let (mut replace, mut deleted) = (false, BTreeSet::new());
    for item in patch {
        let Some(directive) = item.get(PATCH) else {
            values.push(item);
            continue;
        };
        match directive.as_str() {
            Some("delete") => {
                deleted.insert(key(&item, merge_key)?);
            }
            Some("replace") => replace = true,
            Some("merge") => {
                const WHY: &str = "merging lists cannot yet be specified in the patch";
                return Err(Error::Unclassified(WHY.to_owned()));
            }
            _ => {
                let members = item.as_object().cloned().unwrap_or_default();
                return Err(unknown_directive(directive.clone(), members));
            }
        }
    }
    if replace {
        return Ok((values, Vec::new()));
    }
    original.retain(|item| {
        let key = item.get(merge_key).map(scalar_key);
        !key.is_some_and(|key| deleted.contains(&key))
    });
    Ok((original, values))
}

/// The positions by which the items that only the server has are arranged under a
/// `$setElementOrder`.
///
/// They are the positions in the original list. But upstream deletes items from the original list
/// itself, so the first items that a patch adds take the freed positions. Clients depend on this
/// result.
pub(super) fn original_positions(
    original: &[Value],
    patch: &[Value],
    merge_key: &str,
) -> Result<Positions, Error> {
    let deletes = |item: &Value| item.get(PATCH).and_then(Value::as_str) == Some("delete");
    if merge_key.is_empty() || !patch.iter().any(deletes) {
        return order::positions(original, merge_key);
    }
    let (list, patch) = apply_item_directives(original.to_vec(), patch.to_vec(), merge_key)?;
    let mut positions = order::positions(&list, merge_key)?;
    let mut room = list.len()..original.len();
    for item in &patch {
        let key = key(item, merge_key)?;
        if !positions.contains_key(&key)
            && let Some(position) = room.next()
        {
            positions.insert(key, position);
        }
    }
    Ok(positions)
}

fn deduplicated(items: impl Iterator<Item = Value>) -> Vec<Value> {
    let mut seen = BTreeSet::new();
    items.filter(|item| seen.insert(scalar_key(item))).collect()
}
