//! The input of a policy's evaluation.

use std::sync::Arc;
use std::time::Instant;

use pintle_cel::{Authorizer, ResourceCheck};
use pintle_meta::Status;
use pintle_registry::admission::{Attributes, Operation};
use pintle_registry::{Registry, Resource};
use pintle_value::Value;

use super::head::Head;
use crate::expressions::{Evaluation, Inputs};
use crate::find;
use crate::matching::is_namespace;
use crate::measures::{ConditionOwner, Measures};
use crate::permissions::{ExpressionAuthorizer, Permissions, resource_of};
use crate::request::{describe, to_version};

/// The input: a write in the version of the resource that a policy matches.
pub(super) struct PolicyInput {
    pub(super) version: Arc<Resource>,
    pub(super) object: Value,
    old: Value,
    request: Value,
    namespace: Arc<Value>,
    pub(super) rulings: Arc<dyn ExpressionAuthorizer>,
    /// The authorizer that expressions call.
    authorizer: Arc<dyn Authorizer>,
    resource: ResourceCheck,
}

/// The namespace of a write, `null` without one. A caller reads it once for all policies.
pub(super) fn namespace_of(
    write: &Attributes<'_>,
    registry: &Registry,
) -> Result<Arc<Value>, Status> {
    let has_namespace = !write.namespace.is_empty() && !is_namespace(write.resource);
    let namespace = match has_namespace {
        true => find(registry, ("", "namespaces"), "", write.namespace)?,
        false => None,
    };
    Ok(Arc::new(namespace.unwrap_or_default()))
}

impl PolicyInput {
    /// Returns the input for a write of `object`, which has the form that the write path works on.
    pub(super) async fn of(
        write: &Attributes<'_>,
        object: Option<&Value>,
        namespace: &Arc<Value>,
        version: &Arc<Resource>,
        permissions: &dyn Permissions,
    ) -> Result<Self, Status> {
        let object = match object {
            Some(object) => to_version(object, write, version).await?,
            None => Value::Null,
        };
        let old = match write.old() {
            Some(old) => to_version(old, write, version).await?,
            None => Value::Null,
        };
        let rulings = permissions.of(write.user);
        Ok(Self {
            version: Arc::clone(version),
            object,
            old,
            request: describe(write, version).into(),
            namespace: Arc::clone(namespace),
            authorizer: rulings.clone(),
            rulings,
            resource: resource_of(write),
        })
    }

    /// Forgets the rulings of the last policy.
    pub(super) fn renew(&mut self, write: &Attributes<'_>, permissions: &dyn Permissions) {
        self.rulings = permissions.of(write.user);
        self.authorizer = self.rulings.clone();
    }

    /// The variables of a policy's expressions.
    pub(super) fn inputs<'a>(&'a self, policy: &Head, params: &'a Value) -> Inputs<'a> {
        Inputs {
            object: &self.object,
            old: &self.old,
            request: &self.request,
            namespace: &self.namespace,
            params: policy.params.is_some().then_some(params),
            authorizer: &self.authorizer,
            resource: &self.resource,
        }
    }
}

/// Whether the match conditions of a policy match a write.
pub(super) fn is_matched(
    policy: &Head,
    inputs: Inputs<'_>,
    (measures, operation): (&Measures, Operation),
) -> Result<bool, String> {
    if policy.conditions.is_empty() {
        return Ok(true);
    }
    // Conditions are evaluated without the namespace.
    let inputs = Inputs { namespace: &Value::Null, ..inputs };
    let began = Instant::now();
    let matched = policy.conditions.all_true(&Evaluation::new(inputs, &policy.variables));
    measures.conditions_evaluated(
        ConditionOwner::Policy(&policy.name),
        operation,
        began.elapsed(),
        matched.is_err(),
    );
    matched
}
