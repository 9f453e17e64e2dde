//! Server-side apply and field ownership: which manager owns which field, how a write changes the
//! owners, and how an applied configuration is merged into the live object (SSA, SSAI).
//!
//! The algorithm is that of upstream's structured-merge-diff and of the field managers around it;
//! the format of `managedFields` and the messages are upstream's.
//!
//! Must not know: storage, requests, the clock (the time is an argument), the meaning of a kind.
//!
//! Invariants: no input of a client can make the tracking of an update fail; an apply that changes
//! nothing leaves the object as it is, times included.

mod configuration;
mod created_fields;
mod fieldset;
mod last_applied;
mod managers;
#[cfg(test)]
mod tests;
mod typed;
mod unowned;

use std::borrow::Cow;

use pintle_meta::object;
use pintle_schema::conform;
use pintle_value::Value;

pub use configuration::Configuration;
pub use created_fields::CreatedFields;
pub use fieldset::{Element, FieldSet, Filter, PathElement};
pub use managers::{ScaleOwnership, UniformVersions, Versions};
pub use unowned::merge_unowned;

use managers::{Failure, Identity, Kind, Managers, Operation, Owned, Record, Source};
use typed::Typing;

use crate::Error;

/// The maximum number of updaters in an object's `managedFields` (SSAI-01).
const UPDATERS_MAX: usize = 10;

/// The manager that owns the fields that existed before the first apply (SSAI-02).
const BEFORE_FIRST_APPLY: &str = "before-first-apply";

/// The manager of requests that name none (SSAI-03).
const UNKNOWN: &str = "unknown";

/// Upstream's error if a manager cannot own the existing fields.
const NO_MANAGER: &str = "failed to create manager for existing fields";

/// Tracks field ownership for one kind of write: to a resource or a subresource, in one version.
#[derive(Clone, Copy)]
pub struct Ownership<'a> {
    /// The versions of the kind, with their types.
    pub versions: &'a dyn Versions,
    /// The version of the request, and of all objects that are passed in and returned.
    pub api_version: &'a str,
    /// The kind that an applied configuration must have.
    pub kind: &'a str,
    /// The subresource that is written, such as `status`; empty for the resource itself.
    pub subresource: &'a str,
    /// The fields that such a write can set. A write gives its manager no other fields.
    pub filter: &'a Filter,
    /// The fields of the objects that such writes created last, if they are remembered.
    pub created: Option<&'a CreatedFields>,
}

impl Ownership<'_> {
    /// Records in `new` which fields `manager` changed. `new` replaces `live`, or is created.
    pub fn track_update(
        &self,
        live: Option<&Value>,
        new: &mut Value,
        manager: &str,
        now_unix_micros: i64,
    ) {
        let submitted = managers::record(new);
        if let Some(live) = live.filter(|live| same_but_for_managers(live, new)) {
            let stored = live.at(&["metadata", "managedFields"]);
            let unchanged = match &submitted {
                Record::Absent => true,
                Record::Reset => false,
                Record::Entries(entries) => stored.and_then(Value::as_array) == Some(entries),
            };
            if unchanged || !self.subresource.is_empty() {
                let entries = match submitted {
                    Record::Entries(entries) if unchanged => Some(Value::Array(entries)),
                    _ => stored.cloned(),
                };
                if let Some(entries) = entries {
                    new.object_entry("metadata").insert("managedFields", entries);
                }
                return;
            }
        }
        let stored = || live.map(stored_managers).unwrap_or_default();
        let mut known = match submitted {
            // A write to a subresource cannot set `managedFields`.
            _ if !self.subresource.is_empty() => stored(),
            Record::Reset => Managers::new(),
            Record::Absent => stored(),
            Record::Entries(entries) => {
                let before = live.and_then(|live| live.at(&["metadata", "managedFields"]));
                let same = before.and_then(Value::as_array) == Some(&entries);
                let source = if same { Source::Store } else { Source::Client };
                let submitted: Option<Managers> = managers::read(entries, source).collect();
                submitted.filter(|submitted| !submitted.is_empty()).unwrap_or_else(stored)
            }
        };
        // An object without managers is tracked from the first apply on.
        if known.is_empty() && live.is_some_and(|live| stored_managers(live).is_empty()) {
            return;
        }
        let identity = self.identity(manager, Operation::Update);
        let (kind, version) = (self.kind_of_write(), self.api_version);
        if live.is_none()
            && known.is_empty()
            && let Some(fields) = self.fields_of_new(new)
        {
            let owned = Owned::from_json(version.into(), fields, Some(now_unix_micros));
            known.extend((!owned.is_empty()).then_some((identity, owned)));
            return managers::write(new, known);
        }
        let live = live.map_or_else(|| Cow::Owned(self.empty()), Cow::Borrowed);
        let change = (&*live, &*new);
        match managers::update(kind, version, change, &mut known, &identity) {
            Ok(fields) => {
                managers::grant(&mut known, identity, version, fields, now_unix_micros);
                managers::cap(&mut known, UPDATERS_MAX);
            }
            // As upstream: an object with items that cannot be identified has no managers.
            Err(Failure::Untyped) => known.clear(),
            // A failed conversion must not remove the existing owners.
            Err(Failure::Conflict(_) | Failure::Other(_)) => known = stored(),
        }
        managers::write(new, known);
    }

    /// Returns the fields, as FieldsV1, that the writer of a new object without managers owns;
    /// `None` where only a comparison can tell.
    fn fields_of_new(&self, new: &Value) -> Option<Box<str>> {
        self.created.and_then(|created| created.of(new)).or_else(|| {
            let change = (&self.empty(), new);
            managers::create(self.kind_of_write(), self.api_version, change, self.created)
        })
    }

    /// Merges `applied` into `live`, or into an empty object. The caller must still conform the
    /// result to its schema and default it.
    pub fn apply(
        &self,
        live: Option<Value>,
        applied: &Value,
        manager: &str,
        force: bool,
        now_unix_micros: i64,
    ) -> Result<Value, Error> {
        self.check_kind(applied)?;
        let applied = &*without_managers(applied)?;
        let fields = self.check(applied)?;
        let mut object = live.unwrap_or_else(|| self.empty());
        // The managers are taken out of the object while it changes.
        let mut known = managers::take(&mut object);
        if known.is_empty() {
            self.record_existing_fields(&object, &mut known, now_unix_micros)?;
        }
        let identity = self.identity(manager, Operation::Apply);
        let has_last_applied = |object| last_applied::is_recorded(object, manager);
        let records = has_last_applied(&object) || has_last_applied(applied);
        let configuration = records.then(|| applied.clone());
        let outcome = self.merge(&mut object, (applied, fields), &mut known, &identity, force);
        let changed = outcome.map_err(|failure| match failure {
            Failure::Conflict(conflicts) => conflicts.into_error(),
            Failure::Untyped => self.untyped(&object),
            Failure::Other(message) => Error::Unclassified(message),
        })?;
        if let Some(owned) = known.get_mut(&identity).filter(|_| changed) {
            owned.unix_micros = Some(now_unix_micros);
        }
        managers::write(&mut object, known);
        if let Some(configuration) = configuration {
            last_applied::record(&mut object, configuration);
        }
        Ok(object)
    }

    /// Merges, and forces the merge if kubectl itself applied all conflicting fields on the client
    /// side (SSA-38). Returns whether anything changed.
    fn merge(
        &self,
        live: &mut Value,
        applied: (&Value, FieldSet),
        known: &mut Managers,
        identity: &Identity,
        force: bool,
    ) -> Result<bool, Failure> {
        let (kind, version) = (self.kind_of_write(), self.api_version);
        let may_repeat = last_applied::is_recorded(live, &identity.manager) && !force;
        let saved = may_repeat.then(|| (live.clone(), applied.clone(), known.clone()));
        let outcome = managers::apply(kind, version, live, applied, known, identity, force);
        let (Some((before, applied, owners)), Err(Failure::Conflict(conflicts))) =
            (saved, &outcome)
        else {
            return outcome;
        };
        let own = self.typing().and_then(|ty| last_applied::fields(ty, version, &before));
        let Some(own) = own else { return outcome };
        let conflicts = conflicts.clone().without(&own);
        if !conflicts.is_empty() {
            return Err(Failure::Conflict(conflicts));
        }
        (*live, *known) = (before, owners);
        managers::apply(kind, version, live, applied, known, identity, true)
    }

    /// Gives the existing fields to the manager [`BEFORE_FIRST_APPLY`].
    fn record_existing_fields(
        &self,
        live: &Value,
        known: &mut Managers,
        now_unix_micros: i64,
    ) -> Result<(), Error> {
        let change = (&self.empty(), live);
        let identity = self.identity(BEFORE_FIRST_APPLY, Operation::Update);
        let fields =
            managers::update(self.kind_of_write(), self.api_version, change, known, &identity)
                .map_err(|failure| match failure {
                    Failure::Untyped => self.untyped(live),
                    _ => Error::Unclassified(NO_MANAGER.into()),
                })?;
        managers::grant(known, identity, self.api_version, fields, now_unix_micros);
        Ok(())
    }

    /// Checks that a configuration is of the expected kind and version (SSA-49).
    fn check_kind(&self, applied: &Value) -> Result<(), Error> {
        let text = |member| applied.str_at(&[member]).unwrap_or_default();
        let (version, kind) = (text("apiVersion"), text("kind"));
        if (version, kind) == (self.api_version, self.kind) {
            return Ok(());
        }
        let group = if version.contains('/') { "" } else { "/" };
        Err(Error::Malformed(format!("invalid object type: {group}{version}, Kind={kind}")))
    }

    /// Returns the fields of a configuration, which must match the types (SSA-50).
    fn check(&self, applied: &Value) -> Result<FieldSet, Error> {
        let Some(ty) = self.typing() else {
            let message = format!("no corresponding type for {}", self.gvk());
            return Err(Error::Unclassified(message));
        };
        typed::check(ty, applied, false).map_err(|problems| {
            let (namespace, name) = (object::namespace(applied), object::name(applied));
            Error::Unclassified(format!(
                "failed to create typed patch object ({namespace}/{name}; {}): {problems}",
                self.gvk()
            ))
        })
    }

    /// The error for an apply to an object whose items cannot be identified.
    fn untyped(&self, live: &Value) -> Error {
        let problems = self.typing().and_then(|ty| typed::check(ty, live, true).err());
        let (namespace, name) = (object::namespace(live), object::name(live));
        Error::Unclassified(format!(
            "{NO_MANAGER}: failed to convert new object ({namespace}/{name}; {}) to smd typed: {}",
            self.gvk(),
            problems.unwrap_or_default()
        ))
    }

    /// The group, version and kind in the format of Go's `GroupVersionKind.String`.
    fn gvk(&self) -> String {
        let group = if self.api_version.contains('/') { "" } else { "/" };
        format!("{group}{}, Kind={}", self.api_version, self.kind)
    }

    fn typing(&self) -> Option<Typing<'_>> {
        let (schema, ty) = self.versions.type_of(self.api_version)?;
        Some(Typing::new(schema, ty))
    }

    fn kind_of_write(&self) -> Kind<'_> {
        Kind { versions: self.versions, filter: self.filter }
    }

    fn identity(&self, manager: &str, operation: Operation) -> Identity {
        let manager = if manager.is_empty() { UNKNOWN } else { manager };
        Identity::new(manager, operation, self.api_version, self.subresource)
    }

    /// Returns the object for an empty body. It has only the members that are always present, which
    /// have no owner.
    fn empty(&self) -> Value {
        let mut object = Value::object();
        if let Some((schema, ty)) = self.versions.type_of(self.api_version) {
            // An empty object cannot have errors.
            let _ = conform(schema, ty, &mut object);
        }
        object
    }
}

/// Reads the managers of a stored object. Invalid entries are dropped (SSAI-08).
fn stored_managers(object: &Value) -> Managers {
    let entries = object.at(&["metadata", "managedFields"]).and_then(Value::as_array);
    let entries = entries.unwrap_or_default().iter().cloned();
    managers::read(entries, Source::Store).flatten().collect()
}

/// Returns the configuration without `managedFields`, which must be null or absent (SSA-20).
fn without_managers(applied: &Value) -> Result<Cow<'_, Value>, Error> {
    match applied.at(&["metadata", "managedFields"]) {
        None => Ok(Cow::Borrowed(applied)),
        Some(Value::Null) => {
            let mut applied = applied.clone();
            applied.object_entry("metadata").remove("managedFields");
            Ok(Cow::Owned(applied))
        }
        Some(_) => Err(Error::malformed("metadata.managedFields must be nil")),
    }
}

/// Whether two objects are equal except for the times of their managers. A write with this result
/// changes nothing (SSAI-09, SSAI-11).
pub fn same_but_for_times(a: &Value, b: &Value) -> bool {
    fn entries(object: &Value) -> impl Iterator<Item = Vec<(&str, &Value)>> {
        let entries = object.at(&["metadata", "managedFields"]).and_then(Value::as_array);
        entries.unwrap_or_default().iter().map(|entry| members(entry, "time").collect())
    }
    same_but_for_managers(a, b) && entries(a).eq(entries(b))
}

fn same_but_for_managers(a: &Value, b: &Value) -> bool {
    // The parts that change most often come first: the metadata, and a status, behind the spec.
    let metadata = |object| Value::get(object, "metadata").unwrap_or(&Value::Null);
    members(metadata(a), "managedFields").eq(members(metadata(b), "managedFields"))
        && members(a, "metadata").rev().eq(members(b, "metadata").rev())
}

/// The members of an object except the member `without`.
fn members<'v>(
    object: &'v Value,
    without: &str,
) -> impl DoubleEndedIterator<Item = (&'v str, &'v Value)> {
    let members = object.as_object().map_or(&[][..], |members| members.as_slice());
    members.iter().map(|(k, v)| (k.as_str(), v)).filter(move |(k, _)| *k != without)
}
