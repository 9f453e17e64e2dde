//! The core group: `v1`.

mod account;
mod claim;
mod config;
mod endpoints;
mod namespace;
mod node;
mod pod;
mod quota;
mod replication;
mod service;
pub(in crate::groups) mod volume;

use pintle_registry::Generation;

pub(super) use endpoints::is_servers_own;

use super::events;
use crate::{
    defaults::set,
    field::{Errors, Field},
    kind::{Kind, kind, virtual_kind},
    pods,
    strategy::{AS_UPDATE, PLAIN, Strategy},
};

const CORE: &str = "";

pub(crate) const KINDS: &[Kind] = &[
    virtual_kind(CORE, "bindings"),
    virtual_kind(CORE, "componentstatuses"),
    kind(CORE, "configmaps", config::CONFIG_MAP),
    kind(CORE, "endpoints", endpoints::ENDPOINTS),
    kind(CORE, "events", events::CORE_EVENT),
    kind(CORE, "limitranges", quota::LIMIT_RANGE),
    kind(CORE, "namespaces", namespace::NAMESPACE),
    kind(CORE, "nodes", node::NODE),
    kind(CORE, "persistentvolumeclaims", claim::CLAIM),
    kind(CORE, "persistentvolumes", volume::VOLUME),
    kind(CORE, "pods", pod::POD),
    kind(CORE, "podtemplates", POD_TEMPLATE),
    kind(CORE, "replicationcontrollers", replication::CONTROLLER),
    kind(CORE, "resourcequotas", quota::QUOTA),
    kind(CORE, "secrets", config::SECRET),
    kind(CORE, "serviceaccounts", account::SERVICE_ACCOUNT),
    kind(CORE, "services", service::SERVICE),
];

const POD_TEMPLATE: Strategy = Strategy {
    metadata: AS_UPDATE,
    gated: &[(&["template", "spec"], pods::GATED)],
    generation: Generation::Spec,
    delete_returns_object: true,
    default: |object| set(object, &[crate::defaults::Row::In("template", pods::POD_TEMPLATE)]),
    validate: |new, old| {
        let mut errors = Errors::new();
        let old = old.and_then(|old| old.get("template"));
        pods::check_template(&Field::root(new).get("template"), old, &mut errors);
        errors
    },
    declared_rules: false,
    warnings: |new, _| pods::warn_of_template(&Field::root(new).get("template")),
    ..PLAIN
};
