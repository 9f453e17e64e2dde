//! Authorizers of the configured modes, with the indexes of the registry that they read.

mod chain;
mod escalation;
mod followed;
mod inquiry;
mod measures;
mod node_restriction;
mod nodes;
mod owners;
mod permissions;
mod signers;
mod validation;
mod webhook;

use std::sync::Arc;

use pintle_auth::rbac::{self, Policy, Rule};
use pintle_auth::{Attributes, Authorizer, Rules, RulingFuture, User};
use pintle_meta::{GroupVersionResource, Status};
use pintle_registry::admission::Admission;
use pintle_registry::{Object, Registry};
use pintle_store::Kind;

pub(crate) use chain::Authorization;
pub(crate) use escalation::NoEscalation;
use followed::{Followed, Index};
use inquiry::Inquiry;
pub(crate) use measures::{CONDITION_BOUNDS, Measures, WEBHOOK_BOUNDS};
use node_restriction::NodeRestriction;
pub(crate) use nodes::{GraphMeasures, NODE_GRAPH_BOUNDS};
use owners::Owners;
pub(crate) use permissions::Authorized;
pub(crate) use validation::Validation;

/// The admission plugins that authorize users, by name.
pub(crate) fn plugins(
    authorizer: &Arc<dyn Authorizer>,
) -> impl Iterator<Item = (&'static str, Box<dyn Admission>)> {
    let others: [(&str, Box<dyn Admission>); 2] = [
        ("NodeRestriction", Box::new(NodeRestriction::new(authorizer))),
        ("OwnerReferencesPermissionEnforcement", Box::new(Owners::new(authorizer))),
    ];
    signers::plugins(authorizer).into_iter().chain(others)
}

/// The RBAC authorizer: an index over the roles and bindings of the registry.
pub(crate) struct Roles(Followed<Policy>);

impl Roles {
    /// An empty index.
    pub(crate) fn new() -> Self {
        Self(Followed::new(Policy::default()))
    }

    /// Starts to follow a registry.
    pub(crate) fn follow(&self, registry: &Registry) {
        let named =
            |kind: rbac::Kind| GroupVersionResource::new(rbac::GROUP, "v1", kind.resource());
        self.0.follow(registry, rbac::Kind::ALL.map(|kind| (kind, named(kind))));
    }

    /// The rules of the role that a binding refers to, or 404.
    fn role(&self, kind: &str, name: &str, namespace: &str) -> Result<Arc<[Rule]>, Status> {
        self.0.current().role(kind, name, namespace).cloned()
    }

    /// The rules of each binding that applies to a user in a namespace, and the errors or `""`.
    fn rules_for(&self, user: &User, namespace: &str) -> (Vec<Arc<[Rule]>>, String) {
        self.0.current().rules_for(user, namespace)
    }
}

impl Index for Policy {
    type Kind = rbac::Kind;

    fn take(&mut self, kind: rbac::Kind, object: &Object) {
        let (namespace, name) = (object.namespace(), object.name());
        match object.kind() {
            Kind::Deleted => self.remove(kind, namespace, name),
            Kind::Created | Kind::Updated => match object.tree() {
                Ok(tree) => self.set(kind, namespace, name, &tree),
                Err(why) => {
                    tracing::error!(
                        "cannot read an object of {}, so it grants nothing: {why}",
                        kind.resource()
                    );
                    self.remove(kind, namespace, name);
                }
            },
        }
    }

    fn clear(&mut self, kind: rbac::Kind) {
        Self::clear(self, kind);
    }
}

impl Authorizer for Roles {
    fn authorize<'a>(&self, attributes: &'a Attributes<'a>) -> RulingFuture<'a> {
        self.0.current().authorize(attributes).into()
    }

    fn rules(&self, user: &User, namespace: &str) -> Rules {
        self.0.current().rules(user, namespace)
    }
}
