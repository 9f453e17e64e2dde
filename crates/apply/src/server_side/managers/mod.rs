//! The managers of an object, the fields that each owns, and how writes change the ownership.
//!
//! Must not know: the layout of `metadata` beyond `managedFields`, requests, the clock.
//!
//! Invariant: between two writes no manager owns an empty set.

mod cap;
mod codec;
mod conflict;
mod owned;
mod prune;
mod scale;
mod write;

use std::{borrow::Cow, collections::BTreeMap};

use pintle_schema::{Schema, TypeId};
use pintle_value::{Str, Value};

pub(crate) use cap::cap;
pub(crate) use codec::{Record, Source, read, record, take, write};
pub(crate) use conflict::Conflicts;
pub(crate) use owned::Owned;
pub use scale::ScaleOwnership;
pub(crate) use write::{apply, create, grant, update};

use super::fieldset::{FieldSet, Filter};
use super::typed::Typing;

/// The operation by which a manager writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Operation {
    /// Server-side apply: the request contains the fields that the manager wants to own.
    Apply,
    /// Any other write: the manager owns the fields that it changes.
    Update,
}

impl Operation {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Apply => "Apply",
            Self::Update => "Update",
        }
    }
}

/// The identity of a manager: the key of an entry of `managedFields` (SSAI-04).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Identity {
    pub(crate) manager: Str,
    pub(crate) operation: Operation,
    /// The version of its writes; empty for appliers, which may change their version.
    api_version: Str,
    pub(crate) subresource: Str,
}

impl Identity {
    pub(crate) fn new(
        manager: &str,
        operation: Operation,
        api_version: &str,
        subresource: &str,
    ) -> Self {
        let api_version = match operation {
            Operation::Apply => Str::default(),
            Operation::Update => api_version.into(),
        };
        Self { manager: manager.into(), operation, api_version, subresource: subresource.into() }
    }
}

/// The managers of an object, with the fields that each owns.
pub(crate) type Managers = BTreeMap<Identity, Owned>;

/// The versions of a kind. Each entry of `managedFields` refers to the version in which its manager
/// wrote.
pub trait Versions: Sync {
    /// Returns the type of a version's objects and its schema; `None` if the version is not served
    /// (any more).
    fn type_of(&self, api_version: &str) -> Option<(&Schema, TypeId)>;

    /// Whether the types can have changed since managers wrote (SSA-31). This is so for custom
    /// resources.
    fn schema_may_have_changed(&self) -> bool {
        false
    }

    /// Converts an object from one served version to another.
    fn convert(&self, object: Value, from: &str, to: &str) -> Result<Value, String>;
}

/// A kind whose versions all have the same type.
#[derive(Clone, Copy, Debug)]
pub struct UniformVersions<'a>(pub &'a Schema, pub TypeId);

impl Versions for UniformVersions<'_> {
    fn type_of(&self, _: &str) -> Option<(&Schema, TypeId)> {
        Some((self.0, self.1))
    }

    fn convert(&self, object: Value, _: &str, _: &str) -> Result<Value, String> {
        Ok(object)
    }
}

/// The versions of the written kind, and the fields that the write can set.
#[derive(Clone, Copy)]
pub(crate) struct Kind<'a> {
    pub(crate) versions: &'a dyn Versions,
    /// The fields that a manager can get by this write.
    pub(crate) filter: &'a Filter,
}

impl<'a> Kind<'a> {
    fn typing(self, api_version: &str) -> Option<Typing<'a>> {
        self.versions.type_of(api_version).map(|(schema, ty)| Typing::new(schema, ty))
    }

    /// Returns the object in another version.
    fn convert<'v>(
        self,
        object: Cow<'v, Value>,
        from: &str,
        to: &str,
    ) -> Result<Cow<'v, Value>, String> {
        if from == to {
            return Ok(object);
        }
        self.versions.convert(object.into_owned(), from, to).map(Cow::Owned)
    }
}

/// Why a write cannot be tracked or applied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    /// Other managers own fields that the apply would change.
    Conflict(Conflicts),
    /// The object has items that cannot be identified, so no manager can own its fields.
    Untyped,
    /// Any other failure, with upstream's message.
    Other(String),
}
