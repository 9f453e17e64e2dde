//! Aggregation: group versions that an APIService delegates to an extension API server. That server
//! serves them even if this server has a definition of the same resources.

mod discovery;
mod documents;
mod events;
mod exchange;
mod identity;
mod probe;
mod proxy;
mod resources;
mod services;

use std::collections::BTreeMap;
use std::sync::Arc;

use pintle_registry::Registry;

use crate::backends::{Backend, Extensions, Unreachable};
use crate::discovery::{Extension, ExtensionSet};
use discovery::Discovered;
pub(crate) use documents::{Converted, V2};
pub(crate) use proxy::ProxiedRequest;
pub(crate) use services::ApiService;
use services::ApiServices;

/// The APIServices, the client of their servers, and the last discovery of each server.
pub(crate) struct Aggregation {
    services: ApiServices,
    extensions: Extensions,
    discovered: Discovered,
}

impl Aggregation {
    pub(crate) fn new(extensions: Extensions) -> Self {
        let (services, discovered) = (ApiServices::default(), Discovered::default());
        Self { services, extensions, discovered }
    }

    /// Starts to follow a registry.
    pub(crate) fn follow(&self, registry: &Registry) {
        self.services.follow(registry);
    }

    /// The APIService of a path, if an extension API server serves the path: `/apis/G/V` and below,
    /// the OpenAPI v3 document of the version, and that of the group. A version's document that was
    /// converted from v2 is served by this server.
    pub(crate) fn answering(&self, path: &str) -> Option<Arc<ApiService>> {
        let document = path.strip_prefix("/openapi/v3");
        let mut parts = document.unwrap_or(path).strip_prefix("/apis/")?.split('/');
        let (group, version) = (parts.next()?, parts.next());
        let current = self.services.current();
        match version {
            Some(version) => {
                let has_v2_only = |service: &&Arc<ApiService>| {
                    let discovery = document.and_then(|_| self.discovered.of(&service.name));
                    discovery.is_some_and(|discovery| discovery.documents.converted.is_some())
                };
                current.of(group, version).filter(|service| !has_v2_only(service)).cloned()
            }
            None if document.is_some() => {
                let has = |service: &Arc<ApiService>| {
                    let discovery = self.discovered.of(&service.name);
                    discovery.is_some_and(|discovery| discovery.documents.group_hash.is_some())
                };
                current.all().filter(|service| service.group == group).find(|s| has(s)).cloned()
            }
            None => None,
        }
    }

    /// The generation of the APIServices and of their servers' discovery: it grows with each
    /// change.
    pub(crate) fn number(&self) -> u64 {
        self.services.current().number() + self.discovered.number()
    }

    /// The group versions of extension API servers.
    pub(crate) fn served(&self) -> ExtensionSet {
        // The number is read first, so that a later change is noticed.
        let number = self.number();
        let current = self.services.current();
        let all = current.all().map(|service| Extension {
            group: service.group.clone(),
            version: service.version.clone(),
            group_priority: service.group_priority,
            version_priority: service.version_priority,
            discovery: self.discovered.of(&service.name).map(|discovery| discovery.version.clone()),
        });
        ExtensionSet { number, all: all.collect() }
    }

    /// The paths and hashes of extension API servers' OpenAPI documents.
    pub(crate) fn openapi(&self) -> BTreeMap<String, String> {
        let mut documents = BTreeMap::new();
        for service in self.services.current().all() {
            let Some(discovery) = self.discovered.of(&service.name) else { continue };
            let version = format!("apis/{}/{}", service.group, service.version);
            documents.extend(discovery.documents.version_hash.clone().map(|hash| (version, hash)));
            let group = format!("apis/{}", service.group);
            documents.extend(discovery.documents.group_hash.clone().map(|hash| (group, hash)));
        }
        documents
    }

    /// OpenAPI v3 documents that were converted from v2, by path.
    pub(crate) fn openapi_converted(&self) -> BTreeMap<String, Arc<Converted>> {
        let current = self.services.current();
        let converted = current.all().filter_map(|service| {
            let converted = self.discovered.of(&service.name)?.documents.converted.clone()?;
            Some((format!("apis/{}/{}", service.group, service.version), converted))
        });
        converted.collect()
    }

    /// The OpenAPI v2 excerpts of extension API servers.
    pub(crate) fn openapi_v2(&self) -> Vec<Arc<V2>> {
        let current = self.services.current();
        let discovery = current.all().filter_map(|service| self.discovered.of(&service.name));
        discovery.filter_map(|discovery| discovery.documents.v2.clone()).collect()
    }

    /// The backend of an APIService.
    fn backend(&self, service: &ApiService) -> Result<Backend, Unreachable> {
        let name = (service.namespace.as_str(), service.service.as_str());
        self.extensions.backend(name, service.port, &service.trust)
    }
}
