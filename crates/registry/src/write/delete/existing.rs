//! The object that a DELETE names.
//!
//! Most deletions read and change only its metadata, and few users need more of it: a webhook, a
//! quota of its namespace. So the rest is decoded when something asks for it, and copied otherwise.

use std::borrow::Cow;
use std::sync::{Arc, OnceLock};

use pintle_meta::Status;
use pintle_store::{Expect, Kind, Write};
use pintle_value::Value;

use crate::admission::Stored;
use crate::object::ObjectHead;
use crate::write::commit::{copy_unchanged, encode, encode_metadata};
use crate::{Deletion, Object, Resource};

/// A stored object that is being deleted, in the strategy's form.
pub(super) struct Existing {
    object: Arc<Object>,
    state: State,
}

enum State {
    /// All members.
    Whole(Value),
    /// What the deletion reads and changes, and all members with that metadata, made on first use.
    Part(ObjectHead, OnceLock<Value>),
}

impl Existing {
    /// Decodes what the deletion of an object reads: all of an object that is converted, or that
    /// the deletion changes outside its metadata.
    pub(super) async fn read(resource: &Resource, object: &Arc<Object>) -> Result<Self, Status> {
        let strategy = &resource.strategy;
        let is_partial =
            resource.converter().is_none() && strategy.deletion() == Deletion::Graceful;
        let state = match is_partial {
            true => {
                let head = resource.head(object, strategy.grace_period_members())?;
                State::Part(head, OnceLock::new())
            }
            false => State::Whole(resource.current(object).await?),
        };
        Ok(Self { object: object.clone(), state })
    }

    /// Returns the object's `apiVersion` and `metadata`, and other members or not.
    pub(super) const fn head(&self) -> &Value {
        match &self.state {
            State::Whole(tree) => tree,
            State::Part(head, _) => &head.tree,
        }
    }

    /// Returns the same for changes.
    pub(super) fn head_mut(&mut self) -> &mut Value {
        match &mut self.state {
            State::Whole(tree) => tree,
            State::Part(head, whole) => {
                whole.take(); // it has the metadata before the change
                &mut head.tree
            }
        }
    }

    /// Returns the object before the deletion changed it, for what must be committed with the
    /// deletion: a quota that no longer counts an object whose grace period is over must not
    /// release it again because the deletion set another period. Only graceful deletions set one.
    pub(super) fn before(&self) -> Before<'_> {
        match &self.state {
            State::Whole(_) => Before::Changed(self),
            State::Part(..) => Before::Stored(&self.object, OnceLock::new()),
        }
    }

    /// Returns all of the object.
    pub(super) fn into_whole(self) -> Value {
        self.tree();
        match self.state {
            State::Whole(tree) => tree,
            State::Part(_, whole) => whole.into_inner().unwrap_or_default(),
        }
    }

    /// Encodes the object, as it was changed, as a write.
    pub(super) async fn encode(
        &self,
        resource: &Resource,
        namespaced_name: (&str, &str),
        expect: Expect,
        kind: Kind,
    ) -> Result<Write, Status> {
        if let Some(write) = self.copy(resource, namespaced_name, expect, kind)? {
            return Ok(write);
        }
        let stored = resource.to_storage(self.tree()).await?;
        encode(resource, namespaced_name, &stored, expect, kind)
    }

    /// Encodes the removal of the object, which was not changed, as it is stored.
    pub(super) fn encode_unchanged(
        &self,
        resource: &Resource,
        namespaced_name: (&str, &str),
        expect: Expect,
    ) -> Result<Write, Status> {
        if let State::Part(head, _) = &self.state
            && head.is_located()
            && let Some(write) = copy_unchanged(resource, namespaced_name, &self.object, expect)?
        {
            return Ok(write);
        }
        let stored = match resource.is_stored_form(&self.object) {
            true => Cow::Borrowed(self.tree()),
            false => Cow::Owned(self.object.tree()?),
        };
        encode(resource, namespaced_name, &stored, expect, Kind::Deleted)
    }

    /// Encodes the object by a copy of what was not decoded; `None` if it must be encoded as a
    /// whole.
    fn copy(
        &self,
        resource: &Resource,
        namespaced_name: (&str, &str),
        expect: Expect,
        kind: Kind,
    ) -> Result<Option<Write>, Status> {
        match &self.state {
            State::Whole(_) => Ok(None),
            State::Part(head, _) => {
                encode_metadata(resource, namespaced_name, (&self.object, head), expect, kind)
            }
        }
    }
}

/// The object before the deletion changed it.
pub(super) enum Before<'a> {
    Changed(&'a Existing),
    Stored(&'a Object, OnceLock<Value>),
}

impl Stored for Before<'_> {
    fn tree(&self) -> &Value {
        match self {
            Self::Changed(existing) => existing.tree(),
            Self::Stored(object, tree) => {
                tree.get_or_init(|| object.tree().expect("the object was checked when it was read"))
            }
        }
    }
}

impl Stored for Existing {
    fn tree(&self) -> &Value {
        let (head, whole) = match &self.state {
            State::Whole(tree) => return tree,
            State::Part(head, whole) => (head, whole),
        };
        whole.get_or_init(|| {
            let mut tree = self.object.tree().expect("the object was checked when it was read");
            if let Some(metadata) = head.tree.get("metadata") {
                tree.make_object().insert("metadata", metadata.clone());
            }
            tree
        })
    }
}
