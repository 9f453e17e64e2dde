//! Internal changes of members that only the server may set. They pass no authorization and no
//! admission, reset no members, and are retried after a conflict (upstream: `GuaranteedUpdate`).

use pintle_meta::Status;
use pintle_store::{Expect, Kind};
use pintle_value::Value;

use super::basis::is_failure;
use super::commit::Committed;
use super::contention::ATTEMPTS_MAX;
use crate::Registry;
use crate::request::{Context, Target};

/// The result of an attempt.
enum Attempt {
    /// The change is committed.
    Committed(Value),
    /// Nothing was committed: a dry run, or the change has no effect.
    Unwritten(Value),
    /// Another writer changed the object.
    Conflict,
}

impl Registry {
    /// Applies `change` to an object in its stored form and returns the new state. `change` gets
    /// the current state and may refuse. It runs again after a conflict, and on a fresh state if it
    /// refuses a stale state or leaves it as it is.
    pub async fn amend(
        &self,
        target: &Target,
        dry_run: bool,
        context: &Context,
        mut change: impl FnMut(&mut Value) -> Result<(), Status> + Send,
    ) -> Result<Value, Status> {
        let mut queued = None;
        let mut basis = self.basis(dry_run, context).await?;
        for _ in 0..ATTEMPTS_MAX {
            let unwritten = match self.try_amend(target, dry_run, context, &mut change).await {
                Ok(Attempt::Committed(new)) => return Ok(new),
                Ok(Attempt::Conflict) => {
                    queued = self.queue_retry(target, queued).await?;
                    continue;
                }
                Ok(Attempt::Unwritten(new)) => Ok(new),
                Err(status) if is_failure(&status) => return Err(status),
                Err(status) => Err(status),
            };
            if basis.is_fresh() || !self.refresh(&mut basis, context).await? {
                return unwritten;
            }
        }
        Err(Status::stale(&target.resource.group_resource(), &target.name))
    }

    async fn try_amend(
        &self,
        target: &Target,
        dry_run: bool,
        context: &Context,
        change: &mut (impl FnMut(&mut Value) -> Result<(), Status> + Send),
    ) -> Result<Attempt, Status> {
        let resource = &target.resource;
        let namespaced_name = (target.namespace.as_str(), target.name.as_str());
        let existing = self
            .peek(resource, namespaced_name.0, namespaced_name.1)
            .ok_or_else(|| Status::not_found(&resource.group_resource(), &target.name))?;
        let old = resource.current(&existing).await?;
        let mut new = old.clone();
        change(&mut new)?;
        if dry_run || new == old {
            return Ok(Attempt::Unwritten(new));
        }
        let companions = self.companions(resource, Some(&old), Some(&new), context.now)?;
        let stored = resource.to_storage(&new).await?;
        let (expect, kind) = (Expect::At(existing.revision), Kind::Updated);
        match self.commit(resource, namespaced_name, &stored, expect, kind, companions).await? {
            Committed::Done(object) => Ok(Attempt::Committed(resource.current(&object).await?)),
            Committed::Conflict | Committed::CompanionConflict => Ok(Attempt::Conflict),
        }
    }
}
