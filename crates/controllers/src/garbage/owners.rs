//! Owner references: what an object says of its owners, and patches that say something else.

use std::collections::HashSet;

use pintle_meta::object;
use pintle_value::{Map, Str, Value};

/// The finalizer of an owner whose dependents are to stay.
pub(super) const ORPHAN: &str = "orphan";
/// The finalizer of an owner whose dependents go first.
pub(super) const FOREGROUND: &str = "foregroundDeletion";

/// What decides about an object's life: the rest of it is not decoded.
pub(super) const LIFE: &[&[&str]] = &[
    &["metadata", "uid"],
    &["metadata", "resourceVersion"],
    &["metadata", "deletionTimestamp"],
    &["metadata", "ownerReferences"],
    &["metadata", "finalizers"],
];

/// One owner of an object, as the object names it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Owner {
    pub(super) api_version: Str,
    pub(super) kind: Str,
    pub(super) name: Str,
    pub(super) uid: Str,
    /// Whether the owner's deletion in the foreground waits for this object.
    pub(super) blocks: bool,
}

/// The owners that an object names.
pub(super) fn owners(object: &Value) -> Vec<Owner> {
    let text = |reference: &Value, member| reference.str_at(&[member]).unwrap_or_default().into();
    references(object)
        .iter()
        .map(|reference| Owner {
            api_version: text(reference, "apiVersion"),
            kind: text(reference, "kind"),
            name: text(reference, "name"),
            uid: text(reference, "uid"),
            blocks: reference.get("blockOwnerDeletion") == Some(&Value::Bool(true)),
        })
        .collect()
}

/// Whether an object is being deleted with that finalizer.
pub(super) fn ends_with(object: &Value, finalizer: &str) -> bool {
    object::is_terminating(object) && object::finalizers(object).any(|f| f == finalizer)
}

/// A merge patch that takes owners away.
pub(super) fn without(object: &Value, uids: &[Str]) -> Value {
    let uids: HashSet<&str> = uids.iter().map(Str::as_str).collect();
    let named = |reference: &&Value| uids.contains(reference.str_at(&["uid"]).unwrap_or_default());
    let rest: Vec<Value> = references(object).iter().filter(|r| !named(r)).cloned().collect();
    patch(object, "ownerReferences", rest)
}

/// A merge patch after which no owner waits for the object.
pub(super) fn unblocking(object: &Value) -> Value {
    let mut references = references(object).to_vec();
    for reference in &mut references {
        if let Some(blocks) = reference.get_mut("blockOwnerDeletion") {
            *blocks = false.into();
        }
    }
    patch(object, "ownerReferences", references)
}

/// A merge patch that takes a finalizer away.
pub(super) fn without_finalizer(object: &Value, finalizer: &str) -> Value {
    let rest = object::finalizers(object).filter(|f| *f != finalizer).map(Value::from);
    patch(object, "finalizers", rest.collect())
}

/// Sets a list in the metadata of the very object that was looked at, in the state that was looked at.
fn patch(object: &Value, member: &str, list: Vec<Value>) -> Value {
    let mut metadata = Map::new();
    metadata.insert("uid", object::uid(object));
    metadata.insert("resourceVersion", object::resource_version(object));
    metadata.insert(member, if list.is_empty() { Value::Null } else { list.into() });
    let mut patch = Map::new();
    patch.insert("metadata", metadata);
    patch.into()
}

fn references(object: &Value) -> &[Value] {
    let references = object.at(&["metadata", "ownerReferences"]).and_then(Value::as_array);
    references.unwrap_or_default()
}
