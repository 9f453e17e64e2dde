//! Metadata that the server sets, whatever the client sends.

use std::collections::BTreeSet;

use pintle_meta::field;
use pintle_meta::object::{self, metadata_mut};
use pintle_meta::time;
use pintle_value::{Map, Str, Value, order::Ordered};

use crate::Generation;
use crate::request::Now;

/// Members that only the server sets; those of a new object are dropped. As in upstream,
/// `generation` is not among them: a kind without generations keeps it.
const SYSTEM: &[&str] =
    &["uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "selfLink"];

/// Removes members that only the server sets (upstream: `WipeObjectMetaSystemFields`).
pub(super) fn remove_system_fields(tree: &mut Value) {
    let metadata = metadata_mut(tree);
    for field in SYSTEM {
        metadata.remove(field);
    }
}

/// Sets the metadata of a new object. A kind without generations keeps the client's `generation`,
/// as in upstream's strategies.
pub(super) fn initialize(tree: &mut Value, generation: Generation, uid: Str, now: Now) {
    remove_system_fields(tree);
    let metadata = metadata_mut(tree);
    metadata.insert("uid", uid);
    metadata.insert("creationTimestamp", time::format(now.unix_micros));
    if generation != Generation::None {
        metadata.insert("generation", 1);
    }
}

/// Restores members that an update cannot change (upstream: rest.BeforeUpdate).
pub(super) fn keep_immutable(new: &mut Value, old: &Value) {
    let old_metadata = old.get("metadata").and_then(Value::as_object);
    let metadata = metadata_mut(new);
    let mut keep = |field: &str, only_if_absent: bool| {
        let stored = old_metadata.and_then(|m| m.get(field)).filter(|v| !v.is_null());
        match stored {
            Some(_) if only_if_absent && metadata.contains_key(field) => {}
            Some(stored) => {
                metadata.insert(field, stored.clone());
            }
            None if !only_if_absent => {
                metadata.remove(field);
            }
            None => {}
        }
    };
    keep("generation", false);
    keep("creationTimestamp", false);
    keep("resourceVersion", false);
    keep("uid", true);
    if object::is_terminating(old) {
        keep("deletionTimestamp", false);
        keep("deletionGracePeriodSeconds", true);
    }
}

/// Whether the generation grows (META-06). `same` says whether a member is unchanged.
pub(super) fn is_new_generation(
    new: &Value,
    old: &Value,
    generation: Generation,
    same: impl Fn(Option<&Value>, Option<&Value>) -> bool,
) -> bool {
    let differs = |path: &[&str]| !same(new.at(path), old.at(path));
    let spec_differs = || {
        let (new, old) = (new.as_object(), old.as_object());
        let names = new.into_iter().chain(old).flat_map(Map::keys).map(Str::as_str);
        let counted = |name: &&str| !matches!(*name, "metadata" | "status" | "kind" | "apiVersion");
        names.filter(counted).any(|name| differs(&[name]))
    };
    match generation {
        Generation::None => false,
        Generation::Spec | Generation::SpecAsSent => spec_differs(),
        Generation::Content => spec_differs() || differs(&["status"]),
        Generation::SpecAnd(member) => spec_differs() || differs(&["metadata", member]),
    }
}

/// Increments the generation of an object that has one.
pub(super) fn bump_generation(tree: &mut Value) {
    let generation = object::generation(tree);
    if generation > 0 {
        metadata_mut(tree).insert("generation", generation + 1);
    }
}

/// Removes duplicate owner references; returns a warning if there were any (STRAT-08). Upstream
/// removes those of an object that is not the body of a request only after admission, and says so.
pub(super) fn deduplicate_owners(tree: &mut Value, is_body: bool) -> Option<String> {
    let owners = metadata_mut(tree).get_mut("ownerReferences").and_then(Value::as_array_mut)?;
    let mut seen = BTreeSet::new();
    let is_first: Vec<bool> = owners.iter().map(|owner| seen.insert(Ordered(owner))).collect();
    if is_first.iter().all(|first| *first) {
        return None;
    }
    let mut repeated = BTreeSet::new();
    let again = owners.iter().zip(&is_first).filter(|(_, first)| !**first);
    let twice = again.map(|(owner, _)| owner.str_at(&["uid"]).unwrap_or_default());
    let twice: Vec<&str> = twice.filter(|uid| repeated.insert(*uid)).collect();
    let when = if is_body { "" } else { " after mutating admission happens" };
    let warning = format!(
        ".metadata.ownerReferences contains duplicate entries{when}; API server dedups owner \
         references in 1.20+, and may reject such requests as early as 1.24; please fix your \
         requests; duplicate UID(s) observed: {}",
        field::listed(twice)
    );
    let mut is_first = is_first.into_iter();
    owners.retain(|_| is_first.next().unwrap_or(true));
    Some(warning)
}

/// Marks an object as deleted, with a grace period unless `grace_seconds` is `None`.
pub(super) fn mark_deleting(tree: &mut Value, at_unix_micros: i64, grace_seconds: Option<i64>) {
    let metadata = metadata_mut(tree);
    metadata.insert("deletionTimestamp", time::format(at_unix_micros));
    if let Some(seconds) = grace_seconds {
        metadata.insert("deletionGracePeriodSeconds", seconds);
    }
}

/// Whether a deleted object has neither finalizers nor a grace period left (DEL-05; upstream:
/// ShouldDeleteDuringUpdate).
pub(super) fn may_remove(new: &Value, old: &Value) -> bool {
    let grace = old.at(&["metadata", "deletionGracePeriodSeconds"]).and_then(Value::as_int);
    object::is_terminating(old)
        && grace.unwrap_or(0) == 0
        && object::finalizers(new).next().is_none()
}
