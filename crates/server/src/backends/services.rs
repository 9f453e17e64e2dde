//! Resolves services: to their cluster address, or to one of their endpoints with
//! `--enable-aggregator-routing` (upstream: `apiserver/pkg/util/proxy`).

use std::net::SocketAddr;
use std::sync::{Arc, OnceLock, Weak};

use pintle_meta::GroupVersionResource;
use pintle_meta::quote::quote;
use pintle_registry::{Object, Registry};
use pintle_value::Value;

/// The label of an EndpointSlice with the service's name.
const SERVICE_NAME: &str = "kubernetes.io/service-name";
const SERVICE_NAME_PATH: &[&str] = &["metadata", "labels", SERVICE_NAME];

/// The resolver of services.
#[derive(Default)]
pub(crate) struct Services {
    /// The registry; set once it exists.
    registry: OnceLock<Weak<Registry>>,
    /// True to resolve to endpoints.
    by_endpoints: bool,
    /// This server's own address.
    own: String,
}

/// This server's own service and port.
const OWN: (&str, &str, u16) = ("default", "kubernetes", 443);

impl Services {
    /// `by_endpoints` is `--enable-aggregator-routing`; `own` is this server's own address.
    pub(crate) fn new(by_endpoints: bool, own: SocketAddr) -> Self {
        Self { registry: OnceLock::new(), by_endpoints, own: own.to_string() }
    }

    /// Sets the registry. The registry owns the owner of this value, so the reference is weak.
    pub(crate) fn find_in(&self, registry: &Arc<Registry>) {
        let _ = self.registry.set(Arc::downgrade(registry)); // once, when the server starts
    }

    /// The `host:port` of a service's port, or an error.
    pub(crate) fn authority(
        &self,
        namespace: &str,
        name: &str,
        port: u16,
    ) -> Result<String, String> {
        if (namespace, name, port) == OWN {
            return Ok(self.own.clone());
        }
        let registry = self.registry.get().and_then(Weak::upgrade);
        let registry = registry.ok_or("services cannot be looked up yet")?;
        let services = GroupVersionResource::new("", "v1", "services");
        let services = registry.resource(&services);
        let stored = services.and_then(|services| registry.peek(&services, namespace, name));
        let stored = stored.ok_or_else(|| format!("service {} not found", quote(name)))?;
        let service = stored.tree().map_err(|why| why.to_string())?;
        let kind = service.str_at(&["spec", "type"]).unwrap_or_default();
        match kind {
            "ExternalName" if !self.by_endpoints => {
                Ok(authority(service.str_at(&["spec", "externalName"]).unwrap_or_default(), port))
            }
            "ClusterIP" | "LoadBalancer" | "NodePort" => {
                let found = service_port(&service, port).ok_or_else(|| {
                    format!("no service port {port} found for service {}", quote(name))
                })?;
                if self.by_endpoints {
                    return at_endpoint(&registry, namespace, name, &service, found).ok_or_else(
                        || format!("no endpoints available for service {}", quote(name)),
                    );
                }
                match service.str_at(&["spec", "clusterIP"]).unwrap_or_default() {
                    "None" => Err("cannot route to service with ClusterIP \"None\"".to_owned()),
                    "" => Err(format!("service {} has no address", quote(name))),
                    address => Ok(authority(address, port)),
                }
            }
            other => Err(format!("unsupported service type {}", quote(other))),
        }
    }
}

fn service_port(service: &Value, port: u16) -> Option<&Value> {
    let ports = service.at(&["spec", "ports"]).and_then(Value::as_array)?;
    ports.iter().find(|port_spec| number(port_spec, "port") == Some(port))
}

/// A ready endpoint with the port of that name, preferably of the service's first IP family.
fn at_endpoint(
    registry: &Registry,
    namespace: &str,
    name: &str,
    service: &Value,
    port: &Value,
) -> Option<String> {
    let slices = GroupVersionResource::new("discovery.k8s.io", "v1", "endpointslices");
    let slices = registry.resource(&slices)?;
    let is_its = |slice: &Object| {
        let excerpt = slice.excerpt(&[SERVICE_NAME_PATH]).ok();
        excerpt.is_some_and(|excerpt| excerpt.str_at(SERVICE_NAME_PATH) == Some(name))
    };
    let slices = registry.objects_in(&slices, namespace).into_iter().filter(|slice| is_its(slice));
    let mut slices: Vec<Value> = slices.filter_map(|slice| slice.tree().ok()).collect();
    let families = service.at(&["spec", "ipFamilies"]).and_then(Value::as_array);
    let first = families.and_then(|families| families.first()).and_then(Value::as_str);
    slices.sort_by_cached_key(|slice| (slice.str_at(&["addressType"]) != first, random()));
    let port_name = port.str_at(&["name"]).unwrap_or_default();
    slices.iter().find_map(|slice| in_slice(slice, port_name))
}

fn in_slice(slice: &Value, port_name: &str) -> Option<String> {
    let list = |member| slice.get(member).and_then(Value::as_array).unwrap_or_default();
    let is_named = |port: &&Value| port.str_at(&["name"]).unwrap_or_default() == port_name;
    let port = number(list("ports").iter().find(is_named)?, "port")?;
    let is_ready =
        |endpoint: &Value| endpoint.at(&["conditions", "ready"]) != Some(&Value::Bool(false));
    let ready: Vec<&str> = list("endpoints")
        .iter()
        .filter(|endpoint| is_ready(endpoint))
        .filter_map(|endpoint| endpoint.get("addresses")?.as_array()?.first()?.as_str())
        .collect();
    // A random endpoint, so that the load is spread.
    let at = random() % u64::try_from(ready.len().max(1)).unwrap_or(1);
    let address = ready.get(usize::try_from(at).unwrap_or_default())?;
    Some(authority(address, port))
}

fn random() -> u64 {
    let mut bytes = [0; 8];
    crate::machine::random(&mut bytes);
    u64::from_le_bytes(bytes)
}

fn number(value: &Value, member: &str) -> Option<u16> {
    u16::try_from(value.get(member)?.as_int()?).ok()
}

fn authority(host: &str, port: u16) -> String {
    if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") }
}
