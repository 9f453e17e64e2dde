//! The Node authorizer: allows a node what its kubelet needs for the pods on it, as upstream does.
//!
//! Admission restricts the contents of a node's writes (its Node, mirror pods, its slices;
//! upstream: `NodeRestriction`), because an authorizer does not see these contents.

mod graph;
mod object;
mod references;
#[cfg(test)]
mod tests;

use std::borrow::Cow;

pub use graph::Graph;
use object::Sort;
pub use object::{Kind, Object};

use crate::rbac::Rule;
use crate::{Attributes, Decision, Objects, Rules, Ruling, Subject, User};

/// The namespace of node leases.
pub const LEASES: &str = "kube-node-lease";

/// The group of nodes.
const GROUP: &str = "system:nodes";

/// The node name in the user name of a node, which is `""` for the user `system:node:`; `None` for
/// a user that is no node.
pub fn name(user: &User) -> Option<&str> {
    user.name.strip_prefix("system:node:").filter(|_| user.is_in(GROUP))
}

/// The rules of all nodes.
#[derive(Debug, Default)]
pub struct Policy {
    /// The rules of the role `system:node`, which every node has.
    pub rules: Vec<Rule>,
    /// Whether PodCertificateRequests are served.
    pub pod_certificates: bool,
}

impl Policy {
    /// Authorizes a request. `reaches` is [`Graph::reaches`]; it is called for nodes only, and only
    /// if the ruling depends on it.
    pub fn authorize(
        &self,
        attributes: &Attributes<'_>,
        reaches: impl Fn(&str, &Object) -> bool,
    ) -> Ruling {
        let Some(node) = name(attributes.user) else { return Ruling::NO_OPINION };
        if node.is_empty() {
            return Ruling::no_opinion(format!("unknown node for user {:?}", attributes.user.name));
        }
        let reaches = |object: &Object| reaches(node, object);
        let verb = attributes.verb;
        let decided = match attributes.subject {
            Subject::Resource(objects) => {
                NodeRequest { node, verb, objects, reaches: &reaches }.decide(self)
            }
            Subject::Path(_) => None,
        };
        let allowed = || self.rules.iter().any(|rule| rule.allows(attributes));
        match decided.unwrap_or_else(|| if allowed() { Ok(()) } else { refuse("") }) {
            Ok(()) => Ruling::new(Decision::Allow, ""),
            Err(why) => Ruling::with_reason(Decision::NoOpinion, why),
        }
    }

    /// The rules of a node cannot be listed, as they depend on the graph.
    pub fn list(user: &User) -> Rules {
        match name(user) {
            Some(_) => Rules {
                incomplete: true,
                error: "node authorizer does not support user rule resolution".to_owned(),
                ..Rules::default()
            },
            None => Rules::default(),
        }
    }
}

/// Allowed, or the reason of the refusal.
type Permission = Result<(), Cow<'static, str>>;

fn refuse(why: impl Into<Cow<'static, str>>) -> Permission {
    Err(why.into())
}

/// The request of a node.
struct NodeRequest<'a> {
    node: &'a str,
    verb: &'a str,
    objects: Objects<'a>,
    reaches: &'a dyn Fn(&Object) -> bool,
}

impl NodeRequest<'_> {
    /// `None` if the ruling is the same for all nodes.
    fn decide(&self, policy: &Policy) -> Option<Permission> {
        let Objects { group, resource, subresource, .. } = self.objects;
        Some(match (group, resource) {
            ("", "secrets") => self.read(Sort::Secret),
            ("", "configmaps") => self.read(Sort::ConfigMap),
            ("", "persistentvolumeclaims") if subresource == "status" => self.claim_status(),
            ("", "persistentvolumeclaims") => self.get(Sort::Claim),
            ("", "persistentvolumes") => self.get(Sort::Volume),
            ("resource.k8s.io", "resourceclaims") => self.get(Sort::ResourceClaim),
            ("storage.k8s.io", "volumeattachments") => self.get(Sort::Attachment),
            ("", "serviceaccounts") => self.service_account(),
            ("coordination.k8s.io", "leases") => self.lease(),
            ("storage.k8s.io", "csinodes") => self.csi_node(),
            ("resource.k8s.io", "resourceslices") => self.slice(),
            ("", "nodes") => self.itself(),
            ("", "pods") => self.pod(),
            ("certificates.k8s.io", "podcertificaterequests") if policy.pod_certificates => {
                self.pod_certificate()
            }
            ("certificates.k8s.io", "podcertificaterequests") => refuse(""),
            _ => return None,
        })
    }

    /// A request for an object that belongs to the node.
    fn own(&self, sort: Sort) -> Permission {
        let Objects { namespace, name, .. } = self.objects;
        if name.is_empty() {
            return refuse("No Object name found");
        }
        self.related(sort, namespace, name)
    }

    fn related(&self, sort: Sort, namespace: &str, name: &str) -> Permission {
        if (self.reaches)(&Object::new(sort, namespace, name)) {
            return Ok(());
        }
        refuse(format!("no relationship found between node '{}' and this object", self.node))
    }

    fn get(&self, sort: Sort) -> Permission {
        match (self.verb, self.objects.subresource) {
            ("get", "") => self.own(sort),
            ("get", _) => refuse("cannot get subresource"),
            _ => refuse("can only get individual resources of this type"),
        }
    }

    /// A get, list or watch of one object that belongs to the node.
    fn read(&self, sort: Sort) -> Permission {
        match (self.verb, self.objects.subresource) {
            ("get" | "list" | "watch", "") if self.objects.namespace.is_empty() => {
                refuse("can only read namespaced object of this type")
            }
            ("get" | "list" | "watch", "") => self.own(sort),
            ("get" | "list" | "watch", _) => refuse("cannot read subresource"),
            _ => refuse("can only read resources of this type"),
        }
    }

    fn claim_status(&self) -> Permission {
        match self.verb {
            "update" | "patch" => self.own(Sort::Claim),
            _ => refuse("can only get/update/patch this type"),
        }
    }

    /// The service accounts of the node's pods, and tokens for them.
    fn service_account(&self) -> Permission {
        let Objects { namespace, name, subresource, .. } = self.objects;
        match (self.verb, subresource) {
            ("get", "") => self.read(Sort::ServiceAccount),
            ("create", _) if name.is_empty() => {
                refuse("can only create tokens for individual service accounts")
            }
            ("create", "token") => self.related(Sort::ServiceAccount, namespace, name),
            ("create", _) => refuse("can only create token subresource of serviceaccount"),
            _ => refuse("can only create tokens for individual service accounts"),
        }
    }

    fn lease(&self) -> Permission {
        match self.verb {
            "get" | "create" | "update" | "patch" | "delete" => {}
            _ => return refuse("can only get, create, update, patch, or delete a node lease"),
        }
        if self.objects.namespace != LEASES {
            return refuse(format!("can only access leases in the {LEASES:?} system namespace"));
        }
        self.named_like_node("can only access node lease with the same name as the requesting node")
    }

    fn csi_node(&self) -> Permission {
        match (self.verb, self.objects.subresource) {
            ("get" | "create" | "update" | "patch" | "delete", "") => self.named_like_node(
                "can only access CSINode with the same name as the requesting node",
            ),
            ("get" | "create" | "update" | "patch" | "delete", _) => {
                refuse("cannot authorize CSINode subresources")
            }
            _ => refuse("can only get, create, update, patch, or delete a CSINode"),
        }
    }

    /// An object with the node's name; a create has no name yet.
    fn named_like_node(&self, why: &'static str) -> Permission {
        if self.verb == "create" || self.objects.name == self.node { Ok(()) } else { refuse(why) }
    }

    fn slice(&self) -> Permission {
        match (self.verb, self.objects.subresource) {
            (_, part) if !part.is_empty() => refuse("cannot authorize ResourceSlice subresources"),
            ("create", _) => Ok(()),
            ("get" | "update" | "patch" | "delete", _) => self.own(Sort::Slice),
            ("watch" | "list" | "deletecollection", _) => {
                const WHY: &str = "can only list/watch/deletecollection resourceslices with nodeName field selector";
                if self.selects_its_own() { Ok(()) } else { refuse(WHY) }
            }
            _ => refuse(
                "only the following verbs are allowed for a ResourceSlice: get, watch, list, create, \
                 update, patch, delete, deletecollection",
            ),
        }
    }

    fn itself(&self) -> Permission {
        let (node, name) = (self.node, self.objects.name);
        match (self.objects.subresource, self.verb) {
            ("", "create" | "update" | "patch") | ("status", "update" | "patch") => Ok(()),
            ("", "get" | "list" | "watch") if name == node => Ok(()),
            ("", "get" | "list" | "watch") if name.is_empty() => {
                refuse(format!("node '{node}' cannot read all nodes, only its own Node object"))
            }
            ("", "get" | "list" | "watch") => {
                refuse(format!("node '{node}' cannot read '{name}', only its own Node object"))
            }
            _ => refuse(""),
        }
    }

    fn pod(&self) -> Permission {
        match (self.objects.subresource, self.verb) {
            ("", "get") => self.own(Sort::Pod),
            ("", "list" | "watch") if self.selects_its_own() => Ok(()),
            ("", "list" | "watch") if !self.objects.name.is_empty() => self.own(Sort::Pod),
            ("", "list" | "watch") => {
                refuse("can only list/watch pods with spec.nodeName field selector")
            }
            ("", "create" | "delete") | ("status", "update" | "patch") | ("eviction", "create") => {
                Ok(())
            }
            _ => refuse(""),
        }
    }

    fn pod_certificate(&self) -> Permission {
        match (self.objects.subresource, self.verb) {
            ("", "create") => Ok(()),
            ("", "get") => self.own(Sort::CertificateRequest),
            ("", "list" | "watch") if self.selects_its_own() => Ok(()),
            ("", "list" | "watch") => {
                refuse("can only list/watch podcertificaterequests with nodeName field selector")
            }
            ("", verb) => refuse(format!("nodes may not {verb} podcertificaterequests")),
            _ => refuse("nodes may not access the status subresource of PodCertificateRequests"),
        }
    }

    /// Whether a field selector selects only objects of the node.
    fn selects_its_own(&self) -> bool {
        let mut terms = self.objects.fields.iter();
        terms.any(|term| term.equal && term.field == "spec.nodeName" && term.value == self.node)
    }
}
