//! Reads owner references and the states of owners from objects, and creates patches of references.

use std::collections::{HashMap, HashSet};
use std::sync::LazyLock;

use memchr::memmem::{self, Finder};
use pintle_meta::object;
use pintle_registry::{Object, Unreadable};
use pintle_value::{Map, Str, Value, json};

/// The finalizer of an owner whose dependents remain.
pub(super) const ORPHAN: &str = "orphan";
/// The finalizer of an owner whose blocking dependents are deleted first.
pub(super) const FOREGROUND: &str = "foregroundDeletion";

/// Decodes the members of an object on which decisions about it depend, and no others.
pub(super) fn lifecycle(object: &Object) -> Result<Value, Unreadable> {
    members(object, LIFECYCLE)
}

/// Decodes the members of an owner on which decisions about its dependents depend. Its own owners
/// do not matter, and there may be many.
pub(super) fn owner_lifecycle(object: &Object) -> Result<Value, Unreadable> {
    members(object, OWNER_LIFECYCLE)
}

fn members(object: &Object, wanted: &[&'static str]) -> Result<Value, Unreadable> {
    let mut metadata = Map::new();
    for (name, rest) in object.metadata()? {
        // The managed fields are long. If the members are in the order of their type, they are the
        // last; if they are sorted, the uid comes after them.
        if name == b"managedFields" && metadata.contains_key("uid") {
            break;
        }
        if let Some(name) = wanted.iter().find(|wanted| wanted.as_bytes() == name) {
            let value = json::parse(json::first(rest)).map_err(|why| object.unreadable(why))?;
            metadata.insert(*name, value);
        }
    }
    let mut tree = Map::new();
    tree.insert("metadata", metadata);
    Ok(tree.into())
}

/// Whether the JSON of an object may say that it is being deleted. The search is prepared once,
/// which takes longer than a search.
pub(crate) fn may_be_terminating(json: &[u8]) -> bool {
    static FINDER: LazyLock<Finder<'_>> = LazyLock::new(|| Finder::new("\"deletionTimestamp\""));
    FINDER.find(json).is_some()
}

/// Whether the JSON of an object may say that it has owners.
pub(super) fn may_have_owners(json: &[u8]) -> bool {
    static FINDER: LazyLock<Finder<'_>> = LazyLock::new(|| Finder::new("\"ownerReferences\""));
    FINDER.find(json).is_some()
}

/// Whether the JSON of an object contains a name or another text.
pub(super) fn is_in(json: &[u8], text: &str) -> bool {
    memmem::find(json, text.as_bytes()).is_some()
}

const LIFECYCLE: &[&str] =
    &["uid", "resourceVersion", "deletionTimestamp", "ownerReferences", "finalizers"];
const OWNER_LIFECYCLE: &[&str] = &["uid", "deletionTimestamp", "finalizers"];

/// An owner reference of an object.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Owner {
    pub(super) api_version: Str,
    pub(super) kind: Str,
    pub(super) name: Str,
    pub(super) uid: Str,
    /// Whether a foreground deletion of the owner waits for this object (`blockOwnerDeletion`).
    pub(super) blocks: bool,
}

impl Owner {
    /// What the reference names: `apiVersion`, `kind` and name.
    pub(super) fn named(&self) -> (&str, &str, &str) {
        (&self.api_version, &self.kind, &self.name)
    }
}

/// The state of an owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OwnerState {
    Alive,
    /// No object has this UID.
    Absent,
    /// It is being deleted in the foreground and waits for its dependents.
    Waiting,
    /// Its kind is not served.
    Unknown,
}

/// The states of owners, by their references.
pub(super) type OwnerStates = HashMap<Owner, OwnerState>;

/// The object that has an owner's name. It is read once for all references that name it, because
/// references with other UIDs can name the same object.
pub(super) struct Named {
    uid: Str,
    waits: bool,
}

impl Named {
    pub(super) fn of(tree: &Value) -> Self {
        Self { uid: object::uid(tree).into(), waits: is_finalizing(tree, FOREGROUND) }
    }

    /// Reads an object of the registry.
    pub(super) fn read(object: &Object) -> Result<Self, Unreadable> {
        owner_lifecycle(object).map(|tree| Self::of(&tree))
    }

    /// The state of the owner with this UID.
    pub(super) fn state(named: Option<&Self>, uid: &str) -> OwnerState {
        match named.filter(|named| named.uid == uid) {
            None => OwnerState::Absent,
            Some(named) if named.waits => OwnerState::Waiting,
            Some(_) => OwnerState::Alive,
        }
    }
}

/// The objects that owner references name, by `apiVersion`, `kind` and name; `None` if there is no
/// such object. The dependent determines the namespace.
pub(super) type AllNamed<'o> = HashMap<(&'o str, &'o str, &'o str), Option<Named>>;

/// The owner references of an object.
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

/// Whether an object is being deleted with this finalizer.
pub(super) fn is_finalizing(object: &Value, finalizer: &str) -> bool {
    object::is_terminating(object) && object::finalizers(object).any(|f| f == finalizer)
}

/// A merge patch that removes owners.
pub(super) fn without(object: &Value, uids: &[Str]) -> Value {
    let uids: HashSet<&str> = uids.iter().map(Str::as_str).collect();
    let named = |reference: &&Value| uids.contains(reference.str_at(&["uid"]).unwrap_or_default());
    let rest: Vec<Value> = references(object).iter().filter(|r| !named(r)).cloned().collect();
    patch(object, "ownerReferences", rest)
}

/// A merge patch that makes all owner references non-blocking.
pub(super) fn unblocking(object: &Value) -> Value {
    let mut references = references(object).to_vec();
    for reference in &mut references {
        if let Some(blocks) = reference.get_mut("blockOwnerDeletion") {
            *blocks = false.into();
        }
    }
    patch(object, "ownerReferences", references)
}

/// A merge patch that removes a finalizer.
pub(super) fn without_finalizer(object: &Value, finalizer: &str) -> Value {
    let rest = object::finalizers(object).filter(|f| *f != finalizer).map(Value::from);
    patch(object, "finalizers", rest.collect())
}

/// A merge patch that sets a list in the metadata, with `uid` and `resourceVersion` as
/// preconditions.
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
