//! The deletion of objects that cannot be decoded.

use std::sync::Arc;

use pintle_meta::{GroupKind, Status, field};
use pintle_store::{Expect, Kind};
use pintle_value::{Path, Value};

use crate::request::{DeleteOptions, IGNORE_READ_ERRORS, Target};
use crate::results::{Outcome, ResponseBody};
use crate::write::commit::Committed;
use crate::write::contention::ATTEMPTS_MAX;
use crate::{Object, Registry, work};

impl Registry {
    /// Deletes an unreadable object, and refuses a readable one (upstream: `corruptObjectDeleter`).
    pub(super) async fn delete_unreadable(
        &self,
        target: &Target,
        options: &DeleteOptions,
    ) -> Result<Outcome, Status> {
        let resource = &target.resource;
        let mut queued = None;
        for _ in 0..ATTEMPTS_MAX {
            let existing = self.peek(resource, &target.namespace, &target.name);
            let Some(existing) = existing.filter(|existing| existing.check().is_err()) else {
                let why = "is exclusively used to delete corrupt object(s), try again by removing this option";
                let path = Path::new(IGNORE_READ_ERRORS);
                let error = field::Error::invalid(&path, &Value::Bool(true), why);
                let named = resource.group_resource();
                let kind = GroupKind::new(&*named.group, &*named.resource);
                return Err(Status::invalid(&kind, &target.name, &[error]));
            };
            work::ahead(existing.size()).await;
            if let Some(outcome) = self.try_delete_unreadable(target, options, &existing).await? {
                return Ok(outcome);
            }
            queued = self.queue_retry(target, queued).await?;
        }
        Err(Status::stale(&resource.group_resource(), &target.name))
    }

    /// Removes an unreadable object; `None` after a conflict. Admission is not called, because
    /// there is no object to show it (upstream: `corruptObjectDeleter`). Watchers get an object
    /// with only its name.
    async fn try_delete_unreadable(
        &self,
        target: &Target,
        options: &DeleteOptions,
        existing: &Arc<Object>,
    ) -> Result<Option<Outcome>, Status> {
        let resource = &target.resource;
        if !options.dry_run {
            let namespaced_name = (target.namespace.as_str(), target.name.as_str());
            let (expect, identity) = (Expect::At(existing.revision), existing.identity(resource));
            let kind = Kind::Deleted;
            match self
                .commit(resource, namespaced_name, &identity, expect, kind, Vec::new())
                .await?
            {
                Committed::Done(_) => {}
                Committed::Conflict | Committed::CompanionConflict => return Ok(None),
            }
            tracing::warn!(object = %existing.item, "deleted an unreadable object; its finalizers were ignored");
        }
        let status = Status::deleted(&resource.group_resource(), &target.name, "");
        let committed = !options.dry_run;
        Ok(Some(Outcome { committed, ..Outcome::ok(ResponseBody::Status(status)) }))
    }
}
