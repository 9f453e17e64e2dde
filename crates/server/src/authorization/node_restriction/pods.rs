//! Pods: a node may create mirror pods of itself, and delete, evict and update the status of pods
//! on it.

use pintle_admission::references;
use pintle_meta::object;
use pintle_meta::quote::quote;
use pintle_registry::admission::Operation::{Create, Delete, Update};
use pintle_value::Value;

use super::nodes::changed_labels;
use super::{Decision, Refusal, Restricted, ensure};

pub(super) const MIRROR: &str = "kubernetes.io/config.mirror";

impl Restricted<'_> {
    pub(super) fn pod(&self) -> Decision {
        let node = self.quoted();
        match (self.subresource, self.operation) {
            ("", Create) => self.mirror_pod(self.object.unwrap_or(&Value::Null)),
            ("", Delete) => {
                let pod = self.require_pod(self.name)?;
                ensure(self.has(Some(&pod)), || {
                    format!("node {node} can only delete pods with spec.nodeName set to itself")
                })
            }
            ("", operation) => Err(Refusal::Forbidden(format!(
                "unexpected operation {}, node {node} can only create and delete mirror pods",
                quote(operation.name())
            ))),
            ("status", Update) => self.pod_status(),
            ("eviction", Create) => {
                let name = self.object.map(object::name).filter(|_| self.name.is_empty());
                let name = name.unwrap_or(self.name);
                ensure(!name.is_empty(), || {
                    "could not determine pod from request data".to_owned()
                })?;
                let pod = self.require_pod(name)?;
                ensure(self.has(Some(&pod)), || {
                    let node = self.node;
                    format!("node {node} can only evict pods with spec.nodeName set to itself")
                })
            }
            ("status", _) => Err(self.unexpected_operation()),
            ("eviction", operation) => {
                Err(Refusal::Forbidden(format!("unexpected operation {}", operation.name())))
            }
            (part, _) => Err(Refusal::Forbidden(format!(
                "unexpected pod subresource {}, only 'status' and 'eviction' are allowed",
                quote(part)
            ))),
        }
    }

    /// Whether the pod is on the node.
    fn has(&self, pod: Option<&Value>) -> bool {
        pod.is_some_and(|pod| pod.str_at(&["spec", "nodeName"]) == Some(self.node))
    }

    /// Checks a new mirror pod: it may refer to no other API objects.
    fn mirror_pod(&self, pod: &Value) -> Decision {
        let node = self.quoted();
        ensure(is_mirror(pod), || {
            let annotation = quote(MIRROR);
            format!(
                "pod does not have {annotation} annotation, node {node} can only create mirror pods"
            )
        })?;
        ensure(self.has(Some(pod)), || {
            format!("node {node} can only create pods with spec.nodeName set to itself")
        })?;
        self.owner(pod)?;
        let found = references::first(pod).map_err(|why| {
            Refusal::Forbidden(format!("error checking mirror pod for API references: {why}"))
        })?;
        match found {
            Some(kind) => Err(Refusal::Forbidden(format!(
                "node {node} can not create pods that reference {kind}"
            ))),
            None => Ok(()),
        }
    }

    /// A mirror pod's owner must be its node.
    fn owner(&self, pod: &Value) -> Decision {
        let node = self.quoted();
        let itself =
            || format!("node {node} can only create pods with an owner reference set to itself");
        let owners = pod.at(&["metadata", "ownerReferences"]).and_then(Value::as_array);
        let owner = match owners.unwrap_or_default() {
            [] => return Err(Refusal::Forbidden(itself())),
            [owner] => owner,
            _ => {
                return Err(Refusal::Forbidden(format!(
                    "node {node} can only create pods with a single owner reference set to itself"
                )));
            }
        };
        let text = |member: &str| owner.str_at(&[member]).unwrap_or_default();
        let named = (text("apiVersion"), text("kind"), text("name"));
        ensure(named == ("v1", "Node", self.node), itself)?;
        let says = |member: &str| owner.get(member).and_then(Value::as_bool) == Some(true);
        ensure(says("controller"), || {
            format!(
                "node {node} can only create pods with a controller owner reference set to itself"
            )
        })?;
        ensure(!says("blockOwnerDeletion"), || {
            format!("node {node} must not set blockOwnerDeletion on an owner reference")
        })?;
        let known = self.require("", ("node", "nodes"), "", self.node)?;
        let (claimed, is) = (text("uid"), object::uid(&known));
        ensure(claimed == is, || {
            format!("node {} UID mismatch: expected {claimed} got {is}", self.node)
        })
    }

    fn pod_status(&self) -> Decision {
        let node = self.quoted();
        ensure(self.has(self.old), || {
            format!(
                "node {node} can only update pod status for pods with spec.nodeName set to itself"
            )
        })?;
        ensure(changed_labels(self.object, self.old).is_empty(), || {
            format!("node {node} cannot update labels through pod status")
        })?;
        let is_same = |member: &str| {
            let of = |pod: Option<&Value>| {
                let found = pod.and_then(|pod| pod.at(&["status", member])).cloned();
                found.filter(|found| !found.is_null() && found != &Value::Array(Vec::new()))
            };
            of(self.object) == of(self.old)
        };
        ensure(is_same("resourceClaimStatuses"), || {
            format!("node {node} cannot update resource claim statues")
        })?;
        ensure(is_same("extendedResourceClaimStatus"), || {
            format!("node {node} cannot update extended resource claim status")
        })
    }
}

/// True for a mirror pod, which represents a static pod of the kubelet.
pub(super) fn is_mirror(pod: &Value) -> bool {
    object::annotations(pod).is_some_and(|all| all.contains_key(MIRROR))
}
