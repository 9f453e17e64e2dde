//! The last step: encode, commit against the expected revision, answer.

use std::sync::Arc;

use pintle_meta::{Status, object};
use pintle_store::{Change, Error, Expect, Kind};
use pintle_value::Value;

use super::Write;
use crate::answer::{Answer, Outcome};
use crate::object::{Index, template};
use crate::{Keeping, Object, Registry, Resource};

/// What became of a commit.
pub(super) enum Committed {
    /// It is durable and visible.
    Done(Arc<Object>),
    /// The key is not as expected; the caller decides what that means.
    Conflict,
    /// It is too large to be kept.
    TooLarge,
}

impl Registry {
    /// Writes `tree`, which is what is to be kept, under a key, if the key is as expected.
    pub(super) async fn commit(
        &self,
        resource: &Resource,
        (namespace, name): (&str, &str),
        tree: &Value,
        expect: Expect,
        kind: Kind,
    ) -> Result<Committed, Status> {
        let key = resource.key(namespace, name)?;
        let template = template(&resource.definition, tree, kind);
        if template.len() > OBJECT_BYTES_MAX {
            return Ok(Committed::TooLarge);
        }
        let change = match kind {
            Kind::Created | Kind::Updated => Change::Put(template),
            Kind::Deleted => Change::Delete(template),
        };
        let mut index = Index::of(tree, resource.strategy.fields());
        if resource.keeping().is_some_and(Keeping::is_kept_form) {
            index.view_of = resource.number;
        }
        let write = pintle_store::Write { key, expect, change, note: Some(Arc::new(index)) };
        match self.store.commit(write).await {
            Ok(record) => Ok(Committed::Done(Arc::new(Object::from_record(&record)))),
            Err(Error::Conflict { .. }) => Ok(Committed::Conflict),
            Err(error) => {
                tracing::error!(%error, "a write was not committed");
                Err(Status::internal(error))
            }
        }
    }
}

/// The refusal of an object that is too large.
pub(super) fn too_large() -> Status {
    Status::failure(
        pintle_meta::Reason::RequestEntityTooLarge,
        format!("the object is larger than {OBJECT_BYTES_MAX} bytes"),
    )
}

impl Write<'_> {
    /// Writes a state of the target's object. One that is too large is written without its managers,
    /// unless it is all about them (SSAI-08).
    pub(super) async fn commit(
        &self,
        name: &str,
        tree: &Value,
        expect: Expect,
        kind: Kind,
    ) -> Result<Committed, Status> {
        let (registry, resource) = (self.registry, &self.target.resource);
        let place = (self.target.namespace.as_str(), name);
        let committed = registry.commit(resource, place, tree, expect, kind).await?;
        if !matches!(committed, Committed::TooLarge) {
            return Ok(committed);
        }
        let mut bare = tree.clone();
        let managers = object::metadata_mut(&mut bare).remove("managedFields");
        if self.applies || managers.is_none() {
            return Err(too_large());
        }
        match registry.commit(resource, place, &bare, expect, kind).await? {
            Committed::TooLarge => Err(too_large()),
            committed => Ok(committed),
        }
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

/// The largest object that is kept. Bodies are bounded to 3 MiB; what defaults and patches add is not
/// allowed to go far beyond.
const OBJECT_BYTES_MAX: usize = 4 * 1024 * 1024;
