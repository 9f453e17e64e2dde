//! What a write makes of ownership: changed fields go to the writer, removed ones to nobody; an
//! applier must not take what others own unless it is forced to.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::LazyLock;

use pintle_value::{Str, Value};

use super::{Conflicts, FieldSet, Identity, Kind, Managers, Owned, prune};
use crate::server_side::fieldset::{Filter, order};
use crate::server_side::typed::{self, Comparison, Without};

/// What nobody owns, whoever sets it (SSAI-05).
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

/// Why a write cannot be done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    /// Others own what it would change.
    Conflict(Conflicts),
    /// An object has items that have no path: nobody can own anything of it.
    Untyped,
    /// Anything else, in upstream's words.
    Other(String),
}

/// Takes the fields that differ between two objects of `api_version` from their managers, and says
/// which of them the write of `who` set: they are to be its own.
pub(crate) fn update(
    kind: Kind<'_>,
    api_version: &str,
    (live, new): (&Value, &Value),
    managers: &mut Managers,
    who: &Identity,
) -> Result<FieldSet, Failure> {
    settle(kind, managers);
    let mut changes = Changes { kind, api_version, live, new, by_version: Vec::new() };
    let Comparison { added, modified, unkeyed, .. } = changes.at(api_version)?.clone();
    if unkeyed {
        return Err(Failure::Untyped);
    }
    let set = modified.union(added).difference(&UNTRACKED);
    // What the writer has already need not be taken from it to be given back.
    let has_all = |own: &Owned| own.api_version == api_version && own.has_all(&set);
    let spared = managers.get(who).is_some_and(has_all).then_some(who);
    take_over(&mut changes, managers, spared, true)?;
    take_removed(&mut changes, managers, None)?;
    Ok(set)
}

/// What [`update`] finds for a new object of which nobody has anything yet; `None` where only it can tell.
pub(crate) fn create(
    kind: Kind<'_>,
    api_version: &str,
    (empty, new): (&Value, &Value),
    unix_micros: i64,
) -> Option<Owned> {
    let Filter::Except(trees) = kind.filter else { return None };
    let without = Without { fields: &UNTRACKED, trees };
    let fields = typed::made(kind.typing(api_version)?, empty, new, without)?;
    Some(Owned::written(api_version.into(), fields, Some(unix_micros)))
}

/// Gives fields to a manager.
pub(crate) fn grant(
    managers: &mut Managers,
    who: Identity,
    api_version: &str,
    fields: FieldSet,
    unix_micros: i64,
) {
    if fields.is_empty() {
        return;
    }
    let Some(owned) = managers.get_mut(&who) else {
        managers.insert(who, Owned::new(api_version.into(), fields, Some(unix_micros)));
        return;
    };
    owned.unix_micros = Some(unix_micros);
    if !owned.has_all(&fields) {
        owned.change(|before| fields.union(before));
    }
}

/// Merges a checked configuration of `api_version`, which has these `fields`, into the live object of
/// that version, and takes out what `me` applied before and does not now. Says whether anything
/// changed; after a failure the object is of no use.
pub(crate) fn apply(
    kind: Kind<'_>,
    api_version: &str,
    live: &mut Value,
    (applied, fields): (&Value, FieldSet),
    managers: &mut Managers,
    me: &Identity,
    force: bool,
) -> Result<bool, Failure> {
    let Some(ty) = kind.typing(api_version) else { return Err(unknown(api_version)) };
    settle(kind, managers);
    check_versions(kind, api_version, live, managers)?;
    let last = managers.remove(me);
    let fields = kind.filter.retain(fields);
    let untracked = fields.intersection(&UNTRACKED);
    let mut owned = Owned::new(api_version.into(), fields.difference(&UNTRACKED), None);
    let goes = last.as_ref().is_some_and(|last| {
        last.api_version != api_version || !(last.is_same(&owned) || owned.has_all(last.fields()))
    });
    // What a merge does, it knows by itself. Only what goes, and what the same is in other versions,
    // is found by comparing what was there with what is.
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
        if last.is_same(&owned) {
            owned = last;
        }
    }
    managers.insert(me.clone(), owned);
    let changed = match &before {
        None => merged.is_other(),
        Some(before) => !order::same(before, live),
    };
    if changed {
        let old = before.as_ref().unwrap_or(live);
        let mut changes =
            Changes { kind, api_version, live: old, new: live, by_version: Vec::new() };
        if before.is_none() {
            changes.add(api_version, merged.change);
        }
        take_over(&mut changes, managers, Some(me), force)?;
        take_removed(&mut changes, managers, Some(me))?;
    }
    managers.retain(|_, owned| !owned.is_empty());
    Ok(changed)
}

/// Entries of versions that are not served any more go, and the others become ones of the types as they are.
fn settle(kind: Kind<'_>, managers: &mut Managers) {
    managers.retain(|_, owned| kind.versions.type_of(&owned.api_version).is_some());
    if kind.versions.may_have_changed() {
        reconcile(kind, managers.values_mut());
    }
}

/// What is there must be something in each version that somebody owns fields of.
fn check_versions(
    kind: Kind<'_>,
    api_version: &str,
    live: &Value,
    managers: &Managers,
) -> Result<(), Failure> {
    let others = managers.values().map(|owned| &owned.api_version).filter(|v| *v != api_version);
    let others: BTreeSet<&Str> = others.collect();
    // All are asked for before one is missed.
    let converted: Vec<_> = others
        .into_iter()
        .map(|version| kind.convert(Cow::Borrowed(live), api_version, version))
        .collect();
    converted.into_iter().try_for_each(|one| one.map(drop)).map_err(Failure::Other)
}

/// Brings what managers own up to the schema as it is.
fn reconcile<'o>(kind: Kind<'_>, managers: impl IntoIterator<Item = &'o mut Owned>) {
    for owned in managers {
        if let Some(ty) = kind.typing(&owned.api_version) {
            owned.change_if(|fields| typed::reconcile(ty, fields));
        }
    }
}

/// Takes what changed from everyone but `me`; without force, only if nobody owns what was changed.
fn take_over(
    changes: &mut Changes<'_>,
    managers: &mut Managers,
    me: Option<&Identity>,
    force: bool,
) -> Result<(), Failure> {
    let mut conflicts = Conflicts::default();
    for (who, owned) in managers.iter_mut().filter(|(who, _)| Some(*who) != me) {
        let kind = changes.kind;
        let Comparison { added, modified, removed, .. } = changes.at(&owned.api_version)?;
        if ![&*added, modified, removed].iter().any(|fields| owned.may_meet(fields)) {
            continue;
        }
        reconcile(kind, [&mut *owned]);
        let own = owned.fields();
        let changed = own.intersection(modified).union(own.intersection(added));
        if !changed.is_empty() {
            conflicts.owners.push((who.clone(), changed));
        }
    }
    if !force && !conflicts.is_empty() {
        return Err(Failure::Conflict(conflicts));
    }
    for (who, fields) in conflicts.owners {
        if let Some(owned) = managers.get_mut(&who) {
            owned.change(|before| before.difference(&fields));
        }
    }
    Ok(())
}

/// Takes what is not there any more from everyone but `me`.
fn take_removed(
    changes: &mut Changes<'_>,
    managers: &mut Managers,
    me: Option<&Identity>,
) -> Result<(), Failure> {
    for (_, owned) in managers.iter_mut().filter(|(who, _)| Some(*who) != me) {
        let removed = &changes.at(&owned.api_version)?.removed;
        if owned.may_meet(removed) && owned.fields().meets(removed) {
            owned.change(|before| before.difference(removed));
        }
    }
    managers.retain(|_, owned| !owned.is_empty());
    Ok(())
}

/// What a write changes, in each version that a manager has fields of.
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

    /// Keeps of a comparison what such a write can change, and says where it is.
    fn add(&mut self, version: &str, change: Comparison) -> usize {
        self.by_version.push((version.into(), change.filtered(self.kind.filter)));
        self.by_version.len() - 1
    }
}

fn unknown(api_version: &str) -> Failure {
    Failure::Other(format!("no corresponding type for {api_version}"))
}
