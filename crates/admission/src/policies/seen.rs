//! The input of a policy's evaluation.

use std::sync::Arc;
use std::time::Instant;

use pintle_cel::{Authorizer, ResourceCheck};
use pintle_meta::Status;
use pintle_registry::admission::{Attributes, Operation};
use pintle_registry::{Registry, Resource};
use pintle_value::Value;

use super::head::Head;
use crate::expressions::{Evaluation, Facts};
use crate::find;
use crate::matching::is_namespace;
use crate::measures::{Asker, Measures};
use crate::permissions::{Asked, Permissions, resource_of};
use crate::request::{describe, shown};

/// A write in the version of the resource that a policy matches.
pub(super) struct Seen {
    pub(super) version: Arc<Resource>,
    pub(super) object: Value,
    old: Value,
    request: Value,
    namespace: Value,
    pub(super) asked: Arc<dyn Asked>,
    /// The authorizer that expressions call.
    authorizer: Arc<dyn Authorizer>,
    resource: ResourceCheck,
}

impl Seen {
    /// A write of `object`, which has the stored form.
    pub(super) async fn of(
        write: &Attributes<'_>,
        object: Option<&Value>,
        registry: &Registry,
        version: &Arc<Resource>,
        permissions: &dyn Permissions,
    ) -> Result<Self, Status> {
        let object = match object {
            Some(object) => shown(object, write, version).await?,
            None => Value::Null,
        };
        let old = match write.old {
            Some(old) => shown(old, write, version).await?,
            None => Value::Null,
        };
        let has_namespace = !write.namespace.is_empty() && !is_namespace(write.resource);
        let namespace = has_namespace.then_some(write.namespace);
        let namespace = match namespace {
            Some(name) => find(registry, ("", "namespaces"), "", name)?,
            None => None,
        };
        let asked = permissions.of(write.user);
        Ok(Self {
            version: Arc::clone(version),
            object,
            old,
            request: describe(write, version).into(),
            namespace: namespace.unwrap_or_default(),
            authorizer: asked.clone(),
            asked,
            resource: resource_of(write),
        })
    }

    /// The variables of a policy's expressions.
    pub(super) fn facts<'a>(&'a self, policy: &Head, params: &'a Value) -> Facts<'a> {
        Facts {
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

/// True if the operation and the match conditions of a policy match a write.
pub(super) fn is_wanted(
    policy: &Head,
    facts: Facts<'_>,
    (measures, operation): (&Measures, Operation),
) -> Result<bool, String> {
    if policy.conditions.is_empty() {
        return Ok(true);
    }
    // Conditions are evaluated without the namespace.
    let facts = Facts { namespace: &Value::Null, ..facts };
    let began = Instant::now();
    let judged = policy.conditions.hold(&Evaluation::new(facts, &policy.variables));
    measures.judged(Asker::Policy(&policy.name), operation, began.elapsed(), judged.is_err());
    judged
}
