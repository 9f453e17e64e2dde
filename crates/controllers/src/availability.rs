//! API services that another server is to answer say why it cannot (upstream: the remote half of the
//! `AvailableConditionController`). Those that this server answers are available from the beginning.
//!
//! No other server is asked yet, so the best that is said of one is that it was not.

#[cfg(test)]
mod tests;

use std::future::Future;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use pintle_meta::{Status, object, quote::quote, time};
use pintle_registry::request::{WriteOptions, granted};
use pintle_registry::{Object, Resource};
use pintle_value::{Str, Value};

use crate::reconcile::{Progress, Reconciler, Source, itself, work};
use crate::{Environment, SERVER, body, split, target, until};

const CONDITION: &str = "Available";
/// The label by which an endpoint slice names its service.
const SERVICE_NAME: &str = "kubernetes.io/service-name";

/// Keeps the conditions as they should be until told to stop.
pub async fn run(environment: Environment, shutdown: impl Future<Output = ()>) {
    let found = || {
        let api_services = environment.resource("apiregistration.k8s.io", "v1", "apiservices")?;
        let services = environment.resource("", "v1", "services")?;
        let slices = environment.resource("discovery.k8s.io", "v1", "endpointslices")?;
        Some(Availability { environment: &environment, api_services, services, slices })
    };
    let Some(availability) = found() else { return };
    until(shutdown, work(&environment, &availability)).await;
}

/// Settles what concerns one service: the API services behind it.
struct Availability<'e> {
    environment: &'e Environment,
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

impl Availability<'_> {
    async fn tell_all(&self, service: &str) -> Result<Progress, Status> {
        let registry = &self.environment.registry;
        for stored in registry.objects(&self.api_services) {
            if let Some((its, port)) = backend(&stored.excerpt(BACKEND)?)
                && its == service
            {
                let api_service = self.api_services.tree(&stored)?;
                let (reason, message) = self.obstacle(service, port, &api_service)?;
                self.tell(api_service, reason, message).await?;
            }
        }
        Ok(Progress::Done)
    }

    /// Why a service cannot answer at a port.
    fn obstacle(
        &self,
        service: &str,
        port: i64,
        api_service: &Value,
    ) -> Result<(&'static str, String), Status> {
        let (namespace, name) = split(service);
        let (registry, space) = (&self.environment.registry, quote(namespace));
        let Some(stored) = registry.peek(&self.services, namespace, name) else {
            return Ok(("ServiceNotFound", format!("service/{name} in {space} is not present")));
        };
        let stored = stored.tree()?;
        if stored.str_at(&["spec", "type"]) == Some("ClusterIP") {
            let ports = stored.at(&["spec", "ports"]).and_then(Value::as_array).unwrap_or_default();
            let its = |item: &&Value| item.get("port").and_then(Value::as_int) == Some(port);
            let Some(found) = ports.iter().find(its) else {
                let words = format!("service/{name} in {space} is not listening on port {port}");
                return Ok(("ServicePortError", words));
            };
            let port_name = found.str_at(&["name"]).unwrap_or_default();
            let mut slices = Vec::new();
            for slice in registry.objects_in(&self.slices, namespace) {
                if its_owner(&slice).is_some_and(|owner| owner == service) {
                    slices.push(slice.tree()?);
                }
            }
            if slices.is_empty() {
                let words = format!("cannot find endpointslices for service/{name} in {space}");
                return Ok(("EndpointsNotFound", words));
            }
            if !slices.iter().any(|slice| has_endpoint(slice, port_name)) {
                let words = format!(
                    "endpointslices for service/{name} in {space} have no addresses with port name {}",
                    quote(port_name)
                );
                return Ok(("MissingEndpoints", words));
            }
        }
        let of = |member| api_service.str_at(&["spec", member]).unwrap_or_default();
        let words = format!(
            "failing or missing response from service/{name} in {space} for /apis/{}/{}: this \
             server asks no other",
            of("group"),
            of("version")
        );
        Ok(("FailedDiscoveryCheck", words))
    }

    /// Writes the condition into an API service, unless it says that already.
    async fn tell(
        &self,
        mut api_service: Value,
        reason: &str,
        message: String,
    ) -> Result<(), Status> {
        let conditions = api_service.at(&["status", "conditions"]).and_then(Value::as_array);
        let mut conditions = conditions.unwrap_or_default().to_vec();
        let is_ours = |condition: &Value| condition.str_at(&["type"]) == Some(CONDITION);
        let place = conditions.iter().position(is_ours);
        let said = place.map(|place| &conditions[place]);
        let of = |member| said.and_then(|said| said.str_at(&[member]));
        if [of("status"), of("reason"), of("message")]
            == [Some("False"), Some(reason), Some(&message)]
        {
            return Ok(());
        }
        // The time is that of the status, whatever the reason.
        let since = match (of("status"), of("lastTransitionTime")) {
            (Some("False"), Some(since)) => since.to_owned(),
            _ => time::format((self.environment.clock)().unix_micros),
        };
        let condition = Value::from([
            ("type", Value::from(CONDITION)),
            ("status", "False".into()),
            ("reason", reason.into()),
            ("message", message.into()),
            ("lastTransitionTime", since.into()),
        ]);
        match place {
            Some(place) => conditions[place] = condition,
            None => conditions.push(condition),
        }
        api_service.object_entry("status").insert("conditions", conditions);
        let one = target(&self.api_services, "", object::name(&api_service), "status");
        let (options, context) = (WriteOptions::default(), self.environment.context(SERVER));
        let registry = &self.environment.registry;
        match registry.update(&one, &body(&api_service), &options, &context, &granted).await {
            Err(status) if status.code != 404 => Err(status),
            Ok(_) | Err(_) => Ok(()),
        }
    }
}

/// Whether a slice has an address that is ready, and the port.
fn has_endpoint(slice: &Value, port_name: &str) -> bool {
    let list = |member| slice.get(member).and_then(Value::as_array).unwrap_or_default();
    let is_its = |port: &Value| port.str_at(&["name"]).unwrap_or_default() == port_name;
    let is_ready = |endpoint: &Value| {
        endpoint.at(&["conditions", "ready"]) != Some(&Value::Bool(false))
            && endpoint.get("addresses").and_then(Value::as_array).is_some_and(|a| !a.is_empty())
    };
    list("ports").iter().any(is_its) && list("endpoints").iter().any(is_ready)
}
