//! Who owns what of an object, and what writes make of that.
//!
//! Must not know: how `metadata` is laid out beyond `managedFields`, requests, the clock.
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
pub use conflict::Conflicts;
pub(crate) use owned::Owned;
pub use scale::ScaleOwnership;
pub(crate) use write::{Failure, apply, create, grant, update};

use super::fieldset::{FieldSet, Filter};
use super::typed::Typing;

/// How a manager writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Operation {
    /// It says what it wants.
    Apply,
    /// It says what is to be.
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

/// Who a manager is (SSAI-04).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Identity {
    pub(crate) manager: Str,
    pub(crate) operation: Operation,
    /// Of its writes; empty for appliers, who may change it.
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

/// The managers of an object.
pub(crate) type Managers = BTreeMap<Identity, Owned>;

/// The versions of a kind: entries of managed fields are of the version that a manager wrote in.
pub trait Versions: Sync {
    /// The type of the objects of a version, with its schema; `None` if the version is not served,
    /// or not any more.
    fn type_of(&self, api_version: &str) -> Option<(&Schema, TypeId)>;

    /// Whether the types can have changed since managers wrote (SSA-31): those of custom resources can.
    fn may_have_changed(&self) -> bool {
        false
    }

    /// An object of one served version as one of another, or why that cannot be.
    fn convert(&self, object: Value, from: &str, to: &str) -> Result<Value, String>;
}

/// A kind whose versions are all alike.
#[derive(Clone, Copy, Debug)]
pub struct Alike<'a>(pub &'a Schema, pub TypeId);

impl Versions for Alike<'_> {
    fn type_of(&self, _: &str) -> Option<(&Schema, TypeId)> {
        Some((self.0, self.1))
    }

    fn convert(&self, object: Value, _: &str, _: &str) -> Result<Value, String> {
        Ok(object)
    }
}

/// What a write needs to know of the kind.
#[derive(Clone, Copy)]
pub(crate) struct Kind<'a> {
    pub(crate) versions: &'a dyn Versions,
    /// What writes like this one can set, and so somebody owns by them.
    pub(crate) filter: &'a Filter,
}

impl<'a> Kind<'a> {
    fn typing(self, api_version: &str) -> Option<Typing<'a>> {
        self.versions.type_of(api_version).map(|(schema, ty)| Typing::new(schema, ty))
    }

    /// The object in another version.
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
