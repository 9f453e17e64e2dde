//! What is in a namespace, and how it goes.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use pintle_meta::object;
use pintle_registry::request::{DeleteOptions, ListOptions, Propagation};
use pintle_registry::{Resource, Verb};

use crate::{Environment, target};

/// What is left of a namespace's content.
#[derive(Debug, Default)]
pub(super) struct Left {
    /// How many objects of each resource: `configmaps.`, `deployments.apps`.
    pub(super) objects: BTreeMap<String, usize>,
    /// How many of them have which finalizer.
    pub(super) finalizers: BTreeMap<String, usize>,
    /// What went wrong.
    pub(super) failures: Vec<String>,
}

impl Left {
    /// Whether nothing is left, and nothing went wrong.
    pub(super) fn is_empty(&self) -> bool {
        self.objects.is_empty() && self.failures.is_empty()
    }
}

/// Deletes everything in a namespace, and tells what is left. While there are pods, only they are
/// deleted: they may need the rest to end in peace (upstream: OrderedNamespaceDeletion).
pub(super) async fn remove(environment: &Environment, namespace: &str) -> Left {
    let mut left = Left::default();
    let (pods, rest): (Vec<_>, Vec<_>) =
        resources(environment).into_iter().partition(|r| r.group_resource().to_string() == "pods");
    for resources in [pods, rest] {
        for resource in &resources {
            remove_all(environment, resource, namespace, &mut left).await;
        }
        if !left.is_empty() {
            break;
        }
    }
    left
}

/// The resources whose objects live in namespaces; of the versions that share objects, the storage
/// version, which needs no conversion, if it is served.
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

async fn remove_all(
    environment: &Environment,
    resource: &Arc<Resource>,
    namespace: &str,
    left: &mut Left,
) {
    let collection = target(resource, namespace, "", "");
    let everything = ListOptions::default();
    let list = async || environment.registry.list(&collection, &everything).await;
    if list().await.is_ok_and(|list| list.objects.is_empty()) {
        return;
    }
    let options =
        DeleteOptions { propagation: Some(Propagation::Background), ..DeleteOptions::default() };
    let context = environment.context(super::USER);
    let deleted =
        environment.registry.delete_collection(&collection, &everything, &options, &context).await;
    if let Err(status) = deleted {
        left.failures.push(status.message);
    }
    match list().await {
        Ok(list) => {
            for object in &list.objects {
                match object.tree() {
                    Ok(tree) => object::finalizers(&tree).for_each(|finalizer| {
                        *left.finalizers.entry(finalizer.to_owned()).or_default() += 1;
                    }),
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
