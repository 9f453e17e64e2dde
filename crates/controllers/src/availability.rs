//! The availability of API services whose server is another one (upstream: the remote half of the
//! `AvailableConditionController`). Those of this server are available from the start.

mod obstacle;
#[cfg(test)]
mod tests;

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{BoxFuture, select_ok, try_join_all};
use pintle_meta::{Reason, Status, object, time};
use pintle_registry::request::{WriteOptions, granted};
use pintle_registry::{Object, Resource};
use pintle_value::{Str, Value};

use crate::reconcile::{Progress, Reconciler, Source, itself, work};
use crate::{Environment, SERVER, body, target, until};

const CONDITION: &str = "Available";
/// The pause before an available server is probed again, because no event reports its failure.
const RESYNC: Duration = Duration::from_secs(30);
/// The longest pause before an unavailable server is probed again.
const DELAY_MAX: Duration = Duration::from_secs(30);
/// How many probes run concurrently; one success is enough, because a service may have several
/// endpoints.
const ATTEMPTS: usize = 5;
/// The label by which an endpoint slice names its service.
const SERVICE_NAME: &str = "kubernetes.io/service-name";

/// Probes the servers of API services.
pub trait Prober: Send + Sync {
    /// Checks whether the server of an API service serves its version; returns why not. It takes a
    /// few seconds at most.
    fn probe<'a>(&'a self, api_service: &'a Value) -> BoxFuture<'a, Result<(), String>>;
}

/// Keeps the conditions up to date until shutdown.
pub async fn run(
    environment: Environment,
    prober: Arc<dyn Prober>,
    shutdown: impl Future<Output = ()>,
) {
    let found = || {
        let api_services = environment.resource("apiregistration.k8s.io", "v1", "apiservices")?;
        let services = environment.resource("", "v1", "services")?;
        let slices = environment.resource("discovery.k8s.io", "v1", "endpointslices")?;
        Some(Availability {
            environment: &environment,
            prober: &*prober,
            api_services,
            services,
            slices,
        })
    };
    let Some(availability) = found() else { return };
    until(shutdown, work(&environment, &availability)).await;
}

/// Reconciles the API services of one service.
struct Availability<'e> {
    environment: &'e Environment,
    prober: &'e dyn Prober,
    api_services: Arc<Resource>,
    services: Arc<Resource>,
    slices: Arc<Resource>,
}

impl Reconciler for Availability<'_> {
    fn purpose(&self) -> &'static str {
        "say whether an API service is available"
    }

    fn queue(&self) -> &'static str {
        "RemoteAvailabilityController"
    }

    fn sources(&self) -> Vec<Source> {
        vec![
            Source::new(&self.api_services, its_service),
            Source::new(&self.services, itself),
            Source::new(&self.slices, its_owner),
        ]
    }

    fn delay_max(&self) -> Duration {
        DELAY_MAX
    }

    fn reconcile<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<Progress, Status>> {
        Box::pin(self.update_all(name))
    }
}

/// The members that decide whether an API service or a slice is relevant. Slices change often, and
/// few belong to a service of an API service.
const BACKEND: &[&[&str]] = &[&["spec", "service"]];
const LABELS: &[&[&str]] = &[&["metadata", "labels"]];

/// Returns the service of an API service (`namespace/name`) and the port.
fn backend(api_service: &Value) -> Option<(Str, i64)> {
    let service = api_service.at(&["spec", "service"])?;
    let of = |member: &str| service.str_at(&[member]);
    let port = service.get("port").and_then(Value::as_int).unwrap_or(443);
    Some((format!("{}/{}", of("namespace")?, of("name")?).into(), port))
}

fn its_service(api_service: &Object) -> Option<Str> {
    // An unreadable API service has no service here; it fails where it is read as a whole.
    backend(&api_service.excerpt(BACKEND).ok()?).map(|(service, _)| service)
}

fn its_owner(slice: &Object) -> Option<Str> {
    let excerpt = slice.excerpt(LABELS).ok()?;
    let name = excerpt.str_at(&["metadata", "labels", SERVICE_NAME])?;
    Some(format!("{}/{name}", slice.namespace()).into())
}

/// A reason and message for the condition.
struct Verdict {
    reason: &'static str,
    message: String,
}

impl Availability<'_> {
    async fn update_all(&self, service: &str) -> Result<Progress, Status> {
        let registry = &self.environment.registry;
        let mut behind = Vec::new();
        for stored in registry.objects(&self.api_services) {
            if let Some((its, port)) = backend(&stored.excerpt(BACKEND)?)
                && its == service
            {
                behind.push((self.api_services.tree(&stored)?, port));
            }
        }
        let settled = behind.into_iter().map(|(one, port)| self.update_one(service, port, one));
        let settled = try_join_all(settled).await?;
        Ok(settled.into_iter().min().unwrap_or(Next::Change).into())
    }

    /// Updates the condition of one API service.
    async fn update_one(
        &self,
        service: &str,
        port: i64,
        api_service: Value,
    ) -> Result<Next, Status> {
        if let Some(verdict) = self.obstacle(service, port)? {
            self.write_condition(api_service, false, verdict).await?;
            return Ok(Next::Change);
        }
        let answered = select_ok((0..ATTEMPTS).map(|_| self.prober.probe(&api_service))).await;
        match answered.map(|_| ()) {
            Ok(()) => {
                let message = "all checks passed".to_owned();
                self.write_condition(api_service, true, Verdict { reason: "Passed", message })
                    .await?;
                Ok(Next::Resync)
            }
            Err(message) => {
                let verdict = Verdict { reason: "FailedDiscoveryCheck", message };
                self.write_condition(api_service, false, verdict).await?;
                Ok(Next::Retry)
            }
        }
    }

    /// Writes the condition of an API service, if it changed.
    async fn write_condition(
        &self,
        mut api_service: Value,
        is_available: bool,
        Verdict { reason, message }: Verdict,
    ) -> Result<(), Status> {
        let status = if is_available { "True" } else { "False" };
        let conditions = api_service.at(&["status", "conditions"]).and_then(Value::as_array);
        let mut conditions = conditions.unwrap_or_default().to_vec();
        let is_ours = |condition: &Value| condition.str_at(&["type"]) == Some(CONDITION);
        let index = conditions.iter().position(is_ours);
        let current = index.map(|index| &conditions[index]);
        let of = |member| current.and_then(|current| current.str_at(&[member]));
        let wanted = [Some(status), Some(reason), Some(message.as_str())];
        if [of("status"), of("reason"), of("message")] == wanted {
            return Ok(());
        }
        let lapses = of("status") == Some("True") && !is_available;
        // `lastTransitionTime` changes only with the status, not with the reason.
        let since = match (of("status"), of("lastTransitionTime")) {
            (Some(before), Some(since)) if before == status => since.to_owned(),
            _ => time::format((self.environment.clock)().unix_micros),
        };
        let condition = Value::from([
            ("type", Value::from(CONDITION)),
            ("status", status.into()),
            ("reason", reason.into()),
            ("message", message.into()),
            ("lastTransitionTime", since.into()),
        ]);
        match index {
            Some(index) => conditions[index] = condition,
            None => conditions.push(condition),
        }
        api_service.object_entry("status").insert("conditions", conditions);
        let one = target(&self.api_services, "", object::name(&api_service), "status");
        let (options, context) = (WriteOptions::default(), self.environment.context(SERVER));
        let registry = &self.environment.registry;
        match registry.update(&one, &body(&api_service), &options, &context, &granted).await {
            Ok(_) => {
                let lapse = lapses.then(|| self.environment.lapses.with([&one.name, reason]));
                lapse.into_iter().for_each(|count| count.add(1));
                Ok(())
            }
            // The API service was deleted, replaced or changed meanwhile; that change enqueues it
            // again.
            Err(status) if is_race(&status) => Ok(()),
            Err(status) => Err(status),
        }
    }
}

fn is_race(status: &Status) -> bool {
    matches!(status.reason, Some(Reason::NotFound | Reason::Conflict))
}

/// When a service is reconciled again. If its API services differ, the first of these variants
/// holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Next {
    /// After back-off: a server did not answer.
    Retry,
    /// After [`RESYNC`]: the servers answered.
    Resync,
    /// At the next change.
    Change,
}

impl From<Next> for Progress {
    fn from(next: Next) -> Self {
        match next {
            Next::Retry => Self::Waiting,
            Next::Resync => Self::After(RESYNC),
            Next::Change => Self::Done,
        }
    }
}
