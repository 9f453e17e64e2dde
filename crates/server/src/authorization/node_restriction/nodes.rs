//! Nodes: a node may write itself, but not the labels that steer pods to it. An update may change
//! neither its taints nor its owners.

use std::collections::BTreeSet;

use pintle_meta::object;
use pintle_meta::quote::quote;
use pintle_registry::admission::Operation::{Create, Update};
use pintle_value::{Map, Value};

use super::{Decision, Restricted, ensure};

/// The labels of Kubernetes' domains that a node may set on itself, besides all labels of
/// [`LABEL_DOMAINS`].
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

/// The domain of labels that no node may set on itself.
const RESTRICTED: &str = "node-restriction.kubernetes.io";

impl Restricted<'_> {
    pub(super) fn node(&self) -> Decision {
        let (node, name) = (self.quoted(), self.name());
        ensure(name == self.node, || {
            format!("node {node} is not allowed to modify node {}", quote(name))
        })?;
        let at = |object: Option<&Value>, path: &[&str]| {
            let found = object.and_then(|object| object.at(path)).cloned();
            found.filter(|found| !found.is_null() && found != &Value::Array(Vec::new()))
        };
        let (new, old) = (self.object, self.old);
        let source = at(new, &["spec", "configSource"]);
        let forbidden = forbidden_labels(changed_labels(new, old));
        let labels = forbidden.join(", ");
        match self.operation {
            Create => {
                ensure(source.is_none(), || {
                    format!("node {node} is not allowed to create pods with a non-nil configSource")
                })?;
                ensure(forbidden.is_empty(), || {
                    format!("node {node} is not allowed to set the following labels: {labels}")
                })
            }
            Update => {
                let is_unchanged = source == at(old, &["spec", "configSource"]);
                ensure(source.is_none() || is_unchanged, || {
                    format!(
                        "node {node} is not allowed to update configSource to a new non-nil \
                         configSource"
                    )
                })?;
                // The garbage collector deletes a node whose owners do not exist, and its taints
                // with it.
                for path in [&["spec", "taints"], &["metadata", "ownerReferences"]] {
                    ensure(at(new, path) == at(old, path), || {
                        format!("node {node} is not allowed to modify {}", path[1])
                    })?;
                }
                ensure(forbidden.is_empty(), || {
                    format!("is not allowed to modify labels: {labels}")
                })
            }
            _ => Ok(()),
        }
    }
}

/// The labels that differ between two objects.
pub(super) fn changed_labels<'a>(
    new: Option<&'a Value>,
    old: Option<&'a Value>,
) -> BTreeSet<&'a str> {
    let (new, old) = (new.and_then(object::labels), old.and_then(object::labels));
    let value = |labels: Option<&'a Map>, key: &str| labels.and_then(|labels| labels.get(key));
    let keys = new.into_iter().chain(old).flat_map(Map::keys);
    keys.map(|key| &**key).filter(|key| value(new, key) != value(old, key)).collect()
}

/// The labels that a node must not set, because they steer pods.
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
