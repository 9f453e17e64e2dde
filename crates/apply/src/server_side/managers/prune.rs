//! Removes the fields that an applier no longer applies, unless another manager owns them
//! (SSA-17..19, SSA-22).

use std::borrow::Cow;
use std::collections::BTreeMap;

use pintle_value::{Str, Value};

use super::{Failure, FieldSet, Kind, Managers, Owned};
use crate::server_side::typed::{Typing, field_set, remove, with_named_fields};

/// Removes from `merged`, which is of the version of `now`, the fields that an applier had applied
/// in `last`, does not apply in `now`, and that none of the `others` owns.
pub(super) fn prune(
    kind: Kind<'_>,
    merged: Value,
    last: &Owned,
    others: &Managers,
    now: &Owned,
) -> Result<Value, Failure> {
    let Some(ty) = kind.typing(&last.api_version) else { return Ok(merged) };
    let mut merged = convert(kind, Cow::Owned(merged), &now.api_version, &last.api_version)?;
    let gone = with_named_fields(last.fields().clone(), ty);
    let mut pruned = merged.clone();
    remove(ty, pruned.to_mut(), &gone);

    // Owned fields are restored, version by version. The version of the pruned object comes first,
    // because a conversion to another version may fail without that version's fields.
    let mut at = last.api_version.clone();
    let mut owned = owned_by_version(others, now);
    let first = owned.remove_entry(&last.api_version);
    for (version, fields) in first.into_iter().chain(owned) {
        let Some(ty) = kind.typing(&version) else { continue };
        let mut all = convert(kind, Cow::Borrowed(&*merged), &last.api_version, &version)?;
        let part = convert(kind, pruned, &at, &version)?;
        let remaining = named(ty, &part).union(with_named_fields(fields, ty));
        let went = named(ty, &all).difference(&remaining);
        remove(ty, all.to_mut(), &went);
        (pruned, at) = (Cow::Owned(all.into_owned()), version);
    }

    // Only fields of the last configuration may be removed, even if fields below them were removed
    // too.
    let pruned = convert(kind, pruned, &at, &last.api_version)?;
    let went = named(ty, &merged).difference(&named(ty, &pruned)).intersection(&gone);
    remove(ty, merged.to_mut(), &went);
    Ok(convert(kind, merged, &last.api_version, &now.api_version)?.into_owned())
}

fn convert<'v>(
    kind: Kind<'_>,
    object: Cow<'v, Value>,
    from: &str,
    to: &str,
) -> Result<Cow<'v, Value>, Failure> {
    let converted = kind.convert(object, from, to);
    converted.map_err(|why| Failure::Other(format!("failed to prune fields: {why}")))
}

/// The fields of an object, including the declared fields above its leaves.
fn named(ty: Typing<'_>, object: &Value) -> FieldSet {
    with_named_fields(field_set(ty, object), ty)
}

/// The fields that the others and the applier own, by version.
fn owned_by_version(others: &Managers, now: &Owned) -> BTreeMap<Str, FieldSet> {
    let mut by_version = BTreeMap::<Str, Vec<FieldSet>>::new();
    for owned in others.values().chain([now]) {
        by_version.entry(owned.api_version.clone()).or_default().push(owned.fields().clone());
    }
    by_version.into_iter().map(|(version, sets)| (version, FieldSet::union_of(sets))).collect()
}
