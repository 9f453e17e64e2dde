//! Versions of groups that an APIService gives to a server elsewhere. None is asked yet: what upstream
//! says of a server that it cannot reach is said of all.

use std::cmp::Reverse;

use pintle_meta::GroupVersionResource;
use pintle_registry::{Object, Registry};
use pintle_value::Value;

use crate::discovery::{group_elsewhere, type_name};
use crate::negotiation::Negotiated;
use crate::respond::{self, Response};

/// Answers for a path that nothing here is served at, if it is given to another server.
pub(crate) fn answer(registry: &Registry, path: &str, negotiated: Negotiated) -> Option<Response> {
    let mut parts = path.strip_prefix("/apis/")?.trim_end_matches('/').split('/');
    let (group, version) = (parts.next()?, parts.next());
    let mut versions = elsewhere(registry, group);
    match version {
        Some(version) => {
            let is_given = versions.iter().any(|(_, name)| name == version);
            is_given.then(|| respond::text(503, "service unavailable\n"))
        }
        None if versions.is_empty() => None,
        None => {
            versions.sort_unstable();
            let names: Vec<&str> = versions.iter().map(|(_, name)| name.as_str()).collect();
            let json = group_elsewhere(group, &names);
            Some(respond::object(200, json, type_name::GROUP, negotiated))
        }
    }
}

/// The versions of a group that are elsewhere, each with what it is sorted by.
fn elsewhere(registry: &Registry, group: &str) -> Vec<(Reverse<i64>, String)> {
    let services = GroupVersionResource::new("apiregistration.k8s.io", "v1", "apiservices");
    let Some(resource) = registry.resource(&services) else { return Vec::new() };
    let given = |object: &Object| {
        let tree = object.tree().ok()?;
        let is_elsewhere = tree.at(&["spec", "service"]).is_some_and(|said| !said.is_null());
        let said = |member| tree.str_at(&["spec", member]).unwrap_or_default();
        let priority = tree.at(&["spec", "versionPriority"]).and_then(Value::as_int);
        (is_elsewhere && said("group") == group)
            .then(|| (Reverse(priority.unwrap_or_default()), said("version").to_owned()))
    };
    registry.objects(&resource).filter_map(|object| given(&object)).collect()
}
