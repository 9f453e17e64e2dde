//! The endpoint of a service to which a request is proxied (upstream: `ResourceLocation` of
//! services).

use std::collections::{HashMap, HashSet};
use std::net::IpAddr;
use std::sync::Arc;

use pintle_meta::Status;
use pintle_registry::work::{self, YIELD_BYTES};
use pintle_registry::{Object, Registry};
use pintle_value::{Str, Value};

use super::{items, join};
use crate::pods;

/// How many bytes of pods one search reads. Endpoints can name many pods that do not have their
/// addresses. Upstream reads all of them; a search among more pods than these finds no endpoint.
const PODS_BYTES_MAX: usize = 64 << 20;

/// How many addresses are tried before other requests get the thread.
const TRIES_PER_PAUSE: usize = 1024;

/// Draws a random number below a count.
pub(super) type Draw<'a> = &'a (dyn Fn(usize) -> usize + Sync);

/// Searches the addresses of a service, from a random one on. Only the addresses of pods in the
/// namespace count.
pub(super) struct Search<'a> {
    registry: &'a Registry,
    namespace: &'a str,
    draw: Draw<'a>,
    /// The addresses of the pods that were read.
    known: HashMap<&'a str, HashSet<Str>>,
    /// How many bytes of pods were read.
    bytes: usize,
    /// How many of them since the last pause, and how many addresses were tried.
    unpaused: (usize, usize),
}

impl<'a> Search<'a> {
    pub(super) fn new(registry: &'a Registry, namespace: &'a str, draw: Draw<'a>) -> Self {
        Self { registry, namespace, draw, known: HashMap::new(), bytes: 0, unpaused: (0, 0) }
    }

    /// Finds the address of a pod, with the port of that name; `None` if there is none.
    pub(super) async fn find(
        &mut self,
        subsets: &'a [Value],
        port: &str,
    ) -> Result<Option<String>, Status> {
        let named = |p: &&Value| p.str_at(&["name"]).unwrap_or_default() == port;
        for subset in rotated(subsets, self.draw) {
            let found = items(subset, &["ports"]).iter().find(named);
            let Some(port) = found.and_then(|found| found.get("port")?.as_int()) else { continue };
            for address in rotated(items(subset, &["addresses"]), self.draw) {
                if let Some(ip) = self.ip_of_pod(address).await? {
                    return Ok(Some(join(ip, &port.to_string())));
                }
                if self.bytes > PODS_BYTES_MAX {
                    return Ok(None);
                }
            }
        }
        Ok(None)
    }

    /// The address, if it is that of its pod.
    async fn ip_of_pod(&mut self, address: &'a Value) -> Result<Option<IpAddr>, Status> {
        self.unpaused.1 += 1;
        if self.unpaused.0 > YIELD_BYTES || self.unpaused.1 > TRIES_PER_PAUSE {
            self.unpaused = (0, 0);
            work::pause().await;
        }
        let reference = |member| address.str_at(&["targetRef", member]).unwrap_or_default();
        if reference("namespace") != self.namespace {
            return Ok(None);
        }
        let Some(ip) = address.str_at(&["ip"]) else { return Ok(None) };
        let name = reference("name");
        if !self.known.contains_key(name) {
            let ips = self.ips(name).await?;
            self.known.insert(name, ips);
        }
        let is_known = self.known.get(name).is_some_and(|ips| ips.contains(ip));
        Ok(is_known.then(|| ip.parse().ok()).flatten())
    }

    /// The addresses of a pod; none if it does not exist or cannot be read.
    async fn ips(&mut self, name: &str) -> Result<HashSet<Str>, Status> {
        let resource = pods::pods(self.registry)?;
        let found: Option<Arc<Object>> = self.registry.peek(&resource, self.namespace, name);
        let Some(pod) = found else { return Ok(HashSet::new()) };
        self.bytes += pod.size();
        self.unpaused.0 += pod.size();
        work::ahead(pod.size()).await;
        let Ok(pod) = pod.excerpt(&[&["status", "podIPs"]]) else { return Ok(HashSet::new()) };
        let ips = items(&pod, &["status", "podIPs"]).iter().filter_map(|ip| ip.str_at(&["ip"]));
        Ok(ips.map(Str::from).collect())
    }
}

/// The items from a random one on, and then those before it.
fn rotated<'v>(items: &'v [Value], draw: Draw<'_>) -> impl Iterator<Item = &'v Value> + use<'v> {
    let first = if items.is_empty() { 0 } else { draw(items.len()).min(items.len()) };
    let (before, from) = items.split_at(first);
    from.iter().chain(before)
}
