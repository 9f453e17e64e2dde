//! Deletion of finished jobs after their `ttlSecondsAfterFinished`.

#[cfg(test)]
mod tests;

use std::future::Future;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use pintle_meta::{Status, object, time};
use pintle_registry::request::{DeleteOptions, Propagation};
use pintle_registry::{Object, Resource};
use pintle_value::{Str, Value};

use crate::reconcile::{Progress, Reconciler, Source, itself, work};
use crate::{Environment, split, target, until};

const USER: &str = "system:serviceaccount:kube-system:ttl-after-finished-controller";

/// Deletes finished jobs until shutdown.
pub async fn run(environment: Environment, shutdown: impl Future<Output = ()>) {
    let Some(jobs) = environment.resource("batch", "v1", "jobs") else { return };
    let jobs = Jobs { environment: &environment, jobs };
    until(shutdown, work(&environment, &jobs)).await;
}

struct Jobs<'e> {
    environment: &'e Environment,
    jobs: Arc<Resource>,
}

impl Reconciler for Jobs<'_> {
    fn purpose(&self) -> &'static str {
        "delete a finished job"
    }

    fn queue(&self) -> &'static str {
        "ttl_jobs_to_delete"
    }

    fn sources(&self) -> Vec<Source> {
        vec![Source::new(&self.jobs, with_ttl)]
    }

    fn reconcile<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<Progress, Status>> {
        Box::pin(self.delete_if_due(name))
    }
}

/// Most jobs have no TTL; a search in their bytes shows it cheaply.
fn with_ttl(job: &Object) -> Option<Str> {
    let says = memchr::memmem::find(job.abridged(), b"\"ttlSecondsAfterFinished\"");
    says.and_then(|_| itself(job))
}

impl Jobs<'_> {
    async fn delete_if_due(&self, name: &str) -> Result<Progress, Status> {
        let (namespace, name) = split(name);
        let stored = self.environment.registry.peek(&self.jobs, namespace, name);
        let job = stored.map(|stored| stored.tree()).transpose()?;
        let Some(job) = job else { return Ok(Progress::Done) };
        let Some(deadline) = deadline(&job) else { return Ok(Progress::Done) };
        if let Some(left) = self.environment.until(deadline) {
            return Ok(Progress::After(left));
        }
        let options = DeleteOptions {
            uid: Some(object::uid(&job).into()),
            resource_version: Some(object::text(&job, "resourceVersion").into()),
            propagation: Some(Propagation::Foreground),
            ..DeleteOptions::default()
        };
        let one = target(&self.jobs, namespace, name, "");
        let context = self.environment.context(USER);
        match self.environment.registry.delete(&one, &options, &context).await {
            Err(status) if status.code != 404 => Err(status),
            Ok(_) | Err(_) => Ok(Progress::Done),
        }
    }
}

/// Returns when a job has to be deleted, in microseconds since 1970; `None` while it is unfinished,
/// or if it has no TTL or is being deleted.
fn deadline(job: &Value) -> Option<i64> {
    if object::is_terminating(job) {
        return None;
    }
    let seconds = job.at(&["spec", "ttlSecondsAfterFinished"])?.as_int()?;
    let conditions = job.at(&["status", "conditions"])?.as_array()?;
    let end = conditions.iter().find(|condition| {
        matches!(condition.str_at(&["type"]), Some("Complete" | "Failed"))
            && condition.str_at(&["status"]) == Some("True")
    })?;
    let finished = time::parse(end.str_at(&["lastTransitionTime"])?).ok()?;
    Some(finished.saturating_add(seconds.saturating_mul(time::SECOND)))
}
