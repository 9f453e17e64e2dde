//! The admission plugin NodeRestriction: a node may write itself, the pods on it, and the objects
//! that these need. The plugin refuses other writes of these kinds even if an authorizer allows
//! them.

mod certificates;
mod nodes;
mod pods;
#[cfg(test)]
mod tests;
mod tokens;

use std::cell::RefCell;
use std::sync::Arc;

use pintle_admission::forbidden;
use pintle_auth::{Attributes, Authorizer, Objects, Subject, User, node};
use pintle_meta::quote::quote;
use pintle_meta::{GroupResource, GroupVersionResource, Reason, Status, object};
use pintle_registry::admission::{self, Admission, Hook, Hooks, Operation, Waited};
use pintle_registry::{Registry, Unreadable};
use pintle_value::Value;

use super::Inquiry;

/// The plugin.
pub(super) struct NodeRestriction {
    authorizer: Arc<dyn Authorizer>,
}

impl NodeRestriction {
    pub(super) fn new(authorizer: &Arc<dyn Authorizer>) -> Self {
        Self { authorizer: authorizer.clone() }
    }
}

impl Admission for NodeRestriction {
    fn hooks(&self) -> Hooks {
        Hooks::of(&[Hook::BeforeMutation, Hook::ValidateRegistered])
    }

    fn before_mutation(
        &self,
        write: &admission::Attributes<'_>,
        registry: &Registry,
    ) -> Result<(), Status> {
        let Some(node) = node::name(write.user).filter(|_| write.operation != Operation::Connect)
        else {
            return Ok(());
        };
        let inquiry = Inquiry::new(&self.authorizer);
        decide(node, write, registry, &inquiry)
    }

    /// Decides TokenRequests, the only writes whose decision may need an authorization webhook.
    fn validate_registered<'a>(
        &'a self,
        write: &'a admission::Attributes<'a>,
        registry: &'a Registry,
    ) -> Option<Waited<'a, ()>> {
        let node = node::name(write.user).filter(|_| tokens::is_about(write))?;
        Some(Box::pin(async move {
            let inquiry = Inquiry::new(&self.authorizer);
            loop {
                let decided = decide(node, write, registry, &inquiry);
                match inquiry.pending() {
                    Some(answer) => answer.await,
                    None => return decided,
                }
            }
        }))
    }
}

/// Refuses a write that a node must not make. A write whose authorization is pending passes in
/// `before_mutation` and is decided in `validate_registered`.
fn decide(
    node: &str,
    write: &admission::Attributes<'_>,
    registry: &Registry,
    inquiry: &Inquiry,
) -> Result<(), Status> {
    let unreadable = RefCell::new(None);
    let served = Served { registry, inquiry, user: write.user, unreadable };
    let restricted = Restricted {
        node,
        operation: write.operation,
        resource: &write.resource.group_resource(),
        namespace: write.namespace,
        name: write.name,
        subresource: write.subresource,
        object: write.object,
        old: write.old(),
        world: &served,
    };
    let decided = restricted.decide();
    // A write that depends on an undecodable object is refused with that error.
    if let Some(why) = served.unreadable.take() {
        return Err(why.into());
    }
    decided.map_err(|refusal| match refusal {
        Refusal::Forbidden(why) => forbidden(write, write.object.unwrap_or(&Value::Null), &why),
        Refusal::NotFound(resource, name) => Status::not_found(&resource, &name),
        Refusal::Inconsistent(why) => Status::failure(Reason::Unknown, why),
    })
}

/// The reason of a refusal.
enum Refusal {
    /// The node must not do this.
    Forbidden(String),
    /// The write refers to a missing object.
    NotFound(GroupResource, String),
    /// The write contradicts the stored object. The client may know a newer state, so this is no
    /// 403.
    Inconsistent(String),
}

impl Refusal {
    fn words(self) -> String {
        match self {
            Self::Forbidden(why) | Self::Inconsistent(why) => why,
            Self::NotFound(resource, name) => format!("{resource} {} not found", quote(&name)),
        }
    }
}

type Decision = Result<(), Refusal>;

fn ensure(holds: bool, why: impl FnOnce() -> String) -> Decision {
    if holds { Ok(()) } else { Err(Refusal::Forbidden(why())) }
}

/// The state on which decisions depend in addition to the write.
trait World {
    /// An object of version v1.
    fn find(&self, group: &str, resource: &str, namespace: &str, name: &str) -> Option<Value>;

    /// Authorizes tokens of an account for an audience that the node's pods do not request.
    fn may_have_audience(&self, audience: &str, namespace: &str, account: &str) -> bool;
}

/// The registry and the authorizer.
struct Served<'a> {
    registry: &'a Registry,
    inquiry: &'a Inquiry,
    user: &'a User,
    /// A needed object that could not be decoded.
    unreadable: RefCell<Option<Unreadable>>,
}

impl World for Served<'_> {
    fn find(&self, group: &str, resource: &str, namespace: &str, name: &str) -> Option<Value> {
        let resource = GroupVersionResource::new(group, "v1", resource);
        let resource = self.registry.resource(&resource)?;
        let read = self.registry.peek(&resource, namespace, name)?.tree();
        read.map_err(|why| self.unreadable.replace(Some(why))).ok()
    }

    fn may_have_audience(&self, audience: &str, namespace: &str, account: &str) -> bool {
        let subject = Subject::Resource(Objects {
            group: "",
            resource: audience,
            subresource: "",
            namespace,
            name: account,
            version: "v1",
            ..Objects::default()
        });
        let verb = "request-serviceaccounts-token-audience";
        let asked = Attributes { user: self.user, verb, subject };
        self.inquiry.authorize(&asked).is_none_or(|ruling| ruling.allowed())
    }
}

/// A write by a node.
struct Restricted<'a> {
    node: &'a str,
    operation: Operation,
    resource: &'a GroupResource,
    namespace: &'a str,
    /// `""` if the name will be generated.
    name: &'a str,
    subresource: &'a str,
    object: Option<&'a Value>,
    old: Option<&'a Value>,
    world: &'a dyn World,
}

impl Restricted<'_> {
    fn decide(&self) -> Decision {
        if self.node.is_empty() {
            let why = "could not determine node from user \"system:node:\"";
            return Err(Refusal::Forbidden(why.to_owned()));
        }
        match (self.resource.group.as_str(), self.resource.resource.as_str()) {
            ("", "pods") => self.pod(),
            ("", "nodes") => self.node(),
            ("", "persistentvolumeclaims") => self.claim(),
            ("", "serviceaccounts") => self.token(),
            ("certificates.k8s.io", "podcertificaterequests") => self.pod_certificate(),
            ("certificates.k8s.io", "certificatesigningrequests") => self.certificate(),
            ("coordination.k8s.io", "leases") => self.lease(),
            ("storage.k8s.io", "csinodes") => {
                let why = "can only access CSINode with the same name as the requesting node";
                ensure(self.name() == self.node, || why.to_owned())
            }
            ("resource.k8s.io", "resourceslices") => self.slice(),
            _ => Ok(()),
        }
    }

    /// The name of the written object.
    fn name(&self) -> &str {
        let given = self.object.map(object::name).filter(|name| !name.is_empty());
        match self.operation {
            Operation::Create => given.unwrap_or(self.name),
            _ => self.name,
        }
    }

    fn quoted(&self) -> String {
        quote(self.node)
    }

    fn unexpected_operation(&self) -> Refusal {
        Refusal::Forbidden(format!("unexpected operation {}", quote(self.operation.name())))
    }

    /// Returns an object, or 404 with its kind.
    fn require(
        &self,
        group: &str,
        (kind, resource): (&str, &str),
        namespace: &str,
        name: &str,
    ) -> Result<Value, Refusal> {
        let found = self.world.find(group, resource, namespace, name);
        found.ok_or_else(|| Refusal::NotFound(GroupResource::new(group, kind), name.to_owned()))
    }

    /// Returns a pod, or 404.
    fn require_pod(&self, name: &str) -> Result<Value, Refusal> {
        self.require("", ("pod", "pods"), self.namespace, name)
    }

    /// A node may change only the size, its resizing and the conditions in a claim's status.
    fn claim(&self) -> Decision {
        ensure(self.subresource == "status", || "may only update PVC status".to_owned())?;
        if self.operation != Operation::Update {
            return Err(self.unexpected_operation());
        }
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
        ensure(bare(self.object) == bare(self.old), || {
            let node = self.quoted();
            format!(
                "node {node} is not allowed to update fields other than status.quantity and \
                 status.conditions"
            )
        })
    }

    fn lease(&self) -> Decision {
        ensure(self.namespace == node::LEASES, || {
            format!("can only access leases in the {} system namespace", quote(node::LEASES))
        })?;
        let why = "can only access node lease with the same name as the requesting node";
        ensure(self.name() == self.node, || why.to_owned())
    }

    /// Updates are left to authorizers, because an update cannot change a slice's node.
    fn slice(&self) -> Decision {
        let (slice, verb) = match self.operation {
            Operation::Create => (self.object, "create"),
            Operation::Delete => (self.old, "delete"),
            Operation::Update | Operation::Connect => return Ok(()),
        };
        let is_its = slice.and_then(|slice| slice.str_at(&["spec", "nodeName"])) == Some(self.node);
        ensure(is_its, || {
            format!("can only {verb} ResourceSlice with the same NodeName as the requesting node")
        })
    }
}
