//! Type checking of ValidatingAdmissionPolicies: reports in their status whether their expressions
//! fit the types that they match (VAP-02).
//!
//! As in upstream, each generation is checked once; later changes of the types are not reported.

use std::future::Future;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use pintle_admission::policies::{ExpressionWarning, type_warnings};
use pintle_meta::{Status, object};
use pintle_registry::Resource;
use pintle_registry::request::{WriteOptions, granted};
use pintle_value::{Map, Str, Value};

use crate::reconcile::{Progress, Reconciler, Source, itself, work};
use crate::{Environment, body, target, until};

const NAME: &str = "validatingadmissionpolicy-status-controller";
const USER: &str = "system:serviceaccount:kube-system:validatingadmissionpolicy-status-controller";

/// Checks policies until shutdown.
pub async fn run(environment: Environment, shutdown: impl Future<Output = ()>) {
    let group = "admissionregistration.k8s.io";
    let policies = environment.resource(group, "v1", "validatingadmissionpolicies");
    let Some(policies) = policies else { return };
    let types = PolicyTypes { environment: &environment, policies };
    until(shutdown, work(&environment, &types)).await;
}

struct PolicyTypes<'e> {
    environment: &'e Environment,
    policies: Arc<Resource>,
}

impl Reconciler for PolicyTypes<'_> {
    fn purpose(&self) -> &'static str {
        "type-check the expressions of an admission policy"
    }

    fn queue(&self) -> &'static str {
        "validatingadmissionpolicy-status"
    }

    fn sources(&self) -> Vec<Source> {
        vec![Source::new(&self.policies, itself)]
    }

    fn reconcile<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<Progress, Status>> {
        Box::pin(self.check(name))
    }
}

impl PolicyTypes<'_> {
    async fn check(&self, name: &str) -> Result<Progress, Status> {
        let registry = &self.environment.registry;
        let Some(policy) = registry.peek(&self.policies, "", name) else {
            return Ok(Progress::Done);
        };
        let mut policy = self.policies.tree(&policy)?;
        let number = |path: &[&str]| policy.at(path).and_then(Value::as_int).unwrap_or(0);
        let generation = number(&["metadata", "generation"]);
        if object::is_terminating(&policy)
            || generation <= number(&["status", "observedGeneration"])
        {
            return Ok(Progress::Done);
        }
        let warnings = type_warnings(&policy, registry).into_iter().map(warning_value);
        let warnings: Vec<Value> = warnings.collect();
        let status = policy.object_entry("status");
        status.insert("observedGeneration", generation);
        let checked = status.entry_object("typeChecking");
        let had_warnings = checked.remove("expressionWarnings").is_some();
        if !warnings.is_empty() {
            checked.insert("expressionWarnings", warnings);
        } else if had_warnings {
            // Upstream applies an empty object, which removes earlier members.
            status.remove("typeChecking");
        }
        let part = target(&self.policies, "", name, "status");
        let options =
            WriteOptions { field_manager: Str::const_new(NAME), ..WriteOptions::default() };
        let context = self.environment.context(USER);
        match registry.update(&part, &body(&policy), &options, &context, &granted).await {
            // The watch reports a conflicting change, and a deletion.
            Err(status) if !matches!(status.code, 404 | 409) => Err(status),
            Ok(_) | Err(_) => Ok(Progress::Done),
        }
    }
}

fn warning_value(one: ExpressionWarning) -> Value {
    let mut warning = Map::new();
    warning.insert("fieldRef", one.field);
    warning.insert("warning", one.warning);
    warning.into()
}
