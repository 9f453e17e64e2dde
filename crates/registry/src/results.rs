//! What the registry returns.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use pintle_meta::Status;
use pintle_store::Revision;
use pintle_value::Value;

use crate::{Object, Resource};

/// A result for which its caller waits.
pub type Waited<'a, T> = Pin<Box<dyn Future<Output = Result<T, Status>> + Send + 'a>>;

/// The result of a request about one object.
pub struct Outcome {
    /// The body of the response.
    pub body: ResponseBody,
    /// Whether an object was created: 201 instead of 200.
    pub created: bool,
    /// Whether the deletion was accepted and is not complete: 202.
    pub accepted: bool,
    /// Whether the request committed a change. If not, the result depends only on the state that
    /// was read.
    pub committed: bool,
}

/// The body of a response.
pub enum ResponseBody {
    /// A committed object of the target's resource. The caller sends it in the requested version
    /// ([`Resource::view`]).
    Object(Arc<Object>),
    /// A tree that is not stored in this form: the result of a dry run, a Scale, a review. It has
    /// `kind` and `apiVersion`. The text names its type in the resource's schema, for the order of
    /// members.
    Value(Value, String),
    /// A Status, as after a completed delete.
    Status(Status),
}

/// A list, not yet encoded.
pub struct List {
    /// The resource of the objects.
    pub resource: Arc<Resource>,
    /// The revision of the listed state.
    pub revision: Revision,
    /// The objects, sorted by namespace and name.
    pub objects: Vec<Arc<Object>>,
    /// Where the next page begins; `""` after the last page.
    pub continue_token: String,
    /// The number of objects after this page, if known.
    pub remaining: Option<u64>,
}

/// An event of a watch.
#[derive(Clone, Debug)]
pub enum Event {
    /// The object was created or entered the selection.
    Added(Arc<Object>),
    /// The object changed.
    Modified(Arc<Object>),
    /// The object was deleted or left the selection; this is the last state, at the revision of the
    /// change.
    Deleted(Arc<Object>),
    /// All events up to a revision were sent.
    Bookmark {
        /// The revision.
        revision: Revision,
        /// Whether the initial events end here: the annotation `k8s.io/initial-events-end` (SL-02).
        initial_end: bool,
    },
    /// The watch ends with this error.
    Error(Box<Status>),
}

impl Event {
    /// Returns the event, or an error event if its object is unreadable. Callers use it before they
    /// send the object's bytes.
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

    /// Returns the object of the event.
    pub const fn object(&self) -> Option<&Arc<Object>> {
        match self {
            Self::Added(object) | Self::Modified(object) | Self::Deleted(object) => Some(object),
            Self::Bookmark { .. } | Self::Error(_) => None,
        }
    }

    /// Returns the object of the event, mutable.
    pub(crate) const fn object_mut(&mut self) -> Option<&mut Arc<Object>> {
        match self {
            Self::Added(object) | Self::Modified(object) | Self::Deleted(object) => Some(object),
            Self::Bookmark { .. } | Self::Error(_) => None,
        }
    }
}
