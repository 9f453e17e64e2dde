//! The effects of writing one object on other objects: services take addresses and ports, evictions
//! spend disruption budgets, bindings assign pods to nodes, rollbacks ask for an earlier template
//! of a deployment, and claims get administrative access to devices only if their namespace permits
//! it. Metrics count allocated addresses and ports, and issued certificates. The crate also finds
//! the destinations of connections to pods, nodes and services.
//!
//! This is the behaviour of built-in kinds that needs more than the written object. [`attach`] adds
//! it to the definitions through the registry's traits (`Allocator`, `Action`, `Observer`). It must
//! not know HTTP, users, or where objects are stored.
//!
//! Invariant: requests leave no state here; their effects depend only on committed objects. Only
//! [`PortRepair`] remembers the leaked ports between its runs.

mod binding;
#[cfg(test)]
mod cluster;
mod destination;
mod devices;
mod eviction;
mod issuance;
mod measures;
mod pods;
mod rollback;
mod services;

use std::sync::Arc;

use pintle_registry::{ResourceDefinition, SubresourceBehaviour};

pub use destination::{Destination, Kubelet, destination, proxied};
pub use measures::{ALLOCATION_BOUNDS, Measures};
pub use services::{
    Fault, Network, Occupied, PortFault, PortRange, PortRepair, addresses_occupied, held_addresses,
    ip_address, is_for_services, ports_occupied,
};

/// The dependencies of the effects.
#[derive(Clone, Debug)]
pub struct Settings<'a> {
    /// `--service-cluster-ip-range`: the ranges of the services' addresses, the primary one first.
    pub service_ranges: &'a [&'a str],
    /// `--service-node-port-range`
    pub node_ports: PortRange,
    /// Fills a buffer with random bytes.
    pub entropy: fn(&mut [u8]),
    /// Where allocations are counted.
    pub measures: Arc<Measures>,
}

/// Why the effects cannot be created.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// `--service-cluster-ip-range` is invalid.
    #[error("--service-cluster-ip-range: {reason}")]
    ServiceRange {
        /// The reason.
        reason: String,
    },
    /// `--service-node-port-range` is invalid.
    #[error("{text:?} is not a range of ports, such as 30000-32767")]
    PortRange {
        /// The invalid text.
        text: String,
    },
}

/// Adds the effects to the definitions of their kinds.
pub fn attach(
    definitions: &mut [ResourceDefinition],
    settings: &Settings<'_>,
) -> Result<(), Error> {
    let services = Arc::new(services::Services::new(settings)?);
    for definition in definitions.iter_mut().filter(|d| d.resource.group == "resource.k8s.io") {
        if let Some(devices) = devices(&definition.resource.resource) {
            definition.allocator = Some(Arc::new(devices));
        }
    }
    for definition in definitions.iter_mut().filter(|d| issuance::applies_to(&d.resource)) {
        let measures = settings.measures.clone();
        definition.observer = Some(Arc::new(issuance::Issuance { measures }));
    }
    for definition in definitions.iter_mut().filter(|d| d.resource.resource == "deployments") {
        let type_name = match definition.resource.group.as_str() {
            "extensions" => "io.k8s.api.extensions.v1beta1.DeploymentRollback",
            _ => "io.k8s.api.apps.v1beta1.DeploymentRollback",
        };
        let rollback = Arc::new(rollback::Rollback { type_name });
        for part in definition.subresources.iter_mut().filter(|part| part.name == "rollback") {
            part.behaviour = SubresourceBehaviour::Action(rollback.clone());
        }
    }
    for definition in definitions.iter_mut().filter(|d| d.resource.group.is_empty()) {
        let resource = definition.resource.resource.clone();
        match resource.as_str() {
            "services" => definition.allocator = Some(services.clone()),
            "bindings" => definition.action = Some(Arc::new(binding::Bind)),
            _ => {}
        }
        for part in &mut definition.subresources {
            if let Some(behaviour) = behaviour(&resource, &part.name) {
                part.behaviour = behaviour;
            }
        }
    }
    Ok(())
}

/// The allocator for claims and templates of claims, whose administrative access to devices depends
/// on the namespace.
fn devices(resource: &str) -> Option<devices::Devices> {
    let (kind, requests): (_, &[&str]) = match resource {
        "resourceclaims" => ("ResourceClaim", &["spec", "devices", "requests"]),
        "resourceclaimtemplates" => {
            ("ResourceClaimTemplate", &["spec", "spec", "devices", "requests"])
        }
        _ => return None,
    };
    Some(devices::Devices { kind, requests })
}

/// The behaviour of a core resource's subresource; `None` if this crate does not define one.
fn behaviour(resource: &str, part: &str) -> Option<SubresourceBehaviour> {
    Some(match (resource, part) {
        ("pods", "binding") => SubresourceBehaviour::Action(Arc::new(binding::Bind)),
        ("pods", "eviction") => SubresourceBehaviour::Action(Arc::new(eviction::Evict)),
        ("pods", "attach" | "exec" | "log" | "portforward" | "proxy")
        | ("nodes" | "services", "proxy") => SubresourceBehaviour::Connect,
        _ => return None,
    })
}
