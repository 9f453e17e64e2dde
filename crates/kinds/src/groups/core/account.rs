//! ServiceAccounts.

use pintle_meta::object;
use pintle_value::Value;

use crate::strategy::{PLAIN, Strategy};

const ENFORCE: &str = "kubernetes.io/enforce-mountable-secrets";

pub(super) const SERVICE_ACCOUNT: Strategy = Strategy {
    delete_returns_object: true,
    prepare_create: secrets_by_name,
    prepare_update: |new, _| secrets_by_name(new),
    warnings: |new, old| {
        let enforces = |account: &Value| {
            object::annotations(account)
                .is_some_and(|annotations| annotations.contains_key(ENFORCE))
        };
        if enforces(new) && !old.is_some_and(enforces) {
            let words = "deprecated in v1.32+; prefer separate namespaces to isolate access to \
                         mounted secrets";
            vec![format!("metadata.annotations[{ENFORCE}]: {words}")]
        } else {
            Vec::new()
        }
    },
    ..PLAIN
};

/// Only the name of a reference to a secret is stored.
fn secrets_by_name(account: &mut Value) {
    let secrets = account.get_mut("secrets").and_then(Value::as_array_mut);
    for secret in secrets.into_iter().flatten().filter_map(Value::as_object_mut) {
        secret.retain(|member, _| member == "name");
    }
}
