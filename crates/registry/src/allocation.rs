//! The allocation seam: what objects of a kind take from a pool that they share, and give back.
//!
//! An allocator decides twice in a write. Before the object is prepared it is given what it lacks
//! (upstream: `BeginCreate`, `BeginUpdate`); when it is committed, the allocator says what must be
//! written with it. What an object holds is thereby a matter of committed keys alone: they appear with
//! the object, go with it, and the store sees to it that no key is taken twice. There is nothing to
//! revert, and nothing that a crash could leave behind.

use std::sync::Arc;

use pintle_meta::{Status, object};
use pintle_store::{Change, Expect, Key, Kind, Revision, Template, Write};
use pintle_value::{Str, Value, json};

use crate::request::Now;
use crate::write::{Committed, begin, encode, track_own};
use crate::{Object, Registry, Resource};

/// Who gives objects of a kind what they share with others: addresses, ports.
///
/// It looks at what is committed, keeps nothing itself, and may be wrong about what is free: then the
/// commit fails, and it is asked again.
pub trait Allocator: Send + Sync {
    /// Gives an object what it lacks, and refuses what it cannot have. `old` is what is stored, on
    /// updates. A dry run gets something that looks like it.
    fn assign(
        &self,
        registry: &Registry,
        new: &mut Value,
        old: Option<&Value>,
        dry_run: bool,
    ) -> Result<(), Status>;

    /// What must be written with an object that goes from one state to another; an object that is
    /// absent is `None`.
    fn companions(
        &self,
        registry: &Registry,
        old: Option<&Value>,
        new: Option<&Value>,
        now: Now,
    ) -> Result<Vec<Companion>, Status>;
}

/// What is committed with a write, or else the write is not.
pub struct Companion(pub(crate) Part);

pub(crate) enum Part {
    /// Another write.
    Write(Write),
    /// An object is not written, but must still be as it was at a revision.
    Unchanged(Key, Revision),
    /// A change of an object that many writes change.
    Posting(Posting),
}

/// A change of an object that many writes change, like the sums in a quota's status. It is not worked out
/// by the writer, whom others would outrun, but when the writer's turn has come, from the state that
/// those before have left.
pub(crate) struct Posting {
    pub(crate) resource: Arc<Resource>,
    pub(crate) namespace: Str,
    pub(crate) name: Str,
    pub(crate) now: Now,
    pub(crate) post: Post,
}

/// Changes the state of an object; leaves it as it is where it does not say [`Posted::Changed`].
pub type Post = Box<dyn Fn(&mut Value) -> Result<Posted, Status> + Send>;

/// What came of a posting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Posted {
    /// The object is to be written.
    Changed,
    /// The object stays as it is.
    Unchanged,
    /// The object is not what the posting was made for: a new one is to be made.
    Outdated,
}

impl Companion {
    /// Marks something as taken: a key without an object, in a collection that clients do not see.
    pub fn mark(collection: &str, item: &str, by: &str) -> Self {
        Self(Part::Write(Write {
            key: mark_key(collection, item),
            expect: Expect::Absent,
            change: Change::Put(note(by)),
            note: None,
        }))
    }

    /// An object must not have been written since: what was found there still holds when the write is
    /// committed.
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
    /// Whether something is marked as taken.
    pub fn is_marked(&self, collection: &str, item: &str) -> bool {
        self.cache.collection(&collection.into()).get(item).is_some()
    }

    /// Takes a mark away, if it is there.
    pub fn unmark(&self, collection: &str, item: &str) -> Option<Companion> {
        let marked = self.cache.collection(&collection.into()).get(item)?;
        Some(Companion(Part::Write(Write {
            key: mark_key(collection, item),
            expect: Expect::At(marked.revision),
            change: Change::Delete(Template::whole(marked.json_bytes().to_vec())),
            note: None,
        })))
    }

    /// The end of all marks in a collection.
    pub fn marks(&self, collection: &str) -> Vec<Companion> {
        let marks = self.cache.collection(&collection.into());
        let marks = marks.snapshot(self.cache.visible()).objects.into_iter();
        marks.filter_map(|(item, _)| self.unmark(collection, &item)).collect()
    }

    /// Writes an object that no client sees, given in the stored form, if it is unchanged since `found`; returns
    /// whether it was written.
    pub async fn write_hidden(
        &self,
        resource: &Resource,
        name: &str,
        tree: Value,
        found: Option<&Object>,
        companions: Vec<Companion>,
    ) -> Result<bool, Status> {
        let (expect, kind) = match found {
            Some(found) => (Expect::At(found.revision), Kind::Updated),
            None => (Expect::Absent, Kind::Created),
        };
        let write = encode(resource, ("", name), &tree, expect, kind)?;
        let committed = self.commit_encoded(write, companions).await?;
        Ok(matches!(committed, Committed::Done(_)))
    }

    /// A new object of a resource, in its stored form.
    pub fn creation(
        &self,
        resource: &Resource,
        mut tree: Value,
        now: Now,
    ) -> Result<Companion, Status> {
        track_own(resource, "", None, &mut tree, now);
        begin(self, resource, &mut tree, now);
        let (namespace, name): (Str, Str) =
            (object::namespace(&tree).into(), object::name(&tree).into());
        let namespaced_name = (namespace.as_str(), name.as_str());
        let write = encode(resource, namespaced_name, &tree, Expect::Absent, Kind::Created)?;
        Ok(Companion(Part::Write(write)))
    }

    /// The deletion of an object, without regard to finalizers and grace.
    pub fn removal(&self, resource: &Resource, object: &Arc<Object>) -> Result<Companion, Status> {
        let namespaced_name = (object.namespace(), object.name());
        let expect = Expect::At(object.revision);
        let write = encode(resource, namespaced_name, &object.tree()?, expect, Kind::Deleted)?;
        Ok(Companion(Part::Write(write)))
    }
}

fn mark_key(collection: &str, item: &str) -> Key {
    Key { collection: collection.into(), item: item.into() }
}

fn note(text: &str) -> Template {
    Template::whole(json::to_string(&Value::from(text)).into())
}
