//! ValidatingAdmissionPolicy: users' expressions validate objects (VAP-01).
//!
//! Refuses a write, warns, or annotates audit events, as the bindings of a failed policy say.

mod evaluation;
mod policy;
#[cfg(test)]
mod stored;
#[cfg(test)]
mod tests;
mod typing;

use std::future::ready;
use std::sync::Arc;
use std::time::Duration;

use pintle_meta::{Reason, Status, object};
use pintle_registry::admission::{Admission, Attributes, Hook, Hooks, Waited};
use pintle_registry::{Registry, Resource, work};
use pintle_value::Value;

use super::binding::Binding;
use super::head::Head;
use super::input::{PolicyInput, namespace_of};
use super::{MatchedPolicy, Policies, params};
use crate::annotations::{Values, annotate, ordered};
use crate::measures::Measures;
use crate::pace::Pace;
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

/// The largest number of warnings of all policies. A policy warns for each of its validations,
/// bindings and parameters; a response has room for fewer texts of this length.
const WARNINGS_MAX: usize = 256;

/// The longest warning; longer ones are cut, because each has the text of an expression. A response
/// shows fewer characters of a warning that is this long.
const WARNING_BYTES_MAX: usize = 16 * 1024;

/// What the policies that were evaluated mean for the write.
#[derive(Default)]
struct Outcome {
    warnings: Vec<String>,
    /// The first denial.
    denial: Option<Denial>,
}

impl Validating {
    /// The plugin; its policies authorize users with `permissions`.
    pub fn new(permissions: Arc<dyn Permissions>, measures: Arc<Measures>) -> Self {
        let bindings = "validatingadmissionpolicybindings";
        let policies = Policies::new("validatingadmissionpolicies", bindings, measures);
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
    ) -> Option<Waited<'a, ()>> {
        let matched = match self.policies.matched(write, registry) {
            Ok(matched) => matched,
            Err(status) => return Some(Box::pin(ready(Err(status)))),
        };
        (!matched.is_empty()).then(|| -> Waited<'a, ()> {
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
    ) -> Result<(), Status> {
        work::ahead_of_expressions().await;
        let namespace = namespace_of(write, registry)?;
        let mut outcome = Outcome::default();
        // Policies match few versions of a resource, and the object is converted once for each.
        let mut inputs: Vec<PolicyInput> = Vec::new();
        for one in matched {
            let MatchedPolicy { policy, version, .. } = one;
            let head = &policy.compiled.head;
            let kind = match params::resource(head, registry) {
                Ok(kind) => kind,
                Err(_) if head.ignores_failures => continue,
                Err(why) => {
                    let message = format!(
                        "ValidatingAdmissionPolicy '{}' denied request: failed to configure policy: {why}",
                        head.name
                    );
                    outcome.deny(message, Reason::Invalid);
                    continue;
                }
            };
            let known = inputs.iter().position(|one| one.version.resource == version.resource);
            let at = match known {
                Some(at) => {
                    inputs[at].renew(write, &*self.permissions);
                    at
                }
                None => {
                    let (object, permissions) = (write.object, &*self.permissions);
                    let input = PolicyInput::of(write, object, &namespace, version, permissions);
                    inputs.push(input.await?);
                    inputs.len() - 1
                }
            };
            self.evaluate(one, kind, &inputs[at], (write, registry), &mut outcome).await;
        }
        outcome.result(write)
    }

    /// Evaluates a policy, once for each binding and parameter.
    async fn evaluate(
        &self,
        MatchedPolicy { policy, bindings, .. }: &MatchedPolicy<Policy>,
        kind: Option<Arc<Resource>>,
        input: &PolicyInput,
        (write, registry): (&Attributes<'_>, &Registry),
        outcome: &mut Outcome,
    ) {
        let (policy, measures) = (&*policy.compiled, &*self.policies.measures);
        let head = &policy.head;
        let mut audit_values = Values::default();
        let mut pace = Pace::begin();
        for binding in bindings {
            let mut is_audited = false;
            let mut apply = |found: Vec<PolicyFailure>| {
                is_audited = is_audited || audit((policy, binding), &found, write);
                apply_actions((policy, binding), found, measures, outcome);
            };
            let params = match params::collect(kind.as_ref(), binding, write, registry).await {
                Ok(params) => params,
                Err(why) => {
                    apply(unconfigured(head, &why));
                    continue;
                }
            };
            for params in params {
                match params.value() {
                    Ok(params) => {
                        let inputs = input.inputs(head, &params);
                        let measured = (measures, write.operation);
                        let evaluate = || evaluation::failures(policy, inputs, measured);
                        let (failures, values) =
                            evaluate_with_rulings(&*input.rulings, evaluate).await;
                        apply(failures);
                        audit_values.extend(values);
                    }
                    Err(why) => apply(unconfigured(head, &why)),
                }
                pace.step().await;
            }
        }
        audit_values.publish(&head.name, write);
    }
}

/// The failure of a binding whose parameters cannot be read, unless the policy ignores failures.
fn unconfigured(policy: &Head, why: &str) -> Vec<PolicyFailure> {
    let failure = PolicyFailure {
        index: 0,
        message: format!("failed to configure binding: {why}"),
        reason: Reason::Invalid,
        effect: Effect::Deny,
        took: Duration::ZERO,
    };
    if policy.ignores_failures { Vec::new() } else { vec![failure] }
}

impl Outcome {
    /// Refuses the write, unless another policy did before.
    fn deny(&mut self, message: String, reason: Reason) {
        self.denial.get_or_insert(Denial { message, reason });
    }

    fn warn(&mut self, mut text: String) {
        if self.warnings.len() < WARNINGS_MAX {
            text.truncate(text.floor_char_boundary(WARNING_BYTES_MAX));
            text.shrink_to_fit();
            self.warnings.push(text);
        }
    }

    fn result(self, write: &Attributes<'_>) -> Result<(), Status> {
        write.warnings.extend(self.warnings);
        let Some(Denial { message, reason }) = self.denial else { return Ok(()) };
        let named = write.object.or(write.old()).map(object::name).unwrap_or_default();
        let name = [write.name, named, "Unknown"].into_iter().find(|name| !name.is_empty());
        let (resource, name) = (write.resource.group_resource(), name.unwrap_or_default());
        Err(Status::denied_by_policy(&resource, name, &message, reason))
    }
}

/// Annotates audit events with the first of a policy's failures that follows the actions of the
/// binding, if the binding audits failures (upstream: `publishValidationFailureAnnotation`).
/// Returns true if there is such a failure.
fn audit(
    (policy, binding): (&Policy, &Binding),
    found: &[PolicyFailure],
    write: &Attributes<'_>,
) -> bool {
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
    first.is_some()
}

/// Applies a binding's actions to a policy's failures.
fn apply_actions(
    (policy, binding): (&Policy, &Binding),
    found: Vec<PolicyFailure>,
    measures: &Measures,
    outcome: &mut Outcome,
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
            outcome.warn(format!(
                "Validation failed for ValidatingAdmissionPolicy '{policy}' with binding '{name}': \
                 {message}"
            ));
        }
        if effect == Effect::Deny || follows_binding && binding.denies {
            count("deny");
            let message = format!(
                "ValidatingAdmissionPolicy '{policy}' with binding '{name}' denied request: {message}"
            );
            outcome.deny(message, reason);
        }
    }
}
