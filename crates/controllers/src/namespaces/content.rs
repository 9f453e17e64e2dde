//! Deletion of a namespace's content.

use std::collections::BTreeSet;
use std::sync::Arc;

use pintle_meta::object;
use pintle_registry::request::ListOptions;
use pintle_registry::{Object, Resource, Verb};
use pintle_value::Value;

use super::{Left, deletion, extensions};
use crate::garbage::may_be_terminating;
use crate::pace::Pace;
use crate::{Environment, target};

const FINALIZERS: &[&str] = &["metadata", "finalizers"];
const GRACE: &[&str] = &["metadata", "deletionGracePeriodSeconds"];

/// The members that tell how far the deletion of an object is.
const LIFECYCLE: &[&[&str]] = &[&["metadata", "deletionTimestamp"], GRACE, FINALIZERS];

/// Deletes everything in a namespace; returns what remains. While there are pods, only they are
/// deleted, because they may need other objects to terminate (upstream: OrderedNamespaceDeletion).
pub(super) async fn remove(environment: &Environment, namespace: &str) -> Left {
    let mut left = Left::default();
    let (pods, rest): (Vec<_>, Vec<_>) =
        resources(environment).into_iter().partition(|r| r.group_resource().to_string() == "pods");
    for resource in &pods {
        remove_all(environment, resource, namespace, &mut left).await;
    }
    if left.is_empty() {
        for resource in &rest {
            remove_all(environment, resource, namespace, &mut left).await;
        }
        extensions::remove(environment, namespace, &mut left).await;
    }
    left
}

/// Returns one resource of each collection with namespaced objects: the storage version if it is
/// served, because it needs no conversion.
fn resources(environment: &Environment) -> Vec<Arc<Resource>> {
    let mut collections = BTreeSet::new();
    let (_, all) = environment.registry.resources();
    let of_namespaces = all.iter().filter(|r| r.namespaced() && r.verbs.contains(&Verb::Delete));
    let (mut first, others): (Vec<_>, Vec<_>) =
        of_namespaces.cloned().partition(|r| r.is_storage_version());
    first.extend(others);
    first.retain(|resource| {
        let storage = resource.storage.as_ref();
        storage.is_some_and(|storage| collections.insert(storage.collection.clone()))
    });
    first
}

/// Deletes the objects of a resource. Finalizers may keep many and large ones for long, and this is
/// repeated until they are gone: objects that only wait for others are left alone.
async fn remove_all(
    environment: &Environment,
    resource: &Arc<Resource>,
    namespace: &str,
    left: &mut Left,
) {
    let collection = target(resource, namespace, "", "");
    let everything = ListOptions::default();
    let list = async || environment.registry.list(&collection, &everything).await;
    let mut listed = list().await;
    if listed.as_ref().is_ok_and(|list| list.objects.is_empty()) {
        return;
    }
    let mut pace = Pace::default();
    if !matches!(&listed, Ok(list) if all_wait(&list.objects, &mut pace).await) {
        let (options, context) = (deletion(), environment.context(super::USER));
        let deleted = environment
            .registry
            .delete_collection(&collection, &everything, &options, &context)
            .await;
        if let Err(status) = deleted {
            left.failures.push(status.message);
        }
        listed = list().await;
    }
    match listed {
        Ok(list) => {
            for object in &list.objects {
                pace.step(object.size()).await;
                match object.excerpt(&[FINALIZERS]) {
                    Ok(excerpt) => left.count_finalizers(&excerpt),
                    Err(why) => left.failures.push(why.to_string()),
                }
            }
            if !list.objects.is_empty() {
                let r = &resource.resource;
                left.objects.insert(format!("{}.{}", r.resource, r.group), list.objects.len());
            }
        }
        Err(status) => left.failures.push(status.message),
    }
}

/// Whether another [`deletion`] would change none of the objects. An unreadable object does not
/// wait, so that its deletion reports the error.
async fn all_wait(objects: &[Arc<Object>], pace: &mut Pace) -> bool {
    for object in objects {
        pace.step(object.size()).await;
        let waits = may_be_terminating(object.abridged())
            && object.excerpt(LIFECYCLE).is_ok_and(|excerpt| waits(&excerpt));
        if !waits {
            return false;
        }
    }
    true
}

/// Whether an object is being deleted and waits for the end of its grace period, or afterwards for
/// finalizers that a [`deletion`] does not remove.
pub(super) fn waits(object: &Value) -> bool {
    if !object::is_terminating(object) {
        return false;
    }
    let mut finalizers = object::finalizers(object).peekable();
    match object.at(GRACE).and_then(Value::as_int) {
        Some(1..) => true,
        Some(0) => finalizers.peek().is_some() && finalizers.all(stays),
        _ => false,
    }
}

/// Whether a finalizer stays although dependents are deleted in the background.
fn stays(finalizer: &str) -> bool {
    !matches!(finalizer, "orphan" | "foregroundDeletion")
}
