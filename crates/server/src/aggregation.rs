//! Versions of groups that an APIService gives to an extension API server: they are its, whatever definitions
//! of them there are here.

mod discovery;
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
pub(crate) use proxy::Handed;
pub(crate) use services::ApiService;
use services::ApiServices;

/// Who answers for which version of a group, how they are reached, and what they serve.
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

    /// Follows a registry from now on.
    pub(crate) fn follow(&self, registry: &Registry) {
        self.services.follow(registry);
    }

    /// Who answers for a path, if it is another server: for `/apis/G/V` and what is below, and for the
    /// OpenAPI document of that.
    pub(crate) fn answering(&self, path: &str) -> Option<Arc<ApiService>> {
        let path = path.strip_prefix("/openapi/v3").unwrap_or(path);
        let mut parts = path.strip_prefix("/apis/")?.split('/');
        let (group, version) = (parts.next()?, parts.next()?);
        self.services.current().of(group, version).cloned()
    }

    /// Which state of what others serve it is now: it grows with each change.
    pub(crate) fn number(&self) -> u64 {
        self.services.current().number() + self.discovered.number()
    }

    /// What others serve.
    pub(crate) fn served(&self) -> ExtensionSet {
        // The number first: what changes meanwhile is looked at again.
        let number = self.number();
        let current = self.services.current();
        let all = current.all().map(|service| Extension {
            group: service.group.clone(),
            version: service.version.clone(),
            group_priority: service.group_priority,
            version_priority: service.version_priority,
            said: self.discovered.of(&service.name).map(|said| said.version.clone()),
        });
        ExtensionSet { number, all: all.collect() }
    }

    /// The paths of others' OpenAPI documents in the list of them, and their hashes.
    pub(crate) fn openapi(&self) -> BTreeMap<String, String> {
        let current = self.services.current();
        let documents = current.all().filter_map(|service| {
            let hash = self.discovered.of(&service.name)?.openapi_hash.clone()?;
            Some((format!("apis/{}/{}", service.group, service.version), hash))
        });
        documents.collect()
    }

    /// Where an extension API server is.
    fn backend(&self, service: &ApiService) -> Result<Backend, Unreachable> {
        let name = (service.namespace.as_str(), service.service.as_str());
        self.extensions.backend(name, service.port, &service.trust)
    }
}
