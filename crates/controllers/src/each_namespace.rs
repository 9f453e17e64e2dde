//! Common functions of controllers that maintain an object in every namespace.

use std::sync::Arc;

use pintle_meta::{Reason, Status, object};
use pintle_registry::request::WriteOptions;
use pintle_registry::{Registry, Resource};
use pintle_value::Value;

use crate::reconcile::Progress;
use crate::{Environment, body, target};

/// Whether a namespace exists and is not terminating.
pub(crate) fn is_active(
    registry: &Registry,
    namespaces: &Resource,
    name: &str,
) -> Result<bool, Status> {
    match registry.peek(namespaces, "", name) {
        Some(namespace) => Ok(!object::is_terminating(&namespace.tree()?)),
        None => Ok(false),
    }
}

/// Creates an object in its namespace. It succeeds, too, if the object exists, or the namespace is
/// terminating or missing.
pub(crate) async fn create(
    environment: &Environment,
    user: &'static str,
    resource: &Arc<Resource>,
    object: &Value,
) -> Result<Progress, Status> {
    let collection = target(resource, object::namespace(object), "", "");
    let (body, options) = (body(object), WriteOptions::default());
    let context = environment.context(user);
    match environment.registry.create(&collection, &body, &options, &context).await {
        Err(status) if !is_settled(&status) => Err(status),
        Ok(_) | Err(_) => Ok(Progress::Done),
    }
}

fn is_settled(status: &Status) -> bool {
    let causes = status.details.iter().flat_map(|details| &details.causes);
    matches!(status.reason, Some(Reason::AlreadyExists | Reason::NotFound))
        || causes.into_iter().any(|cause| cause.reason == "NamespaceTerminating")
}
