//! Who may do what: the authorizers of the configured modes, with roles and bindings from the registry.

mod escalation;
mod node_restriction;
mod owners;
mod permissions;
mod signers;
mod validation;

use std::sync::Arc;

use parking_lot::{RwLock, RwLockReadGuard, RwLockWriteGuard};
use pintle_auth::rbac::{self, Policy, Rule};
use pintle_auth::{
    AlwaysAllow, AlwaysDeny, Attributes, Authorizer, Chain, Decision, Masters, Mode, Rules, Ruling,
    User,
};
use pintle_measure::Counter;
use pintle_meta::{GroupVersionResource, Status};
use pintle_registry::admission::Admission;
use pintle_registry::{Feed, News, Object, Registry};
use pintle_store::Kind;

pub(crate) use escalation::NoEscalation;
use node_restriction::NodeRestriction;
use owners::Owners;
pub(crate) use permissions::Authorized;
pub(crate) use validation::Validation;

/// The authorizer of some modes, and what it counts. `system:masters` comes before them all and is not
/// counted, as upstream has it.
pub(crate) fn authorizer(
    modes: &[Mode],
    roles: &Arc<Roles>,
) -> (Arc<dyn Authorizer>, Vec<Arc<Decisions>>) {
    let mut chain: Vec<Arc<dyn Authorizer>> = vec![Arc::new(Masters)];
    let mut all = Vec::new();
    for mode in modes {
        let authorizer: Arc<dyn Authorizer> = match mode {
            Mode::AlwaysAllow => Arc::new(AlwaysAllow),
            Mode::AlwaysDeny => Arc::new(AlwaysDeny),
            Mode::Node => continue, // it allows nothing yet
            Mode::Rbac => roles.clone(),
        };
        let decisions = Arc::new(Decisions::of(*mode));
        chain.push(Arc::new(Counted { authorizer, decisions: decisions.clone() }));
        all.push(decisions);
    }
    (Arc::new(Chain::new(chain)), all)
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

/// The roles and bindings that the registry holds. Every question is answered by what was acknowledged
/// before it: the index takes in what is new first, and mostly nothing is.
#[derive(Default)]
pub(crate) struct Roles(RwLock<State>);

#[derive(Default)]
struct State {
    policy: Policy,
    feeds: Vec<(rbac::Kind, Feed)>,
}

impl Roles {
    /// Follows a registry from now on.
    pub(crate) fn follow(&self, registry: &Registry) {
        let feeds = rbac::Kind::ALL.into_iter().filter_map(|kind| {
            let name = GroupVersionResource::new(rbac::GROUP, "v1", kind.resource());
            Some((kind, registry.feed(&registry.resource(&name)?)))
        });
        self.0.write().feeds = feeds.collect();
    }

    /// The rules of a role that a binding refers to, or a 404.
    fn role(&self, kind: &str, name: &str, namespace: &str) -> Result<Vec<Rule>, Status> {
        self.current().policy.role(kind, name, namespace).map(<[Rule]>::to_vec)
    }

    /// What bindings grant a user in a namespace, and what went wrong, or `""`.
    fn rules_for(&self, user: &User, namespace: &str) -> (Vec<Rule>, String) {
        self.current().policy.rules_for(user, namespace)
    }

    fn current(&self) -> RwLockReadGuard<'_, State> {
        let state = self.0.read();
        if state.feeds.iter().all(|(_, feed)| feed.is_current()) {
            return state;
        }
        drop(state);
        let mut state = self.0.write();
        state.catch_up();
        RwLockWriteGuard::downgrade(state)
    }
}

impl State {
    fn catch_up(&mut self) {
        let Self { policy, feeds } = self;
        for (kind, feed) in feeds {
            let objects = match feed.take() {
                Ok(News::State(objects)) => {
                    policy.clear(*kind);
                    objects
                }
                Ok(News::Changes(objects)) => objects,
                Err(_) => continue, // roles and bindings are kept
            };
            objects.iter().for_each(|object| take(policy, *kind, object));
        }
    }
}

fn take(policy: &mut Policy, kind: rbac::Kind, object: &Object) {
    let (namespace, name) = (object.namespace(), object.name());
    match object.kind() {
        Kind::Deleted => policy.remove(kind, namespace, name),
        Kind::Created | Kind::Updated => match object.tree() {
            Ok(tree) => policy.set(kind, namespace, name, &tree),
            Err(why) => {
                tracing::error!("{} grants nothing: {why}", kind.resource());
                policy.remove(kind, namespace, name);
            }
        },
    }
}

impl Authorizer for Roles {
    fn authorize(&self, attributes: &Attributes<'_>) -> Ruling {
        self.current().policy.authorize(attributes)
    }

    fn rules(&self, user: &User, namespace: &str) -> Rules {
        self.current().policy.rules(user, namespace)
    }
}
