//! The built-in admission plugins: they change or refuse writes that are authorized and
//! well-formed.
//!
//! A module has one plugin, or several small ones; [`Plugins`] knows their names, their order, and
//! which of them run. A plugin reads the objects that its decision depends on from the registry. If
//! it needs these objects for every write of a kind, an index follows them, so that a write that
//! the plugin does not concern costs almost nothing. Users register webhooks and policies. This
//! crate decides which webhooks a write calls; the server sends the requests through [`Callers`]
//! and [`ImageReviewer`].
//!
//! Must not know HTTP, how users are authorized (it asks [`Permissions`]), or how writes are
//! committed.

mod annotations;
#[cfg(test)]
mod cluster;
mod conditions;
mod configuration;
mod declared_features;
mod default_class;
mod event_rate;
mod expression_validation;
mod expressions;
mod image_policy;
mod images;
mod known;
mod limits;
mod lru_cache;
mod matching;
mod measured;
mod measures;
mod namespace;
mod node_selector;
mod nodes;
mod pace;
mod permissions;
mod plugins;
mod pod_groups;
mod pod_security;
mod pods;
pub mod policies;
mod priority;
pub mod quota;
pub mod references;
mod refusals;
mod request;
mod resize;
mod rows;
mod runtime_class;
mod service_account;
mod storage;
mod strict;
mod tolerations;
mod topology;
mod webhooks;

pub use configuration::Configuration;
pub use expression_validation::ExpressionValidation;
pub use image_policy::{ImagePolicy, ImagePolicyWebhook, ImageReviewer};
pub use measures::{CALL_BOUNDS, CONDITION_BOUNDS, Measures, POLICY_BOUNDS};
pub use namespace::NamespaceLifecycle;
pub use permissions::{ExpressionAuthorizer, PendingRuling, Permissions};
pub use plugins::{PluginError, Plugins};
pub use webhooks::{Callers, Webhooks};

use pintle_meta::{GroupVersionResource, Status, object};
use pintle_registry::Registry;
use pintle_registry::admission::{Attributes, Operation};
use pintle_value::Value;

/// True for a write of a resource's objects, not of their subresources.
fn is_of(write: &Attributes<'_>, group: &str, resource: &str) -> bool {
    is_at(write, group, resource, "")
}

/// True for a write of a subresource of a resource's objects.
fn is_at(write: &Attributes<'_>, group: &str, resource: &str, subresource: &str) -> bool {
    let of = &write.resource.resource;
    of.resource == resource && of.group == group && write.subresource == subresource
}

/// True for a create of a resource.
fn creates(write: &Attributes<'_>, group: &str, resource: &str) -> bool {
    write.operation == Operation::Create && is_of(write, group, resource)
}

/// Returns an object of version v1; `namespace` is `""` for cluster-scoped resources.
fn find(
    registry: &Registry,
    (group, resource): (&str, &str),
    namespace: &str,
    name: &str,
) -> Result<Option<Value>, Status> {
    let resource = registry.resource(&GroupVersionResource::new(group, "v1", resource));
    let found = resource.and_then(|resource| registry.peek(&resource, namespace, name));
    Ok(found.map(|found| found.tree()).transpose()?)
}

/// Returns the 403 of a plugin. `object` is the object as the plugins before have changed it.
pub fn forbidden(write: &Attributes<'_>, object: &Value, why: &str) -> Status {
    let name = written_name(write, Some(object));
    Status::forbidden(&write.resource.group_resource(), &name, why)
}

/// The name of the written object in refusals.
fn written_name(write: &Attributes<'_>, object: Option<&Value>) -> String {
    let of = |member| object.map_or("", |object| object::text(object, member));
    let mut names = [write.name, of("name"), of("generateName")].into_iter();
    names.find(|name| !name.is_empty()).unwrap_or("Unknown").to_owned()
}
