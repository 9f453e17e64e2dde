//! Objects that somebody wants to be there from the beginning, applied as `kubectl apply --server-side`
//! would do it.
//!
//! What cannot be applied yet, as it is of a kind that another object defines or lies in a namespace
//! that another one is, is tried again: order does not matter.

#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use pintle_meta::{Status, object};
use pintle_registry::Resource;
use pintle_registry::request::{Encoding, PatchType, WriteOptions, granted};
use pintle_value::{Str, Value};
use tokio::time::Instant;

use crate::{Environment, SERVER, body, target};

const MANAGER: Str = Str::const_new("pintle");
/// How long an object is tried while no other makes progress either.
const PATIENCE: Duration = Duration::from_secs(5);
const PAUSE: Duration = Duration::from_millis(2);

/// An object that could not be applied.
#[derive(Debug)]
pub struct Refused {
    /// The object.
    pub object: Value,
    /// Why.
    pub status: Status,
}

/// Applies them all; the error is about the first that is left.
pub async fn apply(environment: &Environment, objects: Vec<Value>) -> Result<(), Box<Refused>> {
    let mut left = objects;
    let mut deadline = Instant::now() + PATIENCE;
    while !left.is_empty() {
        let mut refused = Vec::new();
        let mut first = None; // what the first of the refused is refused with
        let before = left.len();
        for object in left {
            if let Err(status) = apply_one(environment, &object).await {
                first.get_or_insert(status);
                refused.push(object);
            }
        }
        left = refused;
        if left.len() < before {
            deadline = Instant::now() + PATIENCE;
        } else if let Some(status) = first.filter(|_| Instant::now() > deadline) {
            return Err(Box::new(Refused { object: left.swap_remove(0), status }));
        }
        if !left.is_empty() {
            tokio::time::sleep(PAUSE).await;
        }
    }
    Ok(())
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

/// The resource of an object's kind.
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
