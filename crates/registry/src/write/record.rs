//! Internal records: objects of a resource that no URL names. They are written without admission
//! and field ownership, over any existing state.

use pintle_meta::Status;
use pintle_store::{Expect, Kind};
use pintle_value::Value;

use super::commit::Committed;
use super::contention::ATTEMPTS_MAX;
use crate::{Registry, Resource};

impl Registry {
    /// Writes a record that `make` makes from the current one.
    pub async fn put_record(
        &self,
        resource: &Resource,
        namespaced_name: (&str, &str),
        make: impl Fn(Option<Value>) -> Value + Send,
    ) -> Result<(), Status> {
        for _ in 0..ATTEMPTS_MAX {
            self.catch_up().await?;
            let existing = self.peek(resource, namespaced_name.0, namespaced_name.1);
            let (expect, kind) = match &existing {
                Some(existing) => (Expect::At(existing.revision), Kind::Updated),
                None => (Expect::Absent, Kind::Created),
            };
            let mut tree = make(existing.map(|existing| existing.tree()).transpose()?);
            resource.stamp(&mut tree);
            match self.commit(resource, namespaced_name, &tree, expect, kind, Vec::new()).await? {
                Committed::Done(_) => return Ok(()),
                Committed::Conflict | Committed::CompanionConflict => {}
            }
        }
        Err(Status::stale(&resource.group_resource(), namespaced_name.1))
    }

    /// Removes a record, if it exists.
    pub async fn remove_record(
        &self,
        resource: &Resource,
        namespaced_name: (&str, &str),
    ) -> Result<(), Status> {
        for _ in 0..ATTEMPTS_MAX {
            self.catch_up().await?;
            let Some(existing) = self.peek(resource, namespaced_name.0, namespaced_name.1) else {
                return Ok(());
            };
            let (expect, tree) = (Expect::At(existing.revision), existing.tree()?);
            match self
                .commit(resource, namespaced_name, &tree, expect, Kind::Deleted, Vec::new())
                .await?
            {
                Committed::Done(_) => return Ok(()),
                Committed::Conflict | Committed::CompanionConflict => {}
            }
        }
        Err(Status::stale(&resource.group_resource(), namespaced_name.1))
    }
}
