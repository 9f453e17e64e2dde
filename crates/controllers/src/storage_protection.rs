//! Protection of storage and pod groups: volumes, claims, attributes classes and pod groups are
//! removed only when they are no longer used (upstream: `pvc-protection`, `pv-protection`,
//! `volumeattributesclass-protection`, `podgroup-protection`).
//!
//! Only objects that are being deleted are checked, repeatedly while they are used. Changes of pods
//! are not followed, because they are frequent.

#[cfg(test)]
mod tests;

use std::future::{Future, ready};
use std::sync::Arc;

use futures_util::future::BoxFuture;
use memchr::memmem::{self, Finder};
use pintle_meta::{Status, object};
use pintle_registry::request::{WriteOptions, granted};
use pintle_registry::{Object, Resource};
use pintle_value::{Str, Value};

use crate::pace::Pace;
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
    is_used: is_bound,
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

/// Whether an object is used.
type IsUsed<'a> = BoxFuture<'a, Result<bool, Status>>;

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
    is_used: for<'a> fn(&'a Environment, &'a Value) -> IsUsed<'a>,
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
    let goes = memmem::find(object.abridged(), b"\"deletionTimestamp\"");
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
        if (self.of.is_used)(self.environment, &object).await? {
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

/// Whether a volume has a claim.
fn is_bound<'a>(_: &'a Environment, volume: &'a Value) -> IsUsed<'a> {
    Box::pin(ready(Ok(volume.str_at(&["status", "phase"]) == Some("Bound"))))
}

/// Whether a pod with a node uses a claim.
fn is_mounted<'a>(environment: &'a Environment, claim: &'a Value) -> IsUsed<'a> {
    const MOUNTS: Search = Search {
        read: &[&["metadata", "name"], &["spec", "nodeName"], &["spec", "volumes"]],
        uses: mounts,
        // The name of an ephemeral volume's claim is not in the pod, but begins with the pod's name.
        may_imply: |pod, claim| made_for(pod.name(), claim).is_some(),
    };
    Box::pin(MOUNTS.any(object::name(claim), pods_beside(environment, claim)))
}

/// The pods in the namespace of an object.
fn pods_beside(environment: &Environment, object: &Value) -> Vec<Arc<Object>> {
    let pods = environment.resource("", "v1", "pods");
    let within = |pods| environment.registry.objects_in(pods, object::namespace(object));
    pods.as_deref().map(within).unwrap_or_default()
}

/// The name of the volume of a pod for which a claim is, if its name begins as such a name.
fn made_for<'c>(pod: &str, claim: &'c str) -> Option<&'c str> {
    claim.strip_prefix(pod)?.strip_prefix('-')
}

/// Whether a pod has a node and a volume with the claim: by name, or as an ephemeral volume.
fn mounts(pod: &Value, claim: &str) -> bool {
    let has_node = pod.str_at(&["spec", "nodeName"]).is_some_and(|node| !node.is_empty());
    let volumes = pod.at(&["spec", "volumes"]).and_then(Value::as_array).unwrap_or_default();
    let ephemeral = made_for(object::name(pod), claim);
    let is_it = |volume: &Value| {
        volume.str_at(&["persistentVolumeClaim", "claimName"]) == Some(claim)
            || ephemeral.is_some()
                && volume.get("ephemeral").is_some()
                && volume.str_at(&["name"]) == ephemeral
    };
    has_node && volumes.iter().any(is_it)
}

/// Whether a pod of a group is neither succeeded nor failed.
fn has_active_pods<'a>(environment: &'a Environment, group: &'a Value) -> IsUsed<'a> {
    const GROUP: &[&str] = &["spec", "schedulingGroup", "podGroupName"];
    const PHASE: &[&str] = &["status", "phase"];
    const MEMBERS: Search = Search {
        read: &[GROUP, PHASE],
        uses: |pod, group| {
            let has_ended = matches!(pod.str_at(PHASE), Some("Succeeded" | "Failed"));
            pod.str_at(GROUP) == Some(group) && !has_ended
        },
        may_imply: |_, _| false,
    };
    Box::pin(MEMBERS.any(object::name(group), pods_beside(environment, group)))
}

/// Whether a claim or volume has a class, or is being changed to it.
fn is_referred_to<'a>(environment: &'a Environment, class: &'a Value) -> IsUsed<'a> {
    const PATHS: &[&[&str]] = &[
        &["spec", "volumeAttributesClassName"],
        &["status", "currentVolumeAttributesClassName"],
        &["status", "modifyVolumeStatus", "targetVolumeAttributesClassName"],
    ];
    const REFERENCES: Search = Search {
        read: PATHS,
        uses: |object, class| PATHS.iter().any(|path| object.str_at(path) == Some(class)),
        may_imply: |_, _| false,
    };
    let kinds = ["persistentvolumeclaims", "persistentvolumes"].into_iter();
    let kinds = kinds.filter_map(|plural| environment.resource("", "v1", plural));
    let objects = kinds.flat_map(|kind| environment.registry.objects(&kind)).collect();
    Box::pin(REFERENCES.any(object::name(class), objects))
}

/// A search for an object that uses another, among objects that may be many and large.
struct Search {
    /// The members that `uses` reads.
    read: &'static [&'static [&'static str]],
    /// Whether an object uses the other, by its name.
    uses: fn(&Value, &str) -> bool,
    /// Whether an object may use the other without naming it.
    may_imply: fn(&Object, &str) -> bool,
}

impl Search {
    async fn any(self, name: &str, objects: Vec<Arc<Object>>) -> Result<bool, Status> {
        // Names have no characters that JSON escapes.
        let quoted = format!("\"{name}\"");
        let named = Finder::new(&quoted);
        let mut pace = Pace::default();
        for object in objects {
            pace.step(object.size()).await;
            object.check()?; // an unreadable object could use it
            let may_use =
                (self.may_imply)(&object, name) || named.find(object.abridged()).is_some();
            if may_use && (self.uses)(&object.excerpt(self.read)?, name) {
                return Ok(true);
            }
        }
        Ok(false)
    }
}
