//! What a node may write: itself and the pods on it (upstream: `NodeRestriction`).

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use pintle_meta::quote::quote;
use pintle_meta::{GroupResource, Status, User, object};
use pintle_registry::Registry;
use pintle_registry::admission::{Admission, Attributes, Operation};
use pintle_value::{Map, Value};

use crate::pods::items;
use crate::{find, forbidden};

const MIRROR: &str = "kubernetes.io/config.mirror";
const LEASES: &str = "kube-node-lease";
const RESTRICTED: &str = "node-restriction.kubernetes.io";

/// The labels of Kubernetes that a node may give itself, and the domains of more of them.
const LABELS: [&str; 11] = [
    "kubernetes.io/hostname",
    "kubernetes.io/os",
    "kubernetes.io/arch",
    "topology.kubernetes.io/zone",
    "topology.kubernetes.io/region",
    "failure-domain.beta.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region",
    "node.kubernetes.io/instance-type",
    "beta.kubernetes.io/instance-type",
    "beta.kubernetes.io/os",
    "beta.kubernetes.io/arch",
];
const LABEL_DOMAINS: [&str; 2] = ["kubelet.kubernetes.io", "node.kubernetes.io"];

/// What of a pod refers to secrets, and to maps of configuration.
const SECRETS: [&str; 6] = [
    "secret",
    "secretRef",
    "secretKeyRef",
    "nodePublishSecretRef",
    "azureFile",
    "imagePullSecrets",
];
const CONFIG_MAPS: [&str; 3] = ["configMap", "configMapRef", "configMapKeyRef"];

/// The plugin.
pub(crate) struct NodeRestriction;

impl Admission for NodeRestriction {
    fn admit(&self, write: &Attributes<'_>, registry: &Registry) -> Result<(), Status> {
        let Some(node) = node(write.user) else { return Ok(()) };
        let decided = if node.is_empty() {
            Err(format!("could not determine node from user {}", quote(&write.user.name)))
        } else {
            let found = |resource: &str, namespace: &str, name: &str| {
                find(registry, ("", resource), namespace, name)
            };
            let restricted = Restricted {
                node,
                operation: write.operation,
                resource: &write.resource.group_resource(),
                namespace: write.namespace,
                name: write.name,
                subresource: write.subresource,
                object: write.object,
                old: write.old,
                find: &found,
            };
            restricted.decide()
        };
        decided.map_err(|why| forbidden(write, write.object.unwrap_or(&Value::Null), &why))
    }
}

/// The name of the node that a user is, `""` for one that does not say it.
fn node(user: &User) -> Option<&str> {
    user.name.strip_prefix("system:node:").filter(|_| user.is_in("system:nodes"))
}

/// A write by a node.
struct Restricted<'a> {
    node: &'a str,
    operation: Operation,
    resource: &'a GroupResource,
    namespace: &'a str,
    name: &'a str,
    subresource: &'a str,
    object: Option<&'a Value>,
    old: Option<&'a Value>,
    /// An object of the core group.
    find: &'a dyn Fn(&str, &str, &str) -> Option<Value>,
}

impl Restricted<'_> {
    fn decide(&self) -> Result<(), String> {
        let resource = self.resource;
        match (resource.group.as_str(), resource.resource.as_str()) {
            ("", "pods") => self.pod(),
            ("", "nodes") => self.node(),
            ("", "persistentvolumeclaims") => self.claim(),
            ("coordination.k8s.io", "leases") => self.lease(),
            ("storage.k8s.io", "csinodes") => {
                let why = "can only access CSINode with the same name as the requesting node";
                ensure(self.name() == self.node, why)
            }
            ("resource.k8s.io", "resourceslices") => self.slice(),
            _ => Ok(()),
        }
    }

    fn name(&self) -> &str {
        let given = self.object.map(object::name).filter(|name| !name.is_empty());
        given.unwrap_or(self.name)
    }

    fn quoted(&self) -> String {
        quote(self.node)
    }

    fn pod(&self) -> Result<(), String> {
        use Operation::{Create, Delete, Update};
        let node = self.quoted();
        match (self.subresource, self.operation) {
            ("", Create) => self.mirror_pod(),
            ("", Delete) => ensure(
                self.is_here(self.old),
                format!("node {node} can only delete pods with spec.nodeName set to itself"),
            ),
            ("", operation) => Err(format!(
                "unexpected operation {}, node {node} can only create and delete mirror pods",
                quote(operation.name())
            )),
            ("status", Update) => self.pod_status(),
            ("eviction", Create) => {
                let pod = (self.find)("pods", self.namespace, self.name);
                // One that is not there is not found later.
                let is_here = pod.is_none() || self.is_here(pod.as_ref());
                let node = self.node;
                let why =
                    format!("node {node} can only evict pods with spec.nodeName set to itself");
                ensure(is_here, why)
            }
            ("status" | "eviction", operation) => {
                Err(format!("unexpected operation {}", quote(operation.name())))
            }
            (part, _) => Err(format!(
                "unexpected pod subresource {}, only 'status' and 'eviction' are allowed",
                quote(part)
            )),
        }
    }

    fn is_here(&self, pod: Option<&Value>) -> bool {
        pod.is_some_and(|pod| pod.str_at(&["spec", "nodeName"]) == Some(self.node))
    }

    /// A pod that a node has of its own accord: it needs nothing of the server.
    fn mirror_pod(&self) -> Result<(), String> {
        let (node, pod) = (self.quoted(), self.object.unwrap_or(&Value::Null));
        let is_mirror = object::annotations(pod).is_some_and(|all| all.contains_key(MIRROR));
        ensure(
            is_mirror,
            format!(
                "pod does not have {} annotation, node {node} can only create mirror pods",
                quote(MIRROR)
            ),
        )?;
        ensure(
            self.is_here(Some(pod)),
            format!("node {node} can only create pods with spec.nodeName set to itself"),
        )?;
        self.owner(pod)?;
        let is_without = |holds: bool, what: &str| {
            ensure(!holds, format!("node {node} can not create pods that reference {what}"))
        };
        let account = pod.str_at(&["spec", "serviceAccountName"]).unwrap_or_default();
        is_without(!account.is_empty(), "a service account")?;
        is_without(mentions(pod, &SECRETS), "secrets")?;
        is_without(mentions(pod, &CONFIG_MAPS), "configmaps")?;
        is_without(mentions(pod, &["clusterTrustBundle"]), "clustertrustbundles")?;
        is_without(mentions(pod, &["persistentVolumeClaim"]), "persistentvolumeclaims")
    }

    fn owner(&self, pod: &Value) -> Result<(), String> {
        let (node, is) = (self.quoted(), |owner: &Value, member: &str, wanted: &str| {
            owner.str_at(&[member]) == Some(wanted)
        });
        let itself =
            format!("node {node} can only create pods with an owner reference set to itself");
        let owner = match items(pod, &["metadata", "ownerReferences"]) {
            [] => return Err(itself),
            [owner] => owner,
            _ => {
                return Err(format!(
                    "node {node} can only create pods with a single owner reference set to itself"
                ));
            }
        };
        let is_it = is(owner, "apiVersion", "v1")
            && is(owner, "kind", "Node")
            && is(owner, "name", self.node);
        ensure(is_it, itself)?;
        let says = |member: &str| owner.get(member).and_then(Value::as_bool) == Some(true);
        ensure(
            says("controller"),
            format!(
                "node {node} can only create pods with a controller owner reference set to itself"
            ),
        )?;
        ensure(
            !says("blockOwnerDeletion"),
            format!("node {node} must not set blockOwnerDeletion on an owner reference"),
        )?;
        let known = (self.find)("nodes", "", self.node);
        let known = known.ok_or_else(|| format!("nodes {node} not found"))?;
        let (said, is) = (owner.str_at(&["uid"]).unwrap_or_default(), object::uid(&known));
        ensure(said == is, format!("node {} UID mismatch: expected {said} got {is}", self.node))
    }

    fn pod_status(&self) -> Result<(), String> {
        let node = self.quoted();
        ensure(
            self.is_here(self.old),
            format!(
                "node {node} can only update pod status for pods with spec.nodeName set to itself"
            ),
        )?;
        ensure(
            changed_labels(self.object, self.old).is_empty(),
            format!("node {node} cannot update labels through pod status"),
        )?;
        let claims = |pod: Option<&Value>| {
            let all = pod.map(|pod| items(pod, &["status", "resourceClaimStatuses"]));
            all.unwrap_or_default().to_vec()
        };
        ensure(
            claims(self.object) == claims(self.old),
            format!("node {node} cannot update resource claim statues"),
        )
    }

    fn node(&self) -> Result<(), String> {
        let (node, name) = (self.quoted(), self.name());
        ensure(
            name == self.node,
            format!("node {node} is not allowed to modify node {}", quote(name)),
        )?;
        let at = |object: Option<&Value>, member| {
            let found = object.and_then(|object| object.at(&["spec", member])).cloned();
            found.filter(|found| !found.is_null())
        };
        let (new, old) = (self.object, self.old);
        if self.operation == Operation::Update {
            ensure(
                at(new, "taints") == at(old, "taints"),
                format!("node {node} is not allowed to modify taints"),
            )?;
        }
        let source = at(new, "configSource");
        let forbidden = forbidden_labels(changed_labels(new, old));
        let labels = forbidden.join(", ");
        match self.operation {
            Operation::Create => {
                let why = format!(
                    "node {node} is not allowed to create pods with a non-nil configSource"
                );
                ensure(source.is_none(), why)?;
                let why =
                    format!("node {node} is not allowed to set the following labels: {labels}");
                ensure(forbidden.is_empty(), why)
            }
            Operation::Update => {
                let why = format!(
                    "node {node} is not allowed to update configSource to a new non-nil configSource"
                );
                ensure(source.is_none() || source == at(old, "configSource"), why)?;
                ensure(forbidden.is_empty(), format!("is not allowed to modify labels: {labels}"))
            }
            Operation::Delete | Operation::Connect => Ok(()),
        }
    }

    /// Nodes tell how large a volume is by now, and nothing else.
    fn claim(&self) -> Result<(), String> {
        let is_status = self.subresource == "status";
        ensure(is_status, "may only update PVC status")?;
        let bare = |claim: Option<&Value>| {
            let mut claim = claim.cloned().unwrap_or_default();
            let status = claim.object_entry("status");
            for member in
                ["capacity", "conditions", "allocatedResources", "allocatedResourceStatuses"]
            {
                status.remove(member);
            }
            for member in ["resourceVersion", "managedFields"] {
                object::metadata_mut(&mut claim).remove(member);
            }
            claim
        };
        ensure(
            bare(self.object) == bare(self.old),
            format!(
                "node {} is not allowed to update fields other than status.capacity and \
                 status.conditions",
                self.quoted()
            ),
        )
    }

    fn lease(&self) -> Result<(), String> {
        ensure(
            self.namespace == LEASES,
            format!("can only access leases in the {} system namespace", quote(LEASES)),
        )?;
        let why = "can only access node lease with the same name as the requesting node";
        ensure(self.name() == self.node, why)
    }

    /// Updates are seen to by who authorizes nodes.
    fn slice(&self) -> Result<(), String> {
        let (slice, verb) = match self.operation {
            Operation::Create => (self.object, "create"),
            Operation::Delete => (self.old, "delete"),
            Operation::Update | Operation::Connect => return Ok(()),
        };
        let is_its = slice.and_then(|slice| slice.str_at(&["spec", "nodeName"])) == Some(self.node);
        let why =
            format!("can only {verb} ResourceSlice with the same NodeName as the requesting node");
        ensure(is_its, why)
    }
}

fn ensure(holds: bool, why: impl Into<String>) -> Result<(), String> {
    if holds { Ok(()) } else { Err(why.into()) }
}

/// Whether a pod's volumes, containers or pull secrets refer to something by a member of one of these
/// names. Texts do not count: who names a key of an option so refers to nothing.
fn mentions(pod: &Value, names: &[&str]) -> bool {
    fn within(value: &Value, names: &[&str]) -> bool {
        match value {
            Value::Object(map) => map.iter().any(|(name, value)| {
                let refers = value.as_object().is_some() || value.as_array().is_some();
                refers && (names.contains(&&**name) || within(value, names))
            }),
            Value::Array(items) => items.iter().any(|item| within(item, names)),
            _ => false,
        }
    }
    const PARTS: [&str; 4] = ["volumes", "containers", "initContainers", "ephemeralContainers"];
    let spec = |member: &str| pod.at(&["spec", member]);
    PARTS.iter().filter_map(|part| spec(part)).any(|part| within(part, names))
        || names.iter().any(|name| spec(name).is_some())
}

fn changed_labels<'a>(new: Option<&'a Value>, old: Option<&'a Value>) -> BTreeSet<&'a str> {
    let (new, old) = (new.and_then(object::labels), old.and_then(object::labels));
    let value = |labels: Option<&'a Map>, key: &str| labels.and_then(|labels| labels.get(key));
    let keys = new.into_iter().chain(old).flat_map(Map::keys);
    keys.map(|key| &**key).filter(|key| value(new, key) != value(old, key)).collect()
}

/// Those of labels that a node must not decide on: they steer pods to it.
fn forbidden_labels(labels: BTreeSet<&str>) -> Vec<&str> {
    let is_within = |domain: &str, of: &str| {
        domain.strip_suffix(of).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
    };
    let is_forbidden = |label: &&str| {
        let domain = label.split_once('/').map_or("", |(domain, _)| domain);
        let is_known =
            LABELS.contains(label) || LABEL_DOMAINS.iter().any(|of| is_within(domain, of));
        let is_kubernetes = is_within(domain, "kubernetes.io") || is_within(domain, "k8s.io");
        is_within(domain, RESTRICTED) || (is_kubernetes && !is_known)
    };
    labels.into_iter().filter(is_forbidden).collect()
}
