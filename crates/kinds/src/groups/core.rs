//! The core group: `v1`.

mod account;
mod config;
mod endpoints;
mod namespace;
mod node;
mod pod;
mod quota;
mod replication;
mod service;
mod volume;

use pintle_registry::Generation;

pub(super) use endpoints::is_servers_own;

use super::events;
use crate::{
    defaults::set,
    kind::{Kind, kind, virtual_kind},
    pods,
    strategy::{PLAIN, Strategy},
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
    kind(CORE, "persistentvolumeclaims", volume::CLAIM),
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
    generation: Generation::Spec,
    delete_returns_object: true,
    default: |object| set(object, &[crate::defaults::Row::In("template", pods::POD_TEMPLATE)]),
    validate: |new, _| {
        let mut errors = Vec::new();
        let template = new.get("template").unwrap_or(&pintle_value::Value::Null);
        pods::validate_template(template, &pintle_value::Path::new("template"), &mut errors);
        errors
    },
    ..PLAIN
};
