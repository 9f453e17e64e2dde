//! Destinations of connections through the server: the kubelet of a pod's node, or the address of a
//! pod, a node, or an endpoint of a service (upstream: the `…Location` functions of pods, nodes and
//! services). If the stored objects show that the destination is unreachable, the request is
//! refused as upstream refuses it.

mod endpoints;
#[cfg(test)]
mod tests;

use std::net::IpAddr;
use std::sync::Arc;

use pintle_meta::{GroupResource, GroupVersionResource, Reason, Status};
use pintle_registry::request::Target;
use pintle_registry::{Object, Registry, work};
use pintle_value::Value;

use endpoints::{Draw, Search};

/// The destination of a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Destination {
    /// No destination: a pod without a node has no log.
    Nothing,
    /// A node's kubelet.
    Kubelet {
        /// The kubelet.
        kubelet: Kubelet,
        /// The name of the pod's container; empty if the request concerns no container.
        container: String,
    },
    /// An address, over `http` or `https`.
    Address {
        /// `host:port`, or only a host.
        host: String,
        /// Whether the connection uses TLS.
        tls: bool,
    },
}

/// The address of a kubelet, from its node's status.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kubelet {
    /// An IP address or a name.
    pub host: String,
    /// The port.
    pub port: u16,
    /// Whether the kubelet serves WebSockets for every streaming subresource
    /// (`ExtendWebSocketsToKubelet`).
    pub supports_websockets: bool,
}

impl Kubelet {
    /// `host:port`
    pub fn authority(&self) -> String {
        join_host(&self.host, &self.port.to_string())
    }
}

/// The port of a kubelet if the status of its node has no port.
const KUBELET_PORT: u16 = 10250;

/// Finds the destination of a request for `proxy`. Of the endpoints of a service, a random one is
/// chosen; `entropy` fills a buffer with random bytes.
pub async fn proxied(
    registry: &Registry,
    target: &Target,
    preferred_address_types: &[String],
    entropy: fn(&mut [u8]),
) -> Result<Destination, Status> {
    if target.resource.resource.resource != "services" {
        return destination(registry, target, "", preferred_address_types);
    }
    let requested = target.resource.group_resource();
    let namespace = &target.namespace;
    let finder = Finder { registry, namespace, requested: &requested, preferred_address_types };
    let draw = |below: usize| {
        let mut bytes = [0; 8];
        entropy(&mut bytes);
        let below = u64::try_from(below).unwrap_or(u64::MAX).max(1);
        usize::try_from(u64::from_le_bytes(bytes) % below).unwrap_or_default()
    };
    finder.service(&target.name, &draw).await
}

/// Finds the destination of a request for a connecting subresource of a pod or a node. `container`
/// is the name that the client sent, or empty. A node is reached at its first address of the first
/// preferred type that it has.
pub fn destination(
    registry: &Registry,
    target: &Target,
    container: &str,
    preferred_address_types: &[String],
) -> Result<Destination, Status> {
    let requested = target.resource.group_resource();
    let namespace = &target.namespace;
    let finder = Finder { registry, namespace, requested: &requested, preferred_address_types };
    let name = target.name.as_str();
    match (target.resource.resource.resource.as_str(), target.subresource.as_str()) {
        ("pods", "proxy") => finder.pod(name),
        ("pods", "log") => finder.kubelet(name, Some(container), true),
        ("pods", "portforward") => finder.kubelet(name, None, false),
        ("pods", _) => finder.kubelet(name, Some(container), false),
        ("nodes", _) => finder.node_of(name),
        (resource, part) => Err(Status::not_implemented(&format!("{resource}/{part}"))),
    }
}

struct Finder<'a> {
    registry: &'a Registry,
    namespace: &'a str,
    /// The resource of the request; errors for missing objects name it.
    requested: &'a GroupResource,
    preferred_address_types: &'a [String],
}

impl Finder<'_> {
    fn get(&self, plural: &'static str, namespace: &str, name: &str) -> Result<Value, Status> {
        Ok(self.stored(plural, namespace, name)?.tree()?)
    }

    fn stored(
        &self,
        plural: &'static str,
        namespace: &str,
        name: &str,
    ) -> Result<Arc<Object>, Status> {
        let gvr = GroupVersionResource::new("", "v1", plural);
        let resource = self.registry.resource(&gvr);
        let found = resource.and_then(|resource| self.registry.peek(&resource, namespace, name));
        let missing = || Status::not_found(self.requested, name);
        found.ok_or_else(missing)
    }

    fn kubelet(
        &self,
        name: &str,
        container: Option<&str>,
        log: bool,
    ) -> Result<Destination, Status> {
        let pod = self.get("pods", self.namespace, name)?;
        let container = match container {
            Some(container) => choose_container(&pod, name, container)?,
            None => String::new(),
        };
        match pod.str_at(&["spec", "nodeName"]).unwrap_or_default() {
            "" if log => Ok(Destination::Nothing),
            "" => Err(Status::bad_request(format!("pod {name} does not have a host assigned"))),
            node => Ok(Destination::Kubelet { kubelet: self.node(node)?, container }),
        }
    }

    /// The kubelet of a node, or another port of the node.
    fn node_of(&self, id: &str) -> Result<Destination, Status> {
        let (scheme, name, port) =
            split(id).ok_or_else(|| Status::bad_request(format!("invalid node request {id:?}")))?;
        let kubelet = self.node(name)?;
        if port.is_empty() || port == kubelet.port.to_string() {
            return Ok(Destination::Kubelet { kubelet, container: String::new() });
        }
        Ok(Destination::Address { host: join_host(&kubelet.host, port), tls: scheme == "https" })
    }

    fn node(&self, name: &str) -> Result<Kubelet, Status> {
        let node = self.get("nodes", "", name)?;
        let host = preferred_address(&node, self.preferred_address_types)?;
        let port = ["status", "daemonEndpoints", "kubeletEndpoint", "Port"];
        let port = node.at(&port).and_then(Value::as_int).unwrap_or_default();
        let port = u16::try_from(port).ok().filter(|port| *port > 0).unwrap_or(KUBELET_PORT);
        let features = items(&node, &["status", "declaredFeatures"]);
        let supports_websockets =
            features.iter().any(|feature| feature.as_str() == Some("ExtendWebSocketsToKubelet"));
        Ok(Kubelet { host, port, supports_websockets })
    }

    fn pod(&self, id: &str) -> Result<Destination, Status> {
        let (scheme, name, port) =
            split(id).ok_or_else(|| Status::bad_request(format!("invalid pod request {id:?}")))?;
        let pod = self.get("pods", self.namespace, name)?;
        let ip = items(&pod, &["status", "podIPs"]).first().and_then(|ip| ip.str_at(&["ip"]));
        let ip = ip.and_then(|ip| ip.parse::<IpAddr>().ok());
        let ip = ip.ok_or_else(|| Status::bad_request("address not allowed"))?;
        let port = if port.is_empty() { first_port(&pod) } else { port.to_owned() };
        Ok(Destination::Address { host: join(ip, &port), tls: scheme == "https" })
    }

    async fn service(&self, id: &str, draw: Draw<'_>) -> Result<Destination, Status> {
        let (scheme, name, port) = split(id)
            .ok_or_else(|| Status::bad_request(format!("invalid service request {id:?}")))?;
        let mut port = port.to_owned();
        if let Ok(number) = port.parse::<i64>() {
            let service = self.stored("services", self.namespace, name)?;
            work::ahead(service.size()).await;
            let service = service.excerpt(&[&["spec", "ports"]])?;
            let ports = items(&service, &["spec", "ports"]);
            let of_number = |p: &&Value| p.get("port").and_then(Value::as_int) == Some(number);
            let Some(found) = ports.iter().find(of_number) else {
                let why = format!("no service port {number} found for service {name:?}");
                return Err(Status::service_unavailable(why));
            };
            found.str_at(&["name"]).unwrap_or_default().clone_into(&mut port);
        }
        let endpoints = self.stored("endpoints", self.namespace, name)?;
        work::ahead(endpoints.size()).await;
        let endpoints = endpoints.excerpt(&[&["subsets"]])?;
        let subsets = items(&endpoints, &["subsets"]);
        let none = |name: &str| {
            Status::service_unavailable(format!("no endpoints available for service {name:?}"))
        };
        if subsets.is_empty() {
            return Err(none(name));
        }
        let mut search = Search::new(self.registry, self.namespace, draw);
        let host = search.find(subsets, &port).await?.ok_or_else(|| none(id))?;
        Ok(Destination::Address { host, tls: scheme == "https" })
    }
}

/// Parses `name`, `name:port` or `scheme:name:port`.
fn split(id: &str) -> Option<(&str, &str, &str)> {
    let parts: Vec<&str> = id.split(':').collect();
    let (scheme, name, port) = match parts.as_slice() {
        [name] => ("", *name, ""),
        [name, port] => ("", *name, *port),
        [scheme, name, port] => (*scheme, *name, *port),
        _ => return None,
    };
    (!name.is_empty() && matches!(scheme, "" | "http" | "https")).then_some((scheme, name, port))
}

/// The first address of the first type that the node has.
fn preferred_address(node: &Value, types: &[String]) -> Result<String, Status> {
    let addresses = items(node, &["status", "addresses"]);
    let member = |address: &Value, member| address.str_at(&[member]).unwrap_or_default().to_owned();
    for wanted in types {
        if let Some(found) = addresses.iter().find(|address| member(address, "type") == *wanted) {
            return Ok(member(found, "address"));
        }
    }
    let known =
        addresses.iter().map(|a| format!("{{{} {}}}", member(a, "type"), member(a, "address")));
    let known = known.collect::<Vec<_>>().join(" ");
    let why = format!("no preferred addresses found; known addresses: [{known}]");
    Err(Status::failure(Reason::Unknown, why))
}

/// Returns the name of the container. The client must name a container if the pod does not have
/// exactly one, and the pod must have the named container.
fn choose_container(pod: &Value, name: &str, container: &str) -> Result<String, Status> {
    let of = |list: &str| -> Vec<String> {
        let names = items(pod, &["spec", list]).iter().filter_map(|c| c.str_at(&["name"]));
        names.map(str::to_owned).collect()
    };
    let all = [of("initContainers"), of("containers"), of("ephemeralContainers")].concat();
    if !container.is_empty() {
        return if all.iter().any(|name| name == container) {
            Ok(container.to_owned())
        } else {
            let why = format!("container {container} is not valid for pod {name}");
            Err(Status::bad_request(why))
        };
    }
    let must = format!("a container name must be specified for pod {name}");
    match of("containers").as_slice() {
        [only] => Ok(only.clone()),
        [] => Err(Status::bad_request(must)),
        _ => Err(Status::bad_request(format!("{must}, choose one of: [{}]", all.join(" ")))),
    }
}

fn first_port(pod: &Value) -> String {
    let ports = items(pod, &["spec", "containers"]).iter().flat_map(|c| items(c, &["ports"]));
    let numbers = ports.filter_map(|port| port.get("containerPort").and_then(Value::as_int));
    numbers.into_iter().next().map(|number| number.to_string()).unwrap_or_default()
}

fn join(ip: IpAddr, port: &str) -> String {
    join_host(&ip.to_string(), port)
}

fn join_host(host: &str, port: &str) -> String {
    let host = if host.contains(':') { format!("[{host}]") } else { host.to_owned() };
    if port.is_empty() { host } else { format!("{host}:{port}") }
}

fn items<'a>(object: &'a Value, at: &[&str]) -> &'a [Value] {
    object.at(at).and_then(Value::as_array).unwrap_or_default()
}
