//! Reasons, from stored objects, not to probe a service.

use pintle_meta::{Status, quote::quote};
use pintle_value::Value;

use super::{Availability, Verdict, its_owner};
use crate::split;

impl Availability<'_> {
    /// Returns why a service cannot answer at a port.
    pub(super) fn obstacle(&self, service: &str, port: i64) -> Result<Option<Verdict>, Status> {
        let verdict = |reason, message| Ok(Some(Verdict { reason, message }));
        let (namespace, name) = split(service);
        let (registry, space) = (&self.environment.registry, quote(namespace));
        let Some(stored) = registry.peek(&self.services, namespace, name) else {
            return verdict("ServiceNotFound", format!("service/{name} in {space} is not present"));
        };
        let stored = stored.tree()?;
        if stored.str_at(&["spec", "type"]) == Some("ClusterIP") {
            let ports = stored.at(&["spec", "ports"]).and_then(Value::as_array).unwrap_or_default();
            let its = |item: &&Value| item.get("port").and_then(Value::as_int) == Some(port);
            let Some(found) = ports.iter().find(its) else {
                let words = format!("service/{name} in {space} is not listening on port {port}");
                return verdict("ServicePortError", words);
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
                return verdict("EndpointsNotFound", words);
            }
            if !slices.iter().any(|slice| has_endpoint(slice, port_name)) {
                let words = format!(
                    "endpointslices for service/{name} in {space} have no addresses with port name {}",
                    quote(port_name)
                );
                return verdict("MissingEndpoints", words);
            }
        }
        Ok(None)
    }
}

/// Whether a slice has a ready address and the port.
fn has_endpoint(slice: &Value, port_name: &str) -> bool {
    let list = |member| slice.get(member).and_then(Value::as_array).unwrap_or_default();
    let is_its = |port: &Value| port.str_at(&["name"]).unwrap_or_default() == port_name;
    let is_ready = |endpoint: &Value| {
        endpoint.at(&["conditions", "ready"]) != Some(&Value::Bool(false))
            && endpoint.get("addresses").and_then(Value::as_array).is_some_and(|a| !a.is_empty())
    };
    list("ports").iter().any(is_its) && list("endpoints").iter().any(is_ready)
}
