//! What the registry answers.

use std::sync::Arc;

use pintle_meta::Status;
use pintle_store::Revision;
use pintle_value::Value;

use crate::{Object, Resource};

/// The answer to a request about one object.
pub struct Outcome {
    /// What to send.
    pub answer: Answer,
    /// 201 or 200.
    pub created: bool,
    /// 202: the deletion is accepted and goes on.
    pub accepted: bool,
    /// Something was written; without, the answer follows from the state that the request found.
    pub committed: bool,
}

/// What to send.
pub enum Answer {
    /// A committed object of the target's resource; send it in the version that was asked for
    /// ([`Resource::view`]).
    Object(Arc<Object>),
    /// A tree that is not kept like this: a dry run's result, a Scale, a review. It has its `kind` and
    /// `apiVersion`; the name is that of its type in the resource's schema, for the order of members.
    Value(Value, String),
    /// A Status, as for a completed delete.
    Status(Status),
}

/// A list, not yet encoded.
pub struct List {
    /// Of this resource.
    pub resource: Arc<Resource>,
    /// The state that it shows.
    pub revision: Revision,
    /// In the order of namespace and name.
    pub objects: Vec<Arc<Object>>,
    /// Where the next page begins; `""` at the end.
    pub continue_token: String,
    /// How many there are after this page, where that is known.
    pub remaining: Option<u64>,
}

/// What a watcher is told.
#[derive(Clone, Debug)]
pub enum Event {
    /// The object is new to the watcher.
    Added(Arc<Object>),
    /// It changed.
    Modified(Arc<Object>),
    /// It is gone, or no longer selected; the object is the last state, at the revision of the change.
    Deleted(Arc<Object>),
    /// Everything up to this revision has been told. The flag marks the end of the initial events.
    Bookmark {
        /// Everything up to here has been told.
        revision: Revision,
        /// Carries the annotation `k8s.io/initial-events-end` (SL-02).
        initial_end: bool,
    },
    /// The watch ends with this failure.
    Error(Box<Status>),
}

impl Event {
    /// The event, if its object can be read, else that it cannot: for whoever hands the object's bytes on.
    #[must_use]
    pub fn checked(self) -> Self {
        match &self {
            Self::Added(object) | Self::Modified(object) | Self::Deleted(object) => {
                match object.check() {
                    Ok(()) => self,
                    Err(why) => Self::Error(Box::new(why.into())),
                }
            }
            Self::Bookmark { .. } | Self::Error(_) => self,
        }
    }

    /// The object that it tells of.
    pub const fn object(&self) -> Option<&Arc<Object>> {
        match self {
            Self::Added(object) | Self::Modified(object) | Self::Deleted(object) => Some(object),
            Self::Bookmark { .. } | Self::Error(_) => None,
        }
    }

    /// The same, to be changed.
    pub(crate) const fn object_mut(&mut self) -> Option<&mut Arc<Object>> {
        match self {
            Self::Added(object) | Self::Modified(object) | Self::Deleted(object) => Some(object),
            Self::Bookmark { .. } | Self::Error(_) => None,
        }
    }
}
