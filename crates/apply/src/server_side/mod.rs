//! Server-side apply and field ownership: who owns what of an object, what becomes of it when
//! somebody writes, and how a configuration is merged into what is there (SSA, SSAI).
//!
//! The algorithm is that of upstream's structured-merge-diff and of the field managers around it;
//! `managedFields` and messages are theirs.
//!
//! Must not know: storage, requests, the clock (the time is an argument), what a kind means.
//!
//! Invariants: tracking an update cannot fail for what a client sent; an apply that changes nothing
//! leaves the object as it is, times included.

mod configuration;
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
pub use fieldset::{FieldSet, Filter, PathElement};
pub use managers::{Alike, Conflicts, ScaleOwnership, Versions};
pub use unowned::merge_unowned;

use managers::{Failure, Identity, Kind, Managers, Operation, Record, Source};
use typed::Typing;

use crate::Error;

/// The most updaters that an object remembers (SSAI-01).
const UPDATERS_MAX: usize = 10;

/// Who has what was there before anybody applied anything (SSAI-02).
const BEFORE_FIRST_APPLY: &str = "before-first-apply";

/// Who does not say who it is (SSAI-03).
const UNKNOWN: &str = "unknown";

/// Nobody can be said to have had what is there.
const NO_MANAGER: &str = "failed to create manager for existing fields";

/// Field ownership for one sort of write: to a resource or to one of its parts, in one version.
#[derive(Clone, Copy)]
pub struct Ownership<'a> {
    /// The versions of the kind, with their types.
    pub versions: &'a dyn Versions,
    /// The version that the request is in, and all objects that are given and returned.
    pub api_version: &'a str,
    /// The kind, for messages and to refuse others.
    pub kind: &'a str,
    /// The part that is written, such as `status`; empty for the resource itself.
    pub subresource: &'a str,
    /// What such a write can change: nobody owns anything else by it.
    pub filter: &'a Filter,
}

impl Ownership<'_> {
    /// Notes in `new`, which replaces `live` or is created, what `manager` changed.
    pub fn track_update(
        &self,
        live: Option<&Value>,
        new: &mut Value,
        manager: &str,
        now_unix_micros: i64,
    ) {
        let said = managers::record(new);
        if let Some(live) = live.filter(|live| same_but_for_managers(live, new)) {
            let is_recorded = live.at(&["metadata", "managedFields"]);
            let says_so = match &said {
                Record::Absent => true,
                Record::Reset => false,
                Record::Entries(entries) => is_recorded.and_then(Value::as_array) == Some(entries),
            };
            if says_so || !self.subresource.is_empty() {
                let entries = match said {
                    Record::Entries(entries) if says_so => Some(Value::Array(entries)),
                    _ => is_recorded.cloned(),
                };
                if let Some(entries) = entries {
                    new.object_entry("metadata").insert("managedFields", entries);
                }
                return;
            }
        }
        let stored = || live.map(stored_managers).unwrap_or_default();
        let mut known = match said {
            // A part's writers do not say who owns the whole.
            _ if !self.subresource.is_empty() => stored(),
            Record::Reset => Managers::new(),
            Record::Absent => stored(),
            Record::Entries(entries) => {
                let is_recorded = live.and_then(|live| live.at(&["metadata", "managedFields"]));
                let same = is_recorded.and_then(Value::as_array) == Some(&entries);
                let source = if same { Source::Store } else { Source::Client };
                let said: Option<Managers> = managers::read(entries, source).collect();
                said.filter(|said| !said.is_empty()).unwrap_or_else(stored)
            }
        };
        // Who is not tracked yet is tracked from the first apply on.
        if known.is_empty() && live.is_some_and(|live| stored_managers(live).is_empty()) {
            return;
        }
        let is_new = live.is_none() && known.is_empty();
        let live = live.map_or_else(|| Cow::Owned(self.empty()), Cow::Borrowed);
        let who = self.identity(manager, Operation::Update);
        let change = (&*live, &*new);
        let (kind, version) = (self.kind_of_write(), self.api_version);
        if is_new && let Some(owned) = managers::create(kind, version, change, now_unix_micros) {
            known.extend((!owned.is_empty()).then_some((who, owned)));
            return managers::write(new, known);
        }
        match managers::update(kind, version, change, &mut known, &who) {
            Ok(fields) => {
                managers::grant(&mut known, who, version, fields, now_unix_micros);
                managers::cap(&mut known, UPDATERS_MAX);
            }
            // As upstream: of an object whose items cannot be told apart nobody owns anything.
            Err(Failure::Untyped) => known.clear(),
            // A conversion that fails once must not cost the owners of before what they have.
            Err(Failure::Conflict(_) | Failure::Other(_)) => known = stored(),
        }
        managers::write(new, known);
    }

    /// Merges `applied` into `live`, or into nothing: the object that results is yet to be brought
    /// into the form of its schema, and defaulted.
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
        // While the object changes, its managers are not in it.
        let mut known = managers::take(&mut object);
        if known.is_empty() {
            self.note_what_was_there(&object, &mut known, now_unix_micros)?;
        }
        let who = self.identity(manager, Operation::Apply);
        let is_recorded = |object| last_applied::is_recorded(object, manager);
        let configuration = (is_recorded(&object) || is_recorded(applied)).then(|| applied.clone());
        let outcome = self.merge(&mut object, (applied, fields), &mut known, &who, force);
        let changed = outcome.map_err(|failure| match failure {
            Failure::Conflict(conflicts) => Error::Conflict(conflicts),
            Failure::Untyped => self.untyped(&object),
            Failure::Other(message) => Error::Unclassified(message),
        })?;
        if let Some(owned) = known.get_mut(&who).filter(|_| changed) {
            owned.unix_micros = Some(now_unix_micros);
        }
        managers::write(&mut object, known);
        if let Some(configuration) = configuration {
            last_applied::record(&mut object, configuration);
        }
        Ok(object)
    }

    /// Merges, by force if all that is in the way is what kubectl itself had applied (SSA-38). Says
    /// whether anything changed.
    fn merge(
        &self,
        live: &mut Value,
        applied: (&Value, FieldSet),
        known: &mut Managers,
        who: &Identity,
        force: bool,
    ) -> Result<bool, Failure> {
        let (kind, version) = (self.kind_of_write(), self.api_version);
        let again = last_applied::is_recorded(live, &who.manager) && !force;
        let is_recorded = again.then(|| (live.clone(), applied.clone(), known.clone()));
        let outcome = managers::apply(kind, version, live, applied, known, who, force);
        let (Some((before, applied, owners)), Err(Failure::Conflict(conflicts))) =
            (is_recorded, &outcome)
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
        managers::apply(kind, version, live, applied, known, who, true)
    }

    /// What is there already belongs to somebody, too.
    fn note_what_was_there(
        &self,
        live: &Value,
        known: &mut Managers,
        now_unix_micros: i64,
    ) -> Result<(), Error> {
        let change = (&self.empty(), live);
        let who = self.identity(BEFORE_FIRST_APPLY, Operation::Update);
        let fields = managers::update(self.kind_of_write(), self.api_version, change, known, &who)
            .map_err(|failure| match failure {
                Failure::Untyped => self.untyped(live),
                _ => Error::Unclassified(NO_MANAGER.into()),
            })?;
        managers::grant(known, who, self.api_version, fields, now_unix_micros);
        Ok(())
    }

    /// A configuration must be of the kind and version (SSA-49).
    fn check_kind(&self, applied: &Value) -> Result<(), Error> {
        let text = |member| applied.str_at(&[member]).unwrap_or_default();
        let (version, kind) = (text("apiVersion"), text("kind"));
        if (version, kind) == (self.api_version, self.kind) {
            return Ok(());
        }
        let group = if version.contains('/') { "" } else { "/" };
        Err(Error::Malformed(format!("invalid object type: {group}{version}, Kind={kind}")))
    }

    /// The fields of a configuration, which must fit the types (SSA-50).
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

    /// Nobody can apply to an object whose items cannot be told apart.
    fn untyped(&self, live: &Value) -> Error {
        let problems = self.typing().and_then(|ty| typed::check(ty, live, true).err());
        let (namespace, name) = (object::namespace(live), object::name(live));
        Error::Unclassified(format!(
            "{NO_MANAGER}: failed to convert new object ({namespace}/{name}; {}) to smd typed: {}",
            self.gvk(),
            problems.unwrap_or_default()
        ))
    }

    /// As Go's `GroupVersionKind` shows itself.
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

    /// An object of which nothing was given: members that are always there are nobody's doing.
    fn empty(&self) -> Value {
        let mut object = Value::object();
        if let Some((schema, ty)) = self.versions.type_of(self.api_version) {
            // An empty object has nothing that could be wrong.
            let _ = conform(schema, ty, &mut object);
        }
        object
    }
}

/// The managers of a stored object. What cannot be read of them is dropped (SSAI-08).
fn stored_managers(object: &Value) -> Managers {
    let entries = object.at(&["metadata", "managedFields"]).and_then(Value::as_array);
    let entries = entries.unwrap_or_default().iter().cloned();
    managers::read(entries, Source::Store).flatten().collect()
}

/// A configuration says nothing of owners (SSA-20).
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

/// Whether two objects are the same but for the times of their managers: such a write changes
/// nothing (SSAI-09, SSAI-11).
pub fn same_but_for_times(a: &Value, b: &Value) -> bool {
    fn entries(object: &Value) -> impl Iterator<Item = Vec<(&str, &Value)>> {
        let entries = object.at(&["metadata", "managedFields"]).and_then(Value::as_array);
        entries.unwrap_or_default().iter().map(|entry| members(entry, "time").collect())
    }
    same_but_for_managers(a, b) && entries(a).eq(entries(b))
}

fn same_but_for_managers(a: &Value, b: &Value) -> bool {
    let metadata = |object| Value::get(object, "metadata").unwrap_or(&Value::Null);
    members(a, "metadata").eq(members(b, "metadata"))
        && members(metadata(a), "managedFields").eq(members(metadata(b), "managedFields"))
}

/// The members of an object without one of them.
fn members<'v>(object: &'v Value, without: &str) -> impl Iterator<Item = (&'v str, &'v Value)> {
    let members = object.as_object().map_or(&[][..], |members| members.as_slice());
    members.iter().map(|(k, v)| (k.as_str(), v)).filter(move |(k, _)| *k != without)
}
