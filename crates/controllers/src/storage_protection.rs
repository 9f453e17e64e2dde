//! Protection of storage and pod groups: volumes, claims, attributes classes and pod groups are
//! removed only when they are no longer used (upstream: `pvc-protection`, `pv-protection`,
//! `volumeattributesclass-protection`, `podgroup-protection`).
//!
//! Only objects that are being deleted are checked, repeatedly while they are used. Changes of pods
//! are not followed, because they are frequent.

#[cfg(test)]
mod tests;

use std::future::Future;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use pintle_meta::{Status, object};
use pintle_registry::request::{WriteOptions, granted};
use pintle_registry::{Object, Resource};
use pintle_value::{Str, Value};

use crate::reconcile::{Progress, Reconciler, Source, itself, work};
use crate::{Environment, body, split, target, until};

/// Protects persistent volume claims.
pub const CLAIMS: Protected = Protected {
    resource: ("", "v1", "persistentvolumeclaims"),
    queue: "pvcprotection",
    finalizer: "kubernetes.io/pvc-protection",
    user: "system:serviceaccount:kube-system:pvc-protection-controller",
    is_used: is_mounted,
};

/// Protects persistent volumes.
pub const VOLUMES: Protected = Protected {
    resource: ("", "v1", "persistentvolumes"),
    queue: "pvprotection",
    finalizer: "kubernetes.io/pv-protection",
    user: "system:serviceaccount:kube-system:pv-protection-controller",
    is_used: |_, volume| Ok(volume.str_at(&["status", "phase"]) == Some("Bound")),
};

/// Protects volume attributes classes.
pub const ATTRIBUTES_CLASSES: Protected = Protected {
    resource: ("storage.k8s.io", "v1", "volumeattributesclasses"),
    queue: "vacprotection",
    finalizer: "kubernetes.io/vac-protection",
    user: "system:serviceaccount:kube-system:volumeattributesclass-protection-controller",
    is_used: is_referred_to,
};

/// Protects pod groups, if they are served.
pub const POD_GROUPS: Protected = Protected {
    resource: ("scheduling.k8s.io", "v1alpha2", "podgroups"),
    queue: "podgroupprotection",
    finalizer: "scheduling.k8s.io/podgroup-protection",
    user: "system:serviceaccount:kube-system:podgroup-protection-controller",
    is_used: has_active_pods,
};

/// A resource whose objects stay while they are used.
#[derive(Clone, Copy)]
pub struct Protected {
    /// Group, version and resource.
    resource: (&'static str, &'static str, &'static str),
    /// The name of the queue in metrics.
    queue: &'static str,
    /// The finalizer that protects an object.
    finalizer: &'static str,
    user: &'static str,
    is_used: fn(&Environment, &Value) -> Result<bool, Status>,
}

/// Removes the finalizers of unused objects of a resource until shutdown.
pub async fn run(environment: Environment, of: Protected, shutdown: impl Future<Output = ()>) {
    let (group, version, resource) = of.resource;
    let Some(resource) = environment.resource(group, version, resource) else { return };
    let protection = Protection { environment: &environment, of, resource };
    until(shutdown, work(&environment, &protection)).await;
}

struct Protection<'e> {
    environment: &'e Environment,
    of: Protected,
    resource: Arc<Resource>,
}

impl Reconciler for Protection<'_> {
    fn purpose(&self) -> &'static str {
        "remove the protection of an unused object"
    }

    fn queue(&self) -> &'static str {
        self.of.queue
    }

    fn sources(&self) -> Vec<Source> {
        vec![Source::new(&self.resource, if_terminating)]
    }

    fn reconcile<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<Progress, Status>> {
        Box::pin(self.release_if_unused(name))
    }
}

/// Most objects are not being deleted; a search in their bytes shows it cheaply.
fn if_terminating(object: &Object) -> Option<Str> {
    let goes = memchr::memmem::find(object.json_bytes(), b"\"deletionTimestamp\"");
    goes.and_then(|_| itself(object))
}

impl Protection<'_> {
    async fn release_if_unused(&self, name: &str) -> Result<Progress, Status> {
        let registry = &self.environment.registry;
        let (namespace, name) = split(name);
        let Some(stored) = registry.peek(&self.resource, namespace, name) else {
            return Ok(Progress::Done);
        };
        let mut object = self.resource.tree(&stored)?;
        let is_protected = object::finalizers(&object).any(|name| name == self.of.finalizer);
        if !is_protected || !object::is_terminating(&object) {
            return Ok(Progress::Done);
        }
        if (self.of.is_used)(self.environment, &object)? {
            return Ok(Progress::Waiting);
        }
        let finalizers = object::metadata_mut(&mut object).get_mut("finalizers");
        if let Some(finalizers) = finalizers.and_then(Value::as_array_mut) {
            finalizers.retain(|name| name.as_str() != Some(self.of.finalizer));
        }
        let one = target(&self.resource, namespace, name, "");
        let (body, options) = (body(&object), WriteOptions::default());
        let context = self.environment.context(self.of.user);
        match registry.update(&one, &body, &options, &context, &granted).await {
            Err(status) if status.code != 404 => Err(status),
            Ok(_) | Err(_) => Ok(Progress::Done),
        }
    }
}

/// Whether a pod with a node uses a claim.
fn is_mounted(environment: &Environment, claim: &Value) -> Result<bool, Status> {
    let Some(pods) = environment.resource("", "v1", "pods") else { return Ok(false) };
    let pods = environment.registry.objects_in(&pods, object::namespace(claim));
    for pod in pods {
        if mounts(&pod.tree()?, object::name(claim)) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Whether a pod has a node and a volume with the claim: by name, or as an ephemeral volume.
fn mounts(pod: &Value, claim: &str) -> bool {
    let has_node = pod.str_at(&["spec", "nodeName"]).is_some_and(|node| !node.is_empty());
    let volumes = pod.at(&["spec", "volumes"]).and_then(Value::as_array).unwrap_or_default();
    let made_for = |volume: &Value| {
        let name = volume.str_at(&["name"]).unwrap_or_default();
        volume.get("ephemeral").is_some()
            && claim.strip_prefix(object::name(pod)).and_then(|rest| rest.strip_prefix('-'))
                == Some(name)
    };
    let is_it = |volume: &Value| {
        volume.str_at(&["persistentVolumeClaim", "claimName"]) == Some(claim) || made_for(volume)
    };
    has_node && volumes.iter().any(is_it)
}

/// Whether a pod of a group is neither succeeded nor failed.
fn has_active_pods(environment: &Environment, group: &Value) -> Result<bool, Status> {
    let Some(pods) = environment.resource("", "v1", "pods") else { return Ok(false) };
    for pod in environment.registry.objects_in(&pods, object::namespace(group)) {
        let pod = pod.tree()?;
        let named = pod.str_at(&["spec", "schedulingGroup", "podGroupName"]);
        let has_ended = matches!(pod.str_at(&["status", "phase"]), Some("Succeeded" | "Failed"));
        if named == Some(object::name(group)) && !has_ended {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Whether a claim or volume has a class, or is being changed to it.
fn is_referred_to(environment: &Environment, class: &Value) -> Result<bool, Status> {
    let paths: [&[&str]; 3] = [
        &["spec", "volumeAttributesClassName"],
        &["status", "currentVolumeAttributesClassName"],
        &["status", "modifyVolumeStatus", "targetVolumeAttributesClassName"],
    ];
    for resource in ["persistentvolumeclaims", "persistentvolumes"] {
        let Some(resource) = environment.resource("", "v1", resource) else { continue };
        for object in environment.registry.objects(&resource) {
            let tree = object.tree()?;
            if paths.iter().any(|path| tree.str_at(path) == Some(object::name(class))) {
                return Ok(true);
            }
        }
    }
    Ok(false)
}
