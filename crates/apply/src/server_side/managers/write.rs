//! Computes how a write changes ownership: changed fields go to the writer, removed fields lose
//! their owners, and an apply conflicts with the owners of the fields that it changes unless it is
//! forced.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::LazyLock;

use pintle_value::{Str, Value};

use super::{Conflicts, Failure, FieldSet, Identity, Kind, Managers, Owned, prune};
use crate::server_side::CreatedFields;
use crate::server_side::fieldset::{Filter, order};
use crate::server_side::typed::{self, Comparison, Exclusions, Outline};

/// The fields that no manager can own (SSAI-05).
static UNTRACKED: LazyLock<FieldSet> = LazyLock::new(|| {
    FieldSet::from([
        &["apiVersion"][..],
        &["kind"],
        &["metadata"],
        &["metadata", "name"],
        &["metadata", "namespace"],
        &["metadata", "creationTimestamp"],
        &["metadata", "selfLink"],
        &["metadata", "uid"],
        &["metadata", "clusterName"],
        &["metadata", "generation"],
        &["metadata", "managedFields"],
        &["metadata", "resourceVersion"],
    ])
});

/// Removes the fields that differ between two objects of `api_version` from their managers. Returns
/// the fields that the write of `identity` set and will own.
pub(crate) fn update(
    kind: Kind<'_>,
    api_version: &str,
    (live, new): (&Value, &Value),
    managers: &mut Managers,
    identity: &Identity,
) -> Result<FieldSet, Failure> {
    refresh_entries(kind, managers);
    let mut changes = Changes { kind, api_version, live, new, by_version: Vec::new() };
    let Comparison { added, modified, unkeyed, .. } = changes.at(api_version)?.clone();
    if unkeyed {
        return Err(Failure::Untyped);
    }
    let set = modified.union(added).difference(&UNTRACKED);
    // Fields that the writer already owns stay with it.
    let contains_all = |own: &Owned| own.api_version == api_version && own.contains_all(&set);
    let spared = managers.get(identity).is_some_and(contains_all).then_some(identity);
    take_changed(&mut changes, managers, spared, true)?;
    take_removed(&mut changes, managers, None)?;
    Ok(set)
}

/// Computes the result of [`update`] for a new object without managers, as FieldsV1; `None` where
/// only a comparison can tell. `remembered` gets the result for the next object of this outline.
pub(crate) fn create(
    kind: Kind<'_>,
    api_version: &str,
    (empty, new): (&Value, &Value),
    remembered: Option<&CreatedFields>,
) -> Option<Box<str>> {
    let Filter::Except(trees) = kind.filter else { return None };
    let (ty, without) = (kind.typing(api_version)?, Exclusions { fields: &UNTRACKED, trees });
    let fields = typed::created(ty, empty, new, without)?;
    if let Some(remembered) = remembered
        && let Some(outline) = Outline::of(ty, empty, new, without)
    {
        remembered.add(outline, fields.clone());
    }
    Some(fields)
}

/// Adds fields to the fields of a manager; adds the manager if it does not exist.
pub(crate) fn grant(
    managers: &mut Managers,
    identity: Identity,
    api_version: &str,
    fields: FieldSet,
    unix_micros: i64,
) {
    if fields.is_empty() {
        return;
    }
    let Some(owned) = managers.get_mut(&identity) else {
        managers.insert(identity, Owned::new(api_version.into(), fields, Some(unix_micros)));
        return;
    };
    owned.unix_micros = Some(unix_micros);
    if !owned.contains_all(&fields) {
        owned.add(fields);
    }
}

/// Merges a checked configuration of `api_version` with the given `fields` into the live object of
/// that version. Removes the fields that `writer` applied before and does not apply now. Returns
/// whether anything changed; after a failure the object must not be used.
pub(crate) fn apply(
    kind: Kind<'_>,
    api_version: &str,
    live: &mut Value,
    (applied, fields): (&Value, FieldSet),
    managers: &mut Managers,
    writer: &Identity,
    force: bool,
) -> Result<bool, Failure> {
    let Some(ty) = kind.typing(api_version) else { return Err(unknown(api_version)) };
    refresh_entries(kind, managers);
    check_versions(kind, api_version, live, managers)?;
    let last = managers.remove(writer);
    let fields = kind.filter.retain(fields);
    let untracked = fields.intersection(&UNTRACKED);
    let mut owned = Owned::new(api_version.into(), fields.difference(&UNTRACKED), None);
    let goes = last.as_ref().is_some_and(|last| {
        last.api_version != api_version
            || !(last.has_same_fields(&owned) || owned.contains_all(last.fields()))
    });
    // The merge itself reports its changes. A comparison of the objects is needed only for removed
    // fields, and for changes in other versions.
    let foreign = managers.values().any(|owned| owned.api_version != api_version);
    let before = (goes || foreign).then(|| live.clone());
    let merged = typed::merge(ty, live, applied)
        .map_err(|why| Failure::Other(format!("failed to merge config: {why}")))?;
    if let Some(last) = last {
        if goes {
            reconcile(kind, managers.values_mut());
            let fields = owned.fields().clone().union(untracked);
            let now = Owned::new(api_version.into(), fields, None);
            *live = prune::prune(kind, std::mem::take(live), &last, managers, &now)?;
        }
        owned.unix_micros = last.unix_micros;
        if last.has_same_fields(&owned) {
            owned = last;
        }
    }
    managers.insert(writer.clone(), owned);
    let changed = match &before {
        None => merged.changed_object(),
        Some(before) => !order::same(before, live),
    };
    if changed {
        let old = before.as_ref().unwrap_or(live);
        let mut changes =
            Changes { kind, api_version, live: old, new: live, by_version: Vec::new() };
        if before.is_none() {
            changes.add(api_version, merged.change);
        }
        take_changed(&mut changes, managers, Some(writer), force)?;
        take_removed(&mut changes, managers, Some(writer))?;
    }
    managers.retain(|_, owned| !owned.is_empty());
    Ok(changed)
}

/// Drops entries of versions that are not served any more, and adapts the other entries to the
/// current types if these may have changed.
fn refresh_entries(kind: Kind<'_>, managers: &mut Managers) {
    managers.retain(|_, owned| kind.versions.type_of(&owned.api_version).is_some());
    if kind.versions.schema_may_have_changed() {
        reconcile(kind, managers.values_mut());
    }
}

/// Checks that the object can be converted to each version in which a manager owns fields.
fn check_versions(
    kind: Kind<'_>,
    api_version: &str,
    live: &Value,
    managers: &Managers,
) -> Result<(), Failure> {
    let others = managers.values().map(|owned| &owned.api_version).filter(|v| *v != api_version);
    let others: BTreeSet<&Str> = others.collect();
    // All conversions are requested before the first failure is returned.
    let converted: Vec<_> = others
        .into_iter()
        .map(|version| kind.convert(Cow::Borrowed(live), api_version, version))
        .collect();
    converted.into_iter().try_for_each(|one| one.map(drop)).map_err(Failure::Other)
}

/// Adapts the managers' fields to the current schema.
fn reconcile<'o>(kind: Kind<'_>, managers: impl IntoIterator<Item = &'o mut Owned>) {
    for owned in managers {
        if let Some(ty) = kind.typing(&owned.api_version) {
            owned.change_in_place(|fields| typed::reconcile(ty, fields));
        }
    }
}

/// Removes changed fields from all managers but `writer`. Without `force`, a changed field that
/// another manager owns is a conflict.
fn take_changed(
    changes: &mut Changes<'_>,
    managers: &mut Managers,
    writer: Option<&Identity>,
    force: bool,
) -> Result<(), Failure> {
    let mut conflicts = Conflicts::default();
    for (identity, owned) in managers.iter_mut().filter(|(identity, _)| Some(*identity) != writer) {
        let kind = changes.kind;
        let Comparison { added, modified, removed, .. } = changes.at(&owned.api_version)?;
        if ![&*added, modified, removed].iter().any(|fields| owned.may_intersect(fields)) {
            continue;
        }
        reconcile(kind, [&mut *owned]);
        let own = owned.fields();
        let changed = own.intersection(modified).union(own.intersection(added));
        if !changed.is_empty() {
            conflicts.owners.push((identity.clone(), changed));
        }
    }
    if !force && !conflicts.is_empty() {
        return Err(Failure::Conflict(conflicts));
    }
    for (identity, fields) in conflicts.owners {
        if let Some(owned) = managers.get_mut(&identity) {
            owned.change(|before| before.difference(&fields));
        }
    }
    Ok(())
}

/// Removes fields that the object no longer has from all managers but `writer`.
fn take_removed(
    changes: &mut Changes<'_>,
    managers: &mut Managers,
    writer: Option<&Identity>,
) -> Result<(), Failure> {
    for (_, owned) in managers.iter_mut().filter(|(identity, _)| Some(*identity) != writer) {
        let removed = &changes.at(&owned.api_version)?.removed;
        if owned.may_intersect(removed) && owned.fields().intersects(removed) {
            owned.change(|before| before.difference(removed));
        }
    }
    managers.retain(|_, owned| !owned.is_empty());
    Ok(())
}

/// The changes of a write, computed for each version in which a manager owns fields.
struct Changes<'a> {
    kind: Kind<'a>,
    api_version: &'a str,
    live: &'a Value,
    new: &'a Value,
    by_version: Vec<(Str, Comparison)>,
}

impl Changes<'_> {
    fn at(&mut self, version: &str) -> Result<&mut Comparison, Failure> {
        let known = self.by_version.iter().position(|(known, _)| known == version);
        let at = match known {
            Some(at) => at,
            None => {
                let Some(ty) = self.kind.typing(version) else { return Err(unknown(version)) };
                let convert =
                    |object| self.kind.convert(Cow::Borrowed(object), self.api_version, version);
                let (live, new) = (convert(self.live), convert(self.new));
                let live = live.map_err(Failure::Other)?;
                let new = new.map_err(|why| {
                    Failure::Other(format!("failed to convert new object: {why}"))
                })?;
                let change = typed::compare(ty, &live, &new);
                self.add(version, change)
            }
        };
        Ok(&mut self.by_version[at].1)
    }

    /// Stores the part of a comparison that the kind of write can change, and returns its index.
    fn add(&mut self, version: &str, change: Comparison) -> usize {
        self.by_version.push((version.into(), change.filtered(self.kind.filter)));
        self.by_version.len() - 1
    }
}

fn unknown(api_version: &str) -> Failure {
    Failure::Other(format!("no corresponding type for {api_version}"))
}
