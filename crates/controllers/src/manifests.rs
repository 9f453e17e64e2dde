//! Manifests: objects that are applied at start, as `kubectl apply --server-side` would do it.
//!
//! An object whose kind or namespace is defined by another manifest is retried, so order does not
//! matter. An error that no retry can resolve is returned as soon as a round applies no object.
//! [`apply`] returns after the resources of all CustomResourceDefinitions among them are served, or
//! after a timeout.

#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use pintle_crd::{Crd, Version};
use pintle_meta::{GroupVersionResource, Reason, Status, object};
use pintle_registry::Resource;
use pintle_registry::request::{Encoding, PatchType, WriteOptions, granted};
use pintle_value::{Str, Value};
use tokio::time::Instant;

use crate::{Environment, SERVER, body, target};

const MANAGER: Str = Str::const_new("pintle");
/// How long failing objects are retried without any progress, and how long definitions are awaited.
const TIMEOUT: Duration = Duration::from_secs(5);
const PAUSE: Duration = Duration::from_millis(2);

/// An object that could not be applied.
#[derive(Debug)]
pub struct Refused {
    /// The object.
    pub object: Value,
    /// The error.
    pub status: Status,
}

/// Applies all objects; returns the error of the first object that cannot be applied.
pub async fn apply(environment: &Environment, objects: Vec<Value>) -> Result<(), Box<Refused>> {
    let definitions = objects.iter().filter(|object| is_definition(object)).cloned();
    let definitions: Vec<Value> = definitions.collect();
    apply_all(environment, objects).await?;
    wait_until_served(environment, definitions).await;
    Ok(())
}

async fn apply_all(environment: &Environment, objects: Vec<Value>) -> Result<(), Box<Refused>> {
    let mut left = objects;
    let mut deadline = Instant::now() + TIMEOUT;
    let definitions: Vec<Value> = left.iter().filter(|o| is_definition(o)).cloned().collect();
    while !left.is_empty() {
        let mut refused = Vec::new();
        let before = left.len();
        for object in left {
            if let Err(status) = apply_one(environment, &object).await {
                refused.push(Refused { object, status });
            }
        }
        if refused.len() < before {
            deadline = Instant::now() + TIMEOUT;
        } else {
            let is_late = Instant::now() > deadline;
            let is_final = |refused: &Refused| is_late || is_final(refused, &definitions);
            if let Some(first) = refused.iter().position(is_final) {
                return Err(Box::new(refused.swap_remove(first)));
            }
        }
        left = refused.into_iter().map(|refused| refused.object).collect();
        if !left.is_empty() {
            tokio::time::sleep(PAUSE).await;
        }
    }
    Ok(())
}

/// Whether retrying cannot help, given that no other manifest could be applied since: the object is
/// invalid, or its kind or its namespace does not exist. An object of one of the manifests' own
/// definitions is retried, since a definition takes effect some time after it is written; so is one
/// that a webhook or a missing service account refused.
fn is_final(refused: &Refused, definitions: &[Value]) -> bool {
    let group = object_group(&refused.object);
    let kind = refused.object.str_at(&["kind"]);
    let defines = |definition: &Value| {
        let crd = Crd(definition);
        crd.group() == group && definition.str_at(&["spec", "names", "kind"]) == kind
    };
    let reason = refused.status.reason;
    matches!(reason, Some(Reason::Invalid | Reason::BadRequest | Reason::NotFound))
        && !definitions.iter().any(defines)
}

/// The API group of an object; empty for the core group.
fn object_group(object: &Value) -> &str {
    let version = object.str_at(&["apiVersion"]).unwrap_or_default();
    version.split_once('/').map_or("", |(group, _)| group)
}

fn is_definition(object: &Value) -> bool {
    let kind = (object.str_at(&["apiVersion"]), object.str_at(&["kind"]));
    kind == (Some("apiextensions.k8s.io/v1"), Some("CustomResourceDefinition"))
}

/// Waits until the definitions' resources are served, which happens shortly after they are written.
/// A definition whose names are taken is not awaited.
async fn wait_until_served(environment: &Environment, definitions: Vec<Value>) {
    let deadline = Instant::now() + TIMEOUT;
    for definition in &definitions {
        while !is_served_or_rejected(environment, definition) && Instant::now() < deadline {
            tokio::time::sleep(PAUSE).await;
        }
    }
}

/// Whether the served versions of a definition exist, or never will.
fn is_served_or_rejected(environment: &Environment, definition: &Value) -> bool {
    let registry = &environment.registry;
    let crd = Crd(definition);
    let is_there = |version: Version<'_>| {
        let resource = GroupVersionResource::new(crd.group(), version.name(), crd.names().plural());
        !version.is_served() || registry.resource(&resource).is_some()
    };
    let has_its_names = || {
        let resource = resource(environment, definition).ok()?;
        let stored = registry.peek(&resource, "", object::name(definition))?;
        let tree = stored.tree().ok()?;
        let condition = Crd(&tree).condition("NamesAccepted")?;
        Some(condition.str_at(&["status"]) != Some("False"))
    };
    crd.versions().all(is_there) || has_its_names() == Some(false)
}

async fn apply_one(environment: &Environment, object: &Value) -> Result<(), Status> {
    let resource = resource(environment, object)?;
    let mut object = object.clone();
    if resource.namespaced() && object::namespace(&object).is_empty() {
        object::set_text(&mut object, "namespace", "default");
    }
    let one = target(&resource, object::namespace(&object), object::name(&object), "");
    let options = WriteOptions { field_manager: MANAGER, force: true, ..WriteOptions::default() };
    let context = environment.context(SERVER);
    let patch = body(&object).bytes;
    let kind = PatchType::Apply(Encoding::Json);
    environment.registry.patch(&one, &patch, kind, &options, &context, &granted).await.map(|_| ())
}

/// Returns the resource of an object's kind.
fn resource(environment: &Environment, object: &Value) -> Result<Arc<Resource>, Status> {
    let (version, kind) = (object.str_at(&["apiVersion"]), object.str_at(&["kind"]));
    let (_, all) = environment.registry.resources();
    let found = all.iter().find(|resource| {
        resource.storage.is_some()
            && Some(resource.api_version().as_str()) == version
            && Some(resource.kind.as_str()) == kind
    });
    found.cloned().ok_or_else(|| {
        let (version, kind) = (version.unwrap_or_default(), kind.unwrap_or_default());
        Status::bad_request(format!("no matches for kind {kind:?} in version {version:?}"))
    })
}
