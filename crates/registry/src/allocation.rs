//! Allocation: shared values, such as addresses and ports, that objects of a kind take from a pool
//! and give back.
//!
//! A write calls its allocator twice. Before the object is prepared, `assign` sets missing values
//! (upstream: `BeginCreate`, `BeginUpdate`). At the commit, `companions` returns the writes that
//! must be committed with the object. So an allocation is a committed key: it appears and
//! disappears with the object, and the store rejects a key that is taken already. Nothing has to be
//! rolled back, and a crash leaves nothing behind.

use std::sync::Arc;

use pintle_meta::Status;
use pintle_store::{Change, Expect, Key, Revision, Template, Write};
use pintle_value::{Str, Value, json};

use crate::request::Now;
use crate::{Object, Registry, Resource};

/// Assigns shared values (addresses, ports) to the objects of a kind.
///
/// An allocator reads committed state and has no other state. A concurrent write may take a value
/// that the allocator found free. Then the commit conflicts, and the allocator is called again.
pub trait Allocator: Send + Sync {
    /// Sets the missing values of an object and refuses values that the object cannot have. `old`
    /// is the stored object, on updates. A dry run gets example values.
    fn assign(
        &self,
        registry: &Registry,
        new: &mut Value,
        old: Option<&Value>,
        dry_run: bool,
    ) -> Result<(), Status>;

    /// Returns the companions of a write that changes an object from `old` to `new`; `None` stands
    /// for an object that does not exist.
    fn companions(
        &self,
        registry: &Registry,
        old: Option<&Value>,
        new: Option<&Value>,
        now: Now,
    ) -> Result<Vec<Companion>, Status>;
}

/// A change that is committed together with a write: both or neither.
pub struct Companion(pub(crate) Part);

pub(crate) enum Part {
    /// Another write.
    Write(Write),
    /// A precondition: this object is still at this revision.
    Unchanged(Key, Revision),
    /// A change of an object that many writes change.
    Posting(Posting),
}

/// A change of an object that many concurrent writes change, such as a quota's status. The writer
/// does not compute the new state, because other writers would make it stale. The posting computes
/// the new state when its batch is committed, from the state that earlier postings have made.
pub(crate) struct Posting {
    pub(crate) resource: Arc<Resource>,
    pub(crate) namespace: Str,
    pub(crate) name: Str,
    pub(crate) now: Now,
    pub(crate) post: Post,
}

/// Changes an object's state. It must leave the state as it is unless it returns
/// [`Posted::Changed`], because the next posting of the batch gets the same state.
pub type Post = Box<dyn Fn(&mut Value) -> Result<Posted, Status> + Send>;

/// The result of a posting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Posted {
    /// The object must be written.
    Changed,
    /// The object is unchanged.
    Unchanged,
    /// The object is not the one that the writer saw: the writer must compute a new posting.
    Outdated,
}

impl Companion {
    /// Marks a value as taken: a key without an object, in a collection that clients do not see.
    pub fn mark(collection: &str, item: &str, by: &str) -> Self {
        Self(Part::Write(Write {
            key: mark_key(collection, item),
            expect: Expect::Absent,
            change: Change::Put(text_value(by)),
            note: None,
        }))
    }

    /// A precondition of the commit: the object was not written since it was read.
    ///
    /// # Errors
    /// If objects of the resource are not stored.
    pub fn unchanged(resource: &Resource, object: &Object) -> Result<Self, Status> {
        let key = resource.key(object.namespace(), object.name())?;
        Ok(Self(Part::Unchanged(key, object.revision)))
    }

    /// A change of an object that many writes change.
    pub fn posting(
        resource: &Arc<Resource>,
        (namespace, name): (&str, &str),
        now: Now,
        post: Post,
    ) -> Self {
        let (resource, namespace, name) = (resource.clone(), namespace.into(), name.into());
        Self(Part::Posting(Posting { resource, namespace, name, now, post }))
    }
}

impl Registry {
    /// Whether a value is marked as taken.
    pub fn is_marked(&self, collection: &str, item: &str) -> bool {
        self.cache.collection(&collection.into()).get(item).is_some()
    }

    /// Returns the removal of a mark, if there is one.
    pub fn unmark(&self, collection: &str, item: &str) -> Option<Companion> {
        let marked = self.cache.collection(&collection.into()).get(item)?;
        Some(Companion(Part::Write(Write {
            key: mark_key(collection, item),
            expect: Expect::At(marked.revision),
            change: Change::Delete(Template::whole(marked.json().to_vec())),
            note: None,
        })))
    }

    /// Returns the removals of all marks in a collection.
    pub fn marks(&self, collection: &str) -> Vec<Companion> {
        let marks = self.cache.collection(&collection.into());
        let marks = marks.snapshot(self.cache.visible()).objects.into_iter();
        marks.filter_map(|mark| self.unmark(collection, &mark.item)).collect()
    }
}

fn mark_key(collection: &str, item: &str) -> Key {
    Key { collection: collection.into(), item: item.into() }
}

fn text_value(text: &str) -> Template {
    Template::whole(json::to_string(&Value::from(text)).into())
}
