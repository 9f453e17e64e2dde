//! What a write makes of ownership: changed fields go to the writer, removed ones to nobody; an
//! applier must not take what others own unless it is forced to.

use std::borrow::Cow;
use std::collections::BTreeMap;

use pintle_value::{Str, Value};

use super::{Conflicts, FieldSet, Identity, Kind, Managers, Owned, prune};
use crate::server_side::fieldset::order;
use crate::server_side::typed::{self, Comparison};

/// Why a write cannot be done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    /// Others own what it would change.
    Conflict(Conflicts),
    /// Anything else, in upstream's words.
    Other(String),
}

/// Takes the fields that differ between two objects of `api_version` from their managers, and gives
/// those that the write set: they are the writer's.
pub(crate) fn update(
    kind: Kind<'_>,
    api_version: &str,
    (live, new): (&Value, &Value),
    managers: &mut Managers,
) -> Result<FieldSet, Failure> {
    reconcile(kind, managers);
    let change = take_over(kind, api_version, (live, new), managers, None, true)?;
    Ok(change.modified.union(change.added))
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
    let before = managers.remove(&who).map(|owned| owned.fields).unwrap_or_default();
    let fields = fields.union(before);
    let api_version = api_version.into();
    managers.insert(who, Owned::new(api_version, fields, Some(unix_micros)));
}

/// Merges a checked configuration of `api_version` into the live object of that version, and takes
/// out what `me` applied before and does not now. `None` if nothing changes.
pub(crate) fn apply(
    kind: Kind<'_>,
    api_version: &str,
    (live, applied): (&Value, Value),
    managers: &mut Managers,
    me: &Identity,
    force: bool,
) -> Result<Option<Value>, Failure> {
    let Some(ty) = kind.typing(api_version) else { return Err(unknown(api_version)) };
    reconcile(kind, managers);
    let fields = kind.filter.keep(typed::field_set(ty, &applied));
    let mut merged = live.clone();
    typed::merge(ty, &mut merged, applied)
        .map_err(|why| Failure::Other(format!("failed to merge config: {why}")))?;
    let last = managers.remove(me);
    let unix_micros = last.as_ref().and_then(|last| last.unix_micros);
    let owned = Owned::new(api_version.into(), fields, unix_micros);
    let merged = match last {
        Some(last) => prune::prune(kind, merged, last, managers, &owned)?,
        None => merged,
    };
    managers.insert(me.clone(), owned);
    if order::same(live, &merged) {
        managers.retain(|_, owned| !owned.fields.is_empty());
        return Ok(None);
    }
    take_over(kind, api_version, (live, &merged), managers, Some(me), force)?;
    Ok(Some(merged))
}

/// Brings what managers own up to the schema as it is; entries of versions that are not served any
/// more go.
fn reconcile(kind: Kind<'_>, managers: &mut Managers) {
    managers.retain(|_, owned| match kind.typing(&owned.api_version) {
        Some(ty) => {
            if typed::reconcile(ty, &mut owned.fields) {
                owned.entry = None;
            }
            true
        }
        None => false,
    });
}

/// Takes what changed from everyone but `me`; without force, only if nobody owns what was changed.
fn take_over(
    kind: Kind<'_>,
    api_version: &str,
    (live, new): (&Value, &Value),
    managers: &mut Managers,
    me: Option<&Identity>,
    force: bool,
) -> Result<Comparison, Failure> {
    let mut changes = Changes { kind, api_version, live, new, by_version: BTreeMap::new() };
    let mut conflicts = Conflicts::default();
    for (who, owned) in managers.iter().filter(|(who, _)| Some(*who) != me) {
        let change = changes.at(&owned.api_version)?;
        let modified = owned.fields.intersection(&change.modified);
        let changed = modified.union(owned.fields.intersection(&change.added));
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
    for (_, owned) in managers.iter_mut().filter(|(who, _)| Some(*who) != me) {
        let removed = &changes.at(&owned.api_version)?.removed;
        if owned.fields.meets(removed) {
            owned.change(|before| before.difference(removed));
        }
    }
    managers.retain(|_, owned| !owned.fields.is_empty());
    changes.at(api_version)?;
    Ok(changes.by_version.remove(api_version).unwrap_or_default())
}

/// What a write changes, in each version that a manager has fields of.
struct Changes<'a> {
    kind: Kind<'a>,
    api_version: &'a str,
    live: &'a Value,
    new: &'a Value,
    by_version: BTreeMap<Str, Comparison>,
}

impl Changes<'_> {
    fn at(&mut self, version: &str) -> Result<&Comparison, Failure> {
        if !self.by_version.contains_key(version) {
            let Some(ty) = self.kind.typing(version) else { return Err(unknown(version)) };
            let convert = |object, which: &str| {
                let converted = self.kind.convert(Cow::Borrowed(object), self.api_version, version);
                converted.map_err(|why| {
                    Failure::Other(format!("failed to convert {which} object: {why}"))
                })
            };
            let (live, new) = (convert(self.live, "old")?, convert(self.new, "new")?);
            let change = typed::compare(ty, &live, &new).filtered(self.kind.filter);
            self.by_version.insert(version.into(), change);
        }
        Ok(&self.by_version[version])
    }
}

fn unknown(api_version: &str) -> Failure {
    Failure::Other(format!("no corresponding type for {api_version}"))
}
