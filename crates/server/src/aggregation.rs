//! Versions of groups that an APIService gives to an extension API server.

mod identity;
mod probe;
mod services;

use std::cmp::Reverse;
use std::sync::Arc;

use pintle_registry::Registry;

use crate::backends::{Backend, Extensions, Unreachable};
use crate::discovery::{group_elsewhere, type_name};
use crate::negotiation::Negotiated;
use crate::respond::{self, Response};
pub(crate) use services::ApiService;
use services::ApiServices;

/// Who answers for which version of a group, and how they are reached.
pub(crate) struct Aggregation {
    services: ApiServices,
    extensions: Extensions,
}

impl Aggregation {
    pub(crate) fn new(extensions: Extensions) -> Self {
        Self { services: ApiServices::default(), extensions }
    }

    /// Follows a registry from now on.
    pub(crate) fn follow(&self, registry: &Registry) {
        self.services.follow(registry);
    }

    /// Where an extension API server is.
    fn backend(&self, service: &ApiService) -> Result<Backend, Unreachable> {
        let name = (service.namespace.as_str(), service.service.as_str());
        self.extensions.backend(name, service.port, &service.trust)
    }

    /// Answers for a path that nothing here is served at, if it is given to another server.
    pub(crate) fn answer(&self, path: &str, negotiated: Negotiated) -> Option<Response> {
        let mut parts = path.strip_prefix("/apis/")?.trim_end_matches('/').split('/');
        let (group, version) = (parts.next()?, parts.next());
        let current = self.services.current();
        if let Some(version) = version {
            current.of(group, version)?;
            return Some(respond::text(503, "service unavailable\n"));
        }
        let mut versions: Vec<&Arc<ApiService>> =
            current.all().filter(|service| service.group == group).collect();
        if versions.is_empty() {
            return None;
        }
        versions.sort_by_key(|service| (Reverse(service.version_priority), &service.version));
        let names: Vec<&str> = versions.iter().map(|service| service.version.as_str()).collect();
        let json = group_elsewhere(group, &names);
        Some(respond::object(200, json, type_name::GROUP, negotiated))
    }
}
