//! API services that another server is to answer say whether it can (upstream: the remote half of the
//! `AvailableConditionController`). Those that this server answers are available from the beginning.

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
/// One that answered is asked again after this time: no change tells that it stopped.
const RESYNC: Duration = Duration::from_secs(30);
/// One that does not answer is asked again after this time at the latest.
const DELAY_MAX: Duration = Duration::from_secs(30);
/// So many ask at the same time, and one answer will do: a service may have several endpoints.
const ATTEMPTS: usize = 5;
/// The label by which an endpoint slice names its service.
const SERVICE_NAME: &str = "kubernetes.io/service-name";

/// Asks the servers of API services.
pub trait Prober: Send + Sync {
    /// Whether the server of an API service answers for its version, or why it does not. It takes no longer
    /// than a few seconds.
    fn probe<'a>(&'a self, api_service: &'a Value) -> BoxFuture<'a, Result<(), String>>;
}

/// Keeps the conditions as they should be until told to stop.
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

/// Settles what concerns one service: the API services behind it.
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

    fn settle<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<Progress, Status>> {
        Box::pin(self.tell_all(name))
    }
}

/// The members by which most API services and slices are passed over: slices change often, and few are of a
/// service that an API service names.
const BACKEND: &[&[&str]] = &[&["spec", "service"]];
const LABELS: &[&[&str]] = &[&["metadata", "labels"]];

/// What answers an API service: `namespace/name`, and the port.
fn backend(api_service: &Value) -> Option<(Str, i64)> {
    let service = api_service.at(&["spec", "service"])?;
    let of = |member: &str| service.str_at(&[member]);
    let port = service.get("port").and_then(Value::as_int).unwrap_or(443);
    Some((format!("{}/{}", of("namespace")?, of("name")?).into(), port))
}

fn its_service(api_service: &Object) -> Option<Str> {
    // One that cannot be read has no service; whoever reads it hears of that.
    backend(&api_service.excerpt(BACKEND).ok()?).map(|(service, _)| service)
}

fn its_owner(slice: &Object) -> Option<Str> {
    let excerpt = slice.excerpt(LABELS).ok()?;
    let name = excerpt.str_at(&["metadata", "labels", SERVICE_NAME])?;
    Some(format!("{}/{name}", slice.namespace()).into())
}

/// What is said of an API service.
struct Verdict {
    reason: &'static str,
    message: String,
}

impl Availability<'_> {
    async fn tell_all(&self, service: &str) -> Result<Progress, Status> {
        let registry = &self.environment.registry;
        let mut behind = Vec::new();
        for stored in registry.objects(&self.api_services) {
            if let Some((its, port)) = backend(&stored.excerpt(BACKEND)?)
                && its == service
            {
                behind.push((self.api_services.tree(&stored)?, port));
            }
        }
        let settled = behind.into_iter().map(|(one, port)| self.settle_one(service, port, one));
        let settled = try_join_all(settled).await?;
        Ok(settled.into_iter().min().unwrap_or(Next::Change).into())
    }

    /// Says of an API service whether it is available.
    async fn settle_one(
        &self,
        service: &str,
        port: i64,
        api_service: Value,
    ) -> Result<Next, Status> {
        if let Some(verdict) = self.obstacle(service, port)? {
            self.tell(api_service, false, verdict).await?;
            return Ok(Next::Change);
        }
        let answered = select_ok((0..ATTEMPTS).map(|_| self.prober.probe(&api_service))).await;
        match answered.map(|_| ()) {
            Ok(()) => {
                let message = "all checks passed".to_owned();
                self.tell(api_service, true, Verdict { reason: "Passed", message }).await?;
                Ok(Next::Resync)
            }
            Err(message) => {
                let verdict = Verdict { reason: "FailedDiscoveryCheck", message };
                self.tell(api_service, false, verdict).await?;
                Ok(Next::Retry)
            }
        }
    }

    /// Writes the condition into an API service, unless it says that already.
    async fn tell(
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
        let said = index.map(|index| &conditions[index]);
        let of = |member| said.and_then(|said| said.str_at(&[member]));
        let told = [Some(status), Some(reason), Some(message.as_str())];
        if [of("status"), of("reason"), of("message")] == told {
            return Ok(());
        }
        let lapses = of("status") == Some("True") && !is_available;
        // The time is that of the status, whatever the reason.
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
            // It is gone, or another one is there, or it was written meanwhile: that brings it up again.
            Err(status) if is_passing(&status) => Ok(()),
            Err(status) => Err(status),
        }
    }
}

fn is_passing(status: &Status) -> bool {
    matches!(status.reason, Some(Reason::NotFound | Reason::Conflict))
}

/// When a service is looked at again, what comes first before the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Next {
    /// It did not answer.
    Retry,
    /// It answered.
    Resync,
    /// When something changes.
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
