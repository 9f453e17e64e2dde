//! The `IPAddress` objects of services are as the services say, whatever was done to them by hand: a
//! missing one is made again, one that no service holds goes (upstream: `RepairIPAddress`).
//!
//! A service and its addresses are committed together, so that there is nothing to repair unless somebody
//! with the right to do so wrote or deleted an `IPAddress`.

#[cfg(test)]
mod tests;

use std::future::Future;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use pintle_effects::{held_addresses, ip_address, is_for_services};
use pintle_meta::{Status, object, time};
use pintle_registry::request::DeleteOptions;
use pintle_registry::{Object, Resource};
use pintle_value::{Str, Value};

use crate::each_namespace::create;
use crate::reconcile::{Progress, Reconciler, Source, itself, work};
use crate::{Environment, SERVER, split, target, until};

/// How old an address is that has lost its service: upstream makes it before the service.
const GRACE: i64 = 60 * time::SECOND;

/// Repairs them until told to stop.
pub async fn run(environment: Environment, shutdown: impl Future<Output = ()>) {
    let resources = environment.resource("", "v1", "services");
    let addresses = environment.resource("networking.k8s.io", "v1", "ipaddresses");
    let Some((services, addresses)) = resources.zip(addresses) else { return };
    let repairer = Repairer { environment: &environment, services, addresses };
    until(shutdown, work(&environment, &repairer)).await;
}

struct Repairer<'e> {
    environment: &'e Environment,
    services: Arc<Resource>,
    addresses: Arc<Resource>,
}

impl Reconciler for Repairer<'_> {
    fn purpose(&self) -> &'static str {
        "repair the addresses of a service"
    }

    fn sources(&self) -> Vec<Source> {
        vec![
            Source::new(&self.services, itself),
            Source::new(&self.addresses, itself),
            Source::new(&self.addresses, its_service),
        ]
    }

    /// A service has a namespace in its name, an address has none.
    fn settle<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<Progress, Status>> {
        match name.contains('/') {
            true => Box::pin(self.settle_service(name)),
            false => Box::pin(self.settle_address(name)),
        }
    }
}

fn its_service(address: &Object) -> Option<Str> {
    let tree = address.tree();
    let (namespace, name) = parent(&tree)?;
    Some(format!("{namespace}/{name}").into())
}

/// The namespace and name of the service that an address says it is for.
fn parent(address: &Value) -> Option<(&str, &str)> {
    let member = |name| address.str_at(&["spec", "parentRef", name]).unwrap_or_default();
    let is_service = member("group").is_empty() && member("resource") == "services";
    is_service.then(|| (member("namespace"), member("name")))
}

impl Repairer<'_> {
    /// Sees that a service has the objects of its addresses.
    async fn settle_service(&self, name: &str) -> Result<Progress, Status> {
        let (namespace, name) = split(name);
        let registry = &self.environment.registry;
        let stored = registry.peek(&self.services, namespace, name);
        let Some(service) = stored.map(|stored| stored.tree()) else { return Ok(Progress::Done) };
        for text in held_addresses(&service) {
            let wanted = ip_address(&service, &text);
            if let Some(stored) = registry.peek(&self.addresses, "", &text) {
                let stored = stored.tree();
                if is_as_wanted(&stored, &wanted) || self.is_held_by_another(&stored, &service) {
                    continue;
                }
                self.delete(&stored).await?;
            }
            tracing::warn!(
                namespace,
                name,
                address = text,
                "an address is not allocated; repairing"
            );
            create(self.environment, SERVER, &self.addresses, &self.typed(wanted)).await?;
        }
        Ok(Progress::Done)
    }

    /// Sees that an address that was made for a service still is one's.
    async fn settle_address(&self, name: &str) -> Result<Progress, Status> {
        let stored = self.environment.registry.peek(&self.addresses, "", name);
        let Some(address) = stored.map(|stored| stored.tree()) else { return Ok(Progress::Done) };
        if !is_for_services(&address) || object::is_terminating(&address) {
            return Ok(Progress::Done);
        }
        let service = parent(&address).map(|(namespace, name)| {
            self.environment.registry.peek(&self.services, namespace, name)
        });
        match service {
            Some(Some(service)) if held_addresses(&service.tree()).iter().any(|a| a == name) => {
                return Ok(Progress::Done);
            }
            Some(None) => {
                let made = time::parse(object::text(&address, "creationTimestamp")).unwrap_or(0);
                if let Some(left) = self.environment.until(made.saturating_add(GRACE)) {
                    return Ok(Progress::After(left));
                }
            }
            Some(Some(_)) | None => {}
        }
        tracing::warn!(address = name, "an address that no service holds: cleaning up");
        self.delete(&address).await?;
        Ok(Progress::Done)
    }

    /// Two services with one address are for people to sort out.
    fn is_held_by_another(&self, address: &Value, service: &Value) -> bool {
        let Some((namespace, name)) = parent(address) else { return false };
        if (namespace, name) == (object::namespace(service), object::name(service)) {
            return false;
        }
        let other = self.environment.registry.peek(&self.services, namespace, name);
        let held = other.map(|other| held_addresses(&other.tree())).unwrap_or_default();
        held.iter().any(|held| held == object::name(address))
    }

    fn typed(&self, mut address: Value) -> Value {
        let members = address.make_object();
        members.insert("apiVersion", "networking.k8s.io/v1");
        members.insert("kind", self.addresses.kind.clone());
        address
    }

    async fn delete(&self, address: &Value) -> Result<(), Status> {
        let uid = Some(object::uid(address).into());
        let options = DeleteOptions { uid, ..DeleteOptions::default() };
        let one = target(&self.addresses, "", object::name(address), "");
        let context = self.environment.context(SERVER);
        match self.environment.registry.delete(&one, &options, &context).await {
            Err(status) if status.code != 404 => Err(status),
            Ok(_) | Err(_) => Ok(()),
        }
    }
}

/// Whether an address refers to its service and says who made it.
fn is_as_wanted(stored: &Value, wanted: &Value) -> bool {
    let labels = object::labels(wanted).into_iter().flat_map(|labels| labels.iter());
    let has = |label: &str, value: &Value| {
        object::labels(stored).and_then(|labels| labels.get(label)) == Some(value)
    };
    parent(stored) == parent(wanted) && labels.into_iter().all(|(name, value)| has(name, value))
}
