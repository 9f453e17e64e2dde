//! ValidatingAdmissionPolicy: users' expressions validate objects (VAP-01).
//!
//! Refuses a write, warns, or annotates audit events, as the bindings of a failed policy say.

mod evaluation;
mod policy;
#[cfg(test)]
mod tests;
mod typing;

use std::future::ready;
use std::sync::Arc;
use std::time::Duration;

use pintle_meta::{Reason, Status, object};
use pintle_registry::admission::{Admission, Attributes, Hook, Hooks, Waited};
use pintle_registry::{Registry, work};
use pintle_value::Value;

use super::binding::Binding;
use super::input::PolicyInput;
use super::{MatchedPolicy, Policies, params};
use crate::annotations::{Values, annotate, ordered};
use crate::measures::Measures;
use crate::permissions::{Permissions, evaluate_with_rulings};
use evaluation::{Effect, PolicyFailure};
pub(crate) use policy::Policy;
pub use typing::{ExpressionWarning, type_warnings};

/// The plugin.
pub struct Validating {
    policies: Policies<Policy>,
    permissions: Arc<dyn Permissions>,
}

/// A denial of a write.
struct Denial {
    message: String,
    reason: Reason,
}

impl Validating {
    /// The plugin; its policies authorize users with `permissions`.
    pub fn new(permissions: Arc<dyn Permissions>, measures: Arc<Measures>) -> Self {
        let bindings = "validatingadmissionpolicybindings";
        let policies = Policies::new("validatingadmissionpolicies", bindings, Policy::of, measures);
        Self { policies, permissions }
    }
}

impl Admission for Validating {
    fn hooks(&self) -> Hooks {
        Hooks::of(&[Hook::ValidateRegistered])
    }

    fn validate_registered<'a>(
        &'a self,
        write: &'a Attributes<'a>,
        registry: &'a Registry,
    ) -> Option<Waited<'a, Vec<String>>> {
        let matched = match self.policies.matched(write, registry) {
            Ok(matched) => matched,
            Err(status) => return Some(Box::pin(ready(Err(status)))),
        };
        (!matched.is_empty()).then(|| -> Waited<'a, Vec<String>> {
            Box::pin(async move { self.evaluate_all(write, registry, &matched).await })
        })
    }
}

impl Validating {
    /// Evaluates all policies; the first denial is returned.
    async fn evaluate_all(
        &self,
        write: &Attributes<'_>,
        registry: &Registry,
        matched: &[MatchedPolicy<Policy>],
    ) -> Result<Vec<String>, Status> {
        let (permissions, measures) = (&*self.permissions, &*self.policies.measures);
        let (mut warnings, mut denials) = (Vec::new(), Vec::new());
        work::ahead_of_expressions().await;
        for one in matched {
            let MatchedPolicy { policy, bindings, version } = one;
            let head = &policy.head;
            let kind = match params::resource(head, registry) {
                Ok(kind) => kind,
                Err(_) if head.ignores_failures => continue,
                Err(why) => {
                    let message = format!(
                        "ValidatingAdmissionPolicy '{}' denied request: failed to configure policy: {why}",
                        head.name
                    );
                    denials.push(Denial { message, reason: Reason::Invalid });
                    continue;
                }
            };
            let input =
                PolicyInput::of(write, write.object, registry, version, permissions).await?;
            let mut audit_values = Values::default();
            for binding in bindings {
                let found = match params::collect(kind.as_deref(), binding, write, registry) {
                    Ok(params) => {
                        let mut found = Vec::new();
                        for params in &params {
                            let inputs = input.inputs(head, params);
                            let measured = (measures, write.operation);
                            let evaluate = || evaluation::failures(policy, inputs, measured);
                            let (failures, values) =
                                evaluate_with_rulings(&*input.rulings, evaluate).await;
                            found.extend(failures);
                            audit_values.extend(values);
                        }
                        found
                    }
                    Err(_) if head.ignores_failures => Vec::new(),
                    Err(why) => vec![PolicyFailure {
                        index: 0,
                        message: format!("failed to configure binding: {why}"),
                        reason: Reason::Invalid,
                        effect: Effect::Deny,
                        took: Duration::ZERO,
                    }],
                };
                audit((policy, binding), &found, write);
                apply_actions((policy, binding), found, measures, &mut warnings, &mut denials);
            }
            audit_values.publish(&head.name, write);
        }
        match denials.into_iter().next() {
            Some(Denial { message, reason }) => {
                let named = write.object.or(write.old()).map(object::name).unwrap_or_default();
                let name = [write.name, named, "Unknown"].into_iter().find(|name| !name.is_empty());
                let resource = write.resource.group_resource();
                let name = name.unwrap_or_default();
                Err(Status::denied_by_policy(&resource, name, &message, reason))
            }
            None => Ok(warnings),
        }
    }
}

/// Annotates audit events with the first of a policy's failures that follows the actions of the
/// binding, if the binding audits failures (upstream: `publishValidationFailureAnnotation`).
fn audit((policy, binding): (&Policy, &Binding), found: &[PolicyFailure], write: &Attributes<'_>) {
    let first = found.iter().find(|failure| failure.effect == Effect::BindingActions);
    if let Some(PolicyFailure { index, message, .. }) = first.filter(|_| binding.audits) {
        annotate(write, "validation.policy.admission.k8s.io/validation_failure", || {
            let value = ordered(&[
                ("message", &Value::from(message.as_str())),
                ("policy", &policy.head.name.clone().into()),
                ("binding", &binding.name.clone().into()),
                ("expressionIndex", &Value::from(*index as i64)),
                ("validationActions", &binding.actions),
            ]);
            format!("[{value}]")
        });
    }
}

/// Applies a binding's actions to a policy's failures.
fn apply_actions(
    (policy, binding): (&Policy, &Binding),
    found: Vec<PolicyFailure>,
    measures: &Measures,
    warnings: &mut Vec<String>,
    denials: &mut Vec<Denial>,
) {
    let (policy, name) = (&policy.head.name, &binding.name);
    for PolicyFailure { message, reason, effect, took, .. } in found {
        let count = |action| measures.validated((policy, name), action, &message, took);
        let follows_binding = effect == Effect::BindingActions;
        if effect == Effect::Ignore {
            count("allow");
        }
        if follows_binding && binding.audits {
            count("audit");
        }
        if follows_binding && binding.warns {
            count("warn");
            warnings.push(format!(
                "Validation failed for ValidatingAdmissionPolicy '{policy}' with binding '{name}': \
                 {message}"
            ));
        }
        if effect == Effect::Deny || follows_binding && binding.denies {
            count("deny");
            let message = format!(
                "ValidatingAdmissionPolicy '{policy}' with binding '{name}' denied request: {message}"
            );
            denials.push(Denial { message, reason });
        }
    }
}
