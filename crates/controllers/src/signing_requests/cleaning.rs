//! Deletion of old requests: an hour after they were approved and signed, denied, or failed; a day
//! after their creation if they have no condition; and when their certificate expires.

use std::future::Future;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use pintle_auth::certificate_request::not_after;
use pintle_meta::{Status, object, time};
use pintle_registry::Resource;
use pintle_registry::request::DeleteOptions;
use pintle_value::Value;

use super::{USER, conditions, current, pem, requests};
use crate::reconcile::{Progress, Reconciler, Source, itself, work};
use crate::{Environment, target, until};

const HOUR: i64 = 60 * 60 * time::SECOND;

/// Deletes old requests until shutdown.
pub async fn run(environment: Environment, shutdown: impl Future<Output = ()>) {
    let Some(requests) = requests(&environment) else { return };
    let cleaner = Cleaner { environment: &environment, requests };
    until(shutdown, work(&environment, &cleaner)).await;
}

struct Cleaner<'e> {
    environment: &'e Environment,
    requests: Arc<Resource>,
}

impl Reconciler for Cleaner<'_> {
    fn purpose(&self) -> &'static str {
        "delete an old signing request"
    }

    fn queue(&self) -> &'static str {
        "certificate_cleaner"
    }

    fn sources(&self) -> Vec<Source> {
        vec![Source::new(&self.requests, itself)]
    }

    fn reconcile<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<Progress, Status>> {
        Box::pin(self.delete_if_due(name))
    }
}

impl Cleaner<'_> {
    async fn delete_if_due(&self, name: &str) -> Result<Progress, Status> {
        let request = current(self.environment, &self.requests, name)?;
        let Some(request) = request.filter(|request| !object::is_terminating(request)) else {
            return Ok(Progress::Done);
        };
        let Some(deadline) = deadline(&request) else { return Ok(Progress::Done) };
        if let Some(left) = self.environment.until(deadline) {
            return Ok(Progress::After(left));
        }
        let uid = Some(object::uid(&request).into());
        let options = DeleteOptions { uid, ..DeleteOptions::default() };
        let one = target(&self.requests, "", name, "");
        let context = self.environment.context(USER);
        match self.environment.registry.delete(&one, &options, &context).await {
            Err(status) if !matches!(status.code, 404 | 409) => Err(status),
            Ok(_) | Err(_) => Ok(Progress::Done),
        }
    }
}

/// Returns when a request has to be deleted, in microseconds since 1970; `None` if no rule applies,
/// for instance to an approved request that is not signed.
pub(super) fn deadline(request: &Value) -> Option<i64> {
    let after = |text: Option<&str>, hours: i64| {
        time::parse(text.unwrap_or_default()).ok().map(|start| start.saturating_add(hours * HOUR))
    };
    let conditions = conditions(request);
    if conditions.is_empty() {
        return after(Some(object::text(request, "creationTimestamp")), 24);
    }
    let certificate = pem(request, &["status", "certificate"]);
    let is_issued = !certificate.is_empty();
    let decided = conditions.iter().filter(|condition| match condition.str_at(&["type"]) {
        Some("Approved") => is_issued,
        Some("Denied" | "Failed") => true,
        _ => false,
    });
    let decided = decided.filter_map(|condition| after(condition.str_at(&["lastUpdateTime"]), 1));
    let end = not_after(&certificate).map(|seconds| seconds.saturating_mul(time::SECOND));
    decided.chain(end).min()
}
