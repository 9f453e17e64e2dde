//! The core group: `v1`.

mod config;
mod namespace;
mod node;
mod pod;
mod quota;
mod replication;
mod service;
mod volume;

use pintle_registry::Generation;

use super::events;
use crate::{
    defaults::{
        Constant::Text,
        Row::{Each, Empty},
        set,
    },
    kind::{Kind, kind, virtual_kind},
    pods,
    strategy::{PLAIN, Strategy},
};

const CORE: &str = "";

pub(crate) const KINDS: &[Kind] = &[
    virtual_kind(CORE, "bindings"),
    virtual_kind(CORE, "componentstatuses"),
    kind(CORE, "configmaps", config::CONFIG_MAP),
    kind(CORE, "endpoints", ENDPOINTS),
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
    kind(CORE, "serviceaccounts", SERVICE_ACCOUNT),
    kind(CORE, "services", service::SERVICE),
];

const ENDPOINTS: Strategy = Strategy {
    create_on_update: true,
    default: |object| {
        set(object, &[Each("subsets", &[Each("ports", &[Empty("protocol", Text("TCP"))])])]);
    },
    ..PLAIN
};

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

const SERVICE_ACCOUNT: Strategy = Strategy {
    delete_returns_object: true,
    prepare_create: secrets_by_name,
    prepare_update: |new, _| secrets_by_name(new),
    ..PLAIN
};

/// Of a reference to a secret only the name counts.
fn secrets_by_name(account: &mut pintle_value::Value) {
    let secrets = account.get_mut("secrets").and_then(pintle_value::Value::as_array_mut);
    for secret in secrets.into_iter().flatten().filter_map(pintle_value::Value::as_object_mut) {
        secret.retain(|member, _| member == "name");
    }
}
