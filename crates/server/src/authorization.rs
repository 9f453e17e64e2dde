//! Who may do what: the authorizers of the configured modes, with what they go by from the registry.

mod escalation;
mod followed;
mod node_restriction;
mod nodes;
mod owners;
mod permissions;
mod signers;
mod validation;

use std::sync::Arc;

use pintle_auth::rbac::{self, Policy, Rule};
use pintle_auth::{
    AlwaysAllow, AlwaysDeny, Attributes, Authorizer, Chain, Decision, Masters, Mode, Rules, Ruling,
    User,
};
use pintle_measure::Counter;
use pintle_meta::{GroupVersionResource, Status};
use pintle_registry::admission::Admission;
use pintle_registry::{Object, Registry};
use pintle_store::Kind;

use crate::config::Config;

pub(crate) use escalation::NoEscalation;
use followed::{Followed, Index};
use node_restriction::NodeRestriction;
pub(crate) use nodes::{GraphMeasures, Nodes};
use owners::Owners;
pub(crate) use permissions::Authorized;
pub(crate) use validation::Validation;

/// The authorizers of the configured modes.
pub(crate) struct Authorization {
    /// Asks them all.
    pub(crate) authorizer: Arc<dyn Authorizer>,
    pub(crate) roles: Arc<Roles>,
    /// `None` where the mode is not configured: then no graph is kept.
    pub(crate) nodes: Option<Arc<Nodes>>,
    /// What each has decided. `system:masters` comes before them all and is not counted, as upstream has it.
    pub(crate) decisions: Vec<Arc<Decisions>>,
}

impl Authorization {
    pub(crate) fn new(config: &Config) -> Self {
        let roles = Arc::new(Roles::new());
        let is_wanted = config.authorization_modes.contains(&Mode::Node);
        let nodes = is_wanted.then(|| Arc::new(Nodes::new(config)));
        let mut chain: Vec<Arc<dyn Authorizer>> = vec![Arc::new(Masters)];
        let mut all = Vec::new();
        for mode in &config.authorization_modes {
            let authorizer: Arc<dyn Authorizer> = match (mode, &nodes) {
                (Mode::AlwaysAllow, _) => Arc::new(AlwaysAllow),
                (Mode::Node, Some(nodes)) => nodes.clone(),
                (Mode::AlwaysDeny | Mode::Node, _) => Arc::new(AlwaysDeny),
                (Mode::Rbac, _) => roles.clone(),
            };
            let decisions = Arc::new(Decisions::of(*mode));
            chain.push(Arc::new(Counted { authorizer, decisions: decisions.clone() }));
            all.push(decisions);
        }
        Self { authorizer: Arc::new(Chain::new(chain)), roles, nodes, decisions: all }
    }

    /// Follows a registry from now on.
    pub(crate) fn follow(&self, registry: &Registry) {
        self.roles.follow(registry);
        self.nodes.iter().for_each(|nodes| nodes.follow(registry));
    }
}

/// What the authorizer of a mode has decided.
pub(crate) struct Decisions {
    pub(crate) mode: &'static str,
    pub(crate) allowed: Counter,
    pub(crate) denied: Counter,
}

impl Decisions {
    fn of(mode: Mode) -> Self {
        Self { mode: mode.name(), allowed: Counter::default(), denied: Counter::default() }
    }
}

/// An authorizer whose decisions are counted.
struct Counted {
    authorizer: Arc<dyn Authorizer>,
    decisions: Arc<Decisions>,
}

impl Authorizer for Counted {
    fn authorize(&self, attributes: &Attributes<'_>) -> Ruling {
        let ruling = self.authorizer.authorize(attributes);
        match ruling.decision {
            Decision::Allow => self.decisions.allowed.add(1),
            Decision::Deny => self.decisions.denied.add(1),
            Decision::NoOpinion => {}
        }
        ruling
    }

    fn rules(&self, user: &User, namespace: &str) -> Rules {
        self.authorizer.rules(user, namespace)
    }
}

/// The admission plugins that ask who may what, by their names.
pub(crate) fn plugins(
    authorizer: &Arc<dyn Authorizer>,
) -> impl Iterator<Item = (&'static str, Box<dyn Admission>)> {
    let others: [(&str, Box<dyn Admission>); 2] = [
        ("NodeRestriction", Box::new(NodeRestriction::new(authorizer))),
        ("OwnerReferencesPermissionEnforcement", Box::new(Owners::new(authorizer))),
    ];
    signers::plugins(authorizer).into_iter().chain(others)
}

/// The roles and bindings that the registry holds.
pub(crate) struct Roles(Followed<Policy>);

impl Roles {
    /// Knows none yet.
    pub(crate) fn new() -> Self {
        Self(Followed::new(Policy::default()))
    }

    /// Follows a registry from now on.
    pub(crate) fn follow(&self, registry: &Registry) {
        let named =
            |kind: rbac::Kind| GroupVersionResource::new(rbac::GROUP, "v1", kind.resource());
        self.0.follow(registry, rbac::Kind::ALL.map(|kind| (kind, named(kind))));
    }

    /// The rules of a role that a binding refers to, or a 404.
    fn role(&self, kind: &str, name: &str, namespace: &str) -> Result<Vec<Rule>, Status> {
        self.0.current().role(kind, name, namespace).map(<[Rule]>::to_vec)
    }

    /// What bindings grant a user in a namespace, and what went wrong, or `""`.
    fn rules_for(&self, user: &User, namespace: &str) -> (Vec<Rule>, String) {
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
                    tracing::error!("{} grants nothing: {why}", kind.resource());
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
    fn authorize(&self, attributes: &Attributes<'_>) -> Ruling {
        self.0.current().authorize(attributes)
    }

    fn rules(&self, user: &User, namespace: &str) -> Rules {
        self.0.current().rules(user, namespace)
    }
}
