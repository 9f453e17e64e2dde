//! Repair of the `IPAddress` objects of services: a missing one is created, one that no service has
//! is deleted (upstream: `RepairIPAddress`).
//!
//! A service and its addresses are committed together if the database supports it, so that repairs
//! are needed only after a user changed or deleted an `IPAddress`. But the controller reads them
//! one after the other, so it repairs a fault only if the first object is still unchanged when the
//! second has been read. Other servers, or a database without such commits, create an address
//! before its service has it: a new address is not deleted.

#[cfg(test)]
mod tests;

use std::future::Future;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use pintle_effects::{Network, held_addresses, ip_address, is_for_services};
use pintle_meta::{Status, object, time};
use pintle_registry::request::DeleteOptions;
use pintle_registry::{Object, Resource};
use pintle_value::{Str, Value};

use crate::each_namespace::create;
use crate::events::{Recorder, Warning};
use crate::reconcile::{Progress, Reconciler, Source, itself, work};
use crate::{Environment, SERVER, split, target, until};

/// The minimum age of an address without a service before it is deleted: upstream creates it before
/// the service.
const GRACE: i64 = 60 * time::SECOND;
/// The minimum age of an address that its service does not have before it is deleted, if the
/// service is as old or older: upstream creates the address before it changes the service.
const GRACE_OF_CHANGE: i64 = 5 * time::SECOND;

/// The reporter of events about repairs.
const REPORTER: &str = "ipallocator-repair-controller";
/// The action of events about a service's address, and about an address without a service.
const OF_SERVICE: &str = "ClusterIPAllocation";
const OF_ADDRESS: &str = "IPAddressAllocation";

/// Repairs addresses until shutdown; `hostname` is the machine's, for the events.
pub async fn run(environment: Environment, hostname: Str, shutdown: impl Future<Output = ()>) {
    let networking = |resource| environment.resource("networking.k8s.io", "v1", resource);
    let Some(services) = environment.resource("", "v1", "services") else { return };
    let (Some(addresses), Some(ranges)) = (networking("ipaddresses"), networking("servicecidrs"))
    else {
        return;
    };
    let recorder = Recorder::new(&environment, REPORTER, &hostname);
    let repairer = Repairer { environment: &environment, services, addresses, ranges, recorder };
    until(shutdown, work(&environment, &repairer)).await;
}

struct Repairer<'e> {
    environment: &'e Environment,
    services: Arc<Resource>,
    addresses: Arc<Resource>,
    ranges: Arc<Resource>,
    recorder: Recorder<'e>,
}

impl Reconciler for Repairer<'_> {
    fn purpose(&self) -> &'static str {
        "repair the addresses of a service"
    }

    fn queue(&self) -> &'static str {
        "services"
    }

    fn sources(&self) -> Vec<Source> {
        vec![
            Source::new(&self.services, itself),
            Source::new(&self.addresses, itself),
            Source::new(&self.addresses, its_service),
        ]
    }

    /// The name of a service contains its namespace, that of an address has none.
    fn reconcile<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<Progress, Status>> {
        match name.contains('/') {
            true => Box::pin(self.repair_service(name)),
            false => Box::pin(self.repair_address(name)),
        }
    }
}

fn its_service(address: &Object) -> Option<Str> {
    let tree = address.tree().ok()?; // an unreadable address is reported under its own name
    let (namespace, name) = parent(&tree)?;
    Some(format!("{namespace}/{name}").into())
}

/// Returns namespace and name of the service that an address refers to.
fn parent(address: &Value) -> Option<(&str, &str)> {
    let member = |name| address.str_at(&["spec", "parentRef", name]).unwrap_or_default();
    let is_service = member("group").is_empty() && member("resource") == "services";
    is_service.then(|| (member("namespace"), member("name")))
}

impl Repairer<'_> {
    /// Repairs the addresses of a service.
    async fn repair_service(&self, name: &str) -> Result<Progress, Status> {
        let (namespace, name) = split(name);
        let stored = self.environment.registry.peek(&self.services, namespace, name);
        let Some(service) = stored.map(|stored| self.services.tree(&stored)).transpose()? else {
            return Ok(Progress::Done);
        };
        for text in held_addresses(&service) {
            let family = if text.contains(':') { "IPv6" } else { "IPv4" };
            if let Some(warning) = self.repair_service_address(&service, &text, family).await? {
                self.recorder.warn(&service, OF_SERVICE, warning).await;
            }
        }
        Ok(Progress::Done)
    }

    /// Repairs one address of a service; returns a warning if it was wrong.
    async fn repair_service_address(
        &self,
        service: &Value,
        address: &str,
        family: &str,
    ) -> Result<Option<Warning>, Status> {
        if !self.is_in_range(address)? {
            return Ok(Some(Warning {
                reason: "ClusterIPOutOfRange",
                note: format!(
                    "Cluster IP [{family}]: {address} is not within any configured Service CIDR; \
                     please recreate service"
                ),
            }));
        }
        let wanted = ip_address(service, address);
        let stored = self.environment.registry.peek(&self.addresses, "", address);
        let stored = stored.map(|stored| stored.tree()).transpose()?;
        let warning = match &stored {
            None => Some(Warning {
                reason: "ClusterIPNotAllocated",
                note: format!("Cluster IP [{family}]: {address} is not allocated; repairing"),
            }),
            Some(stored) if self.is_held_by_another(stored, service)? => {
                return Ok(Some(Warning {
                    reason: "ClusterIPAlreadyAllocated",
                    note: format!(
                        "Cluster IP [{family}]:{address} was assigned to multiple services; please \
                         recreate service"
                    ),
                }));
            }
            Some(stored) if parent(stored) != parent(&wanted) => Some(Warning {
                reason: "ClusterIPNotAllocated",
                note: format!(
                    "the ClusterIP [{family}]: {address} for Service {}/{} has a wrong reference; \
                     repairing",
                    object::namespace(service),
                    object::name(service)
                ),
            }),
            Some(stored) if has_labels(stored, &wanted) => return Ok(None),
            Some(_) => None,
        };
        if !self.is_unchanged(&self.services, service) {
            return Ok(None); // its change enqueues it again
        }
        if let Some(stored) = &stored {
            self.delete(stored).await?;
        }
        create(self.environment, SERVER, &self.addresses, &self.typed(wanted)).await?;
        Ok(warning)
    }

    /// Whether a ServiceCIDR contains the address.
    fn is_in_range(&self, address: &str) -> Result<bool, Status> {
        let Ok(number) = address.parse() else { return Ok(false) };
        let has = |text: &Value| {
            let network = text.as_str().and_then(|text| Network::parse(text).ok());
            network.is_some_and(|network| network.contains(number))
        };
        for range in self.environment.registry.objects(&self.ranges) {
            let range = range.tree()?;
            let cidrs = range.at(&["spec", "cidrs"]).and_then(Value::as_array);
            if cidrs.unwrap_or_default().iter().any(has) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Deletes an address that was created for a service which does not have it.
    async fn repair_address(&self, name: &str) -> Result<Progress, Status> {
        let stored = self.environment.registry.peek(&self.addresses, "", name);
        let Some(address) = stored.map(|stored| self.addresses.tree(&stored)).transpose()? else {
            return Ok(Progress::Done);
        };
        if !is_for_services(&address) || object::is_terminating(&address) {
            return Ok(Progress::Done);
        }
        let Some((namespace, holder)) = parent(&address) else {
            let reference = ["group", "resource", "namespace", "name"]
                .map(|member| address.str_at(&["spec", "parentRef", member]).unwrap_or_default());
            let note = format!(
                "IPAddress {name} appears to have been modified, not referencing a Service &{{{}}}: \
                 cleaning up",
                reference.join(" ")
            );
            return self.clean(&address, Warning { reason: "IPAddressNotAllocated", note }).await;
        };
        match self.environment.registry.peek(&self.services, namespace, holder) {
            Some(service) if held_addresses(&service.tree()?).iter().any(|a| a == name) => {
                Ok(Progress::Done)
            }
            service => {
                let service = service.map(|service| service.tree()).transpose()?;
                let grace = grace(&address, service.as_ref());
                if let Some(left) = self.environment.until(made(&address).saturating_add(grace)) {
                    return Ok(Progress::After(left));
                }
                let (reason, wrong) = match service {
                    Some(_) => ("IPAddressWrongReference", "has a wrong reference;"),
                    None => ("IPAddressNotAllocated", "appears to have leaked:"),
                };
                let note = format!(
                    "IPAddress: {name} for Service {namespace}/{holder} {wrong} cleaning up"
                );
                self.clean(&address, Warning { reason, note }).await
            }
        }
    }

    /// Deletes an address that no service has.
    async fn clean(&self, address: &Value, warning: Warning) -> Result<Progress, Status> {
        if !self.is_unchanged(&self.addresses, address) {
            return Ok(Progress::Done); // its change enqueues it again
        }
        self.recorder.warn(address, OF_ADDRESS, warning).await;
        self.delete(address).await?;
        Ok(Progress::Done)
    }

    /// Whether another service has the address, too; users must resolve this.
    fn is_held_by_another(&self, address: &Value, service: &Value) -> Result<bool, Status> {
        let Some((namespace, name)) = parent(address) else { return Ok(false) };
        if (namespace, name) == (object::namespace(service), object::name(service)) {
            return Ok(false);
        }
        let other = self.environment.registry.peek(&self.services, namespace, name);
        let Some(other) = other else { return Ok(false) };
        let held = held_addresses(&other.tree()?);
        Ok(held.iter().any(|held| held == object::name(address)))
    }

    /// Whether an object is still at the version that was read.
    fn is_unchanged(&self, resource: &Arc<Resource>, object: &Value) -> bool {
        let (namespace, name) = (object::namespace(object), object::name(object));
        let stored = self.environment.registry.peek(resource, namespace, name);
        let version = object::text(object, "resourceVersion");
        stored.is_some_and(|stored| stored.revision.0.to_string() == version)
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

/// Returns the minimum age of an address before it is deleted because its service, if there is one,
/// does not have it.
fn grace(address: &Value, service: Option<&Value>) -> i64 {
    match service {
        None => GRACE,
        Some(service) if service.str_at(&["spec", "type"]) == Some("ExternalName") => GRACE,
        Some(service) if made(address) >= made(service) => GRACE_OF_CHANGE,
        Some(_) => 0,
    }
}

fn made(object: &Value) -> i64 {
    time::parse(object::text(object, "creationTimestamp")).unwrap_or(0)
}

/// Whether an address has the labels of its allocator.
fn has_labels(stored: &Value, wanted: &Value) -> bool {
    let mut labels = object::labels(wanted).into_iter().flat_map(|labels| labels.iter());
    labels.all(|(label, value)| {
        object::labels(stored).and_then(|labels| labels.get(label)) == Some(value)
    })
}
