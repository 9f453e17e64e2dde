//! The last step: encode, commit against the expected revision, answer.

use std::sync::Arc;

use pintle_meta::{Reason, Status, object};
use pintle_schema::protobuf;
use pintle_store::{Change, Error, Expect, Kind};
use pintle_value::Value;

use super::Write;
use crate::allocation::Companion;
use crate::answer::{Answer, Outcome};
use crate::object::template;
use crate::request::Now;
use crate::{Keeping, Object, Registry, Resource};

/// What became of a commit.
pub(super) enum Committed {
    /// It is durable and visible.
    Done(Arc<Object>),
    /// The key is not as expected; the caller decides what that means.
    Conflict,
    /// Something that was to be written with it is not as expected: what was assigned to the object is
    /// taken meanwhile.
    Outrun,
}

impl Registry {
    /// Writes `tree`, which is what is to be kept, under a key, if the key is as expected, and with it
    /// what belongs to it.
    pub(super) async fn commit(
        &self,
        resource: &Resource,
        place: (&str, &str),
        tree: &Value,
        expect: Expect,
        kind: Kind,
        companions: Vec<Companion>,
    ) -> Result<Committed, Status> {
        let write = self.encode(resource, place, tree, expect, kind)?;
        self.commit_encoded(write, companions).await
    }

    async fn commit_encoded(
        &self,
        write: pintle_store::Write,
        companions: Vec<Companion>,
    ) -> Result<Committed, Status> {
        let companions = companions.into_iter().map(|companion| companion.0).collect();
        match self.store.commit_together(write, companions).await {
            Ok(record) => Ok(Committed::Done(Arc::new(Object::from_record(&record)))),
            Err(Error::Conflict { .. }) => Ok(Committed::Conflict),
            Err(Error::CompanionConflict { .. }) => Ok(Committed::Outrun),
            Err(error) => {
                tracing::error!(%error, "a write was not committed");
                Err(Status::internal(error))
            }
        }
    }

    /// The write of an object, encoded, if it is not too large to be kept.
    pub(crate) fn encode(
        &self,
        resource: &Resource,
        (namespace, name): (&str, &str),
        tree: &Value,
        expect: Expect,
        kind: Kind,
    ) -> Result<pintle_store::Write, Status> {
        let key = resource.key(namespace, name)?;
        let template = template(&resource.definition, tree, kind);
        if template.len() > OBJECT_BYTES_MAX && message_len(resource, tree) > OBJECT_BYTES_MAX {
            return Err(Status::failure(Reason::Unknown, TOO_LARGE));
        }
        let change = match kind {
            Kind::Created | Kind::Updated => Change::Put(template),
            Kind::Deleted => Change::Delete(template),
        };
        let mut index = resource.index(tree);
        if resource.keeping().is_some_and(Keeping::is_kept_form) {
            index.view_of = resource.number;
        }
        Ok(pintle_store::Write { key, expect, change, note: Some(Arc::new(index)) })
    }

    /// What must be written with an object of a resource that goes from one state to another.
    pub(super) fn companions(
        &self,
        resource: &Resource,
        old: Option<&Value>,
        new: Option<&Value>,
        now: Now,
    ) -> Result<Vec<Companion>, Status> {
        match &resource.allocator {
            Some(allocator) => allocator.companions(self, old, new, now),
            None => Ok(Vec::new()),
        }
    }
}

impl Write<'_> {
    /// Writes a state of the target's object, and what belongs to it. One that is too large is written
    /// without its managers, unless it is all about them (SSAI-08).
    pub(super) async fn commit(
        &self,
        name: &str,
        tree: &Value,
        expect: Expect,
        kind: Kind,
        companions: Vec<Companion>,
    ) -> Result<Committed, Status> {
        let (registry, resource) = (self.registry, &self.target.resource);
        let place = (self.target.namespace.as_str(), name);
        let write = match registry.encode(resource, place, tree, expect, kind) {
            Err(refusal) if refusal.message == TOO_LARGE => {
                let mut bare = tree.clone();
                let managers = object::metadata_mut(&mut bare).remove("managedFields");
                if self.applies || managers.is_none() {
                    return Err(refusal);
                }
                registry.encode(resource, place, &bare, expect, kind)?
            }
            write => write?,
        };
        registry.commit_encoded(write, companions).await
    }

    /// An answer that is not what is kept: a dry run's, or of an object that went with the write.
    pub(super) fn unkept(&self, mut tree: Value) -> Answer {
        let resource = &self.target.resource;
        resource.to_served(&mut tree);
        Answer::Value(tree, resource.schema.get(resource.ty).name.to_string())
    }
}

impl Outcome {
    /// 200 with an answer.
    pub(crate) const fn ok(answer: Answer) -> Self {
        Self { answer, created: false, accepted: false, warnings: Vec::new() }
    }

    /// With texts for `Warning` headers.
    pub(crate) fn warn(mut self, warnings: Vec<String>) -> Self {
        self.warnings = warnings;
        self
    }
}

/// The largest object that is kept: what etcd takes in one request by default.
const OBJECT_BYTES_MAX: usize = 1536 * 1024;
/// How etcd refuses one that is larger, which upstream hands on as it is.
const TOO_LARGE: &str = "etcdserver: request is too large";

/// How long an object is as a message, which is what upstream keeps of those that have one.
fn message_len(resource: &Resource, tree: &Value) -> usize {
    if resource.typed_items {
        return usize::MAX;
    }
    let mut message = Vec::new();
    protobuf::encode(&resource.schema, resource.stored_type(), tree, &mut message).len()
}
