//! ValidatingAdmissionPolicy: users' expressions validate objects (VAP-01).
//!
//! Refuses a write, warns, or annotates audit events, as the bindings of a failed policy say.

mod decision;
mod policy;
#[cfg(test)]
mod tests;
mod typing;

use std::future::ready;
use std::sync::Arc;
use std::time::Duration;

use pintle_meta::{Reason, Status, object};
use pintle_registry::admission::{Admission, Attributes, Waited};
use pintle_registry::{Registry, work};
use pintle_value::Value;

use super::binding::Binding;
use super::seen::Seen;
use super::{Concerned, Policies, params};
use crate::annotations::{Values, annotate, ordered};
use crate::measures::Measures;
use crate::permissions::{Permissions, settled};
use decision::{Objection, Weight, objections};
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
    fn validate_registered<'a>(
        &'a self,
        write: &'a Attributes<'a>,
        registry: &'a Registry,
    ) -> Option<Waited<'a, Vec<String>>> {
        let concerned = match self.policies.concerned(write, registry) {
            Ok(concerned) => concerned,
            Err(status) => return Some(Box::pin(ready(Err(status)))),
        };
        (!concerned.is_empty()).then(|| -> Waited<'a, Vec<String>> {
            Box::pin(async move { self.judge(write, registry, &concerned).await })
        })
    }
}

impl Validating {
    /// Evaluates all policies; the first denial is returned.
    async fn judge(
        &self,
        write: &Attributes<'_>,
        registry: &Registry,
        concerned: &[Concerned<Policy>],
    ) -> Result<Vec<String>, Status> {
        let (permissions, measures) = (&*self.permissions, &*self.policies.measures);
        let (mut warnings, mut denials) = (Vec::new(), Vec::new());
        work::ahead_of_expressions().await;
        for one in concerned {
            let Concerned { policy, bindings, version } = one;
            let head = &policy.head;
            let kind = match params::resource(head, registry) {
                Ok(kind) => kind,
                Err(_) if head.lenient => continue,
                Err(why) => {
                    let message = format!(
                        "ValidatingAdmissionPolicy '{}' denied request: failed to configure policy: {why}",
                        head.name
                    );
                    denials.push(Denial { message, reason: Reason::Invalid });
                    continue;
                }
            };
            let seen = Seen::of(write, write.object, registry, version, permissions).await?;
            let mut said = Values::default();
            for binding in bindings {
                let found = match params::collect(kind.as_deref(), binding, write, registry) {
                    Ok(params) => {
                        let mut found = Vec::new();
                        for params in &params {
                            let facts = seen.facts(head, params);
                            let measured = (measures, write.operation);
                            let evaluate = || objections(policy, facts, measured);
                            let (against, for_the_log) = settled(&*seen.asked, evaluate).await;
                            found.extend(against);
                            said.extend(for_the_log);
                        }
                        found
                    }
                    Err(_) if head.lenient => Vec::new(),
                    Err(why) => vec![Objection {
                        index: 0,
                        message: format!("failed to configure binding: {why}"),
                        reason: Reason::Invalid,
                        weight: Weight::Full,
                        took: Duration::ZERO,
                    }],
                };
                audit((policy, binding), &found, write);
                speak((policy, binding), found, measures, &mut warnings, &mut denials);
            }
            said.publish(&head.name, write);
        }
        match denials.into_iter().next() {
            Some(Denial { message, reason }) => {
                let named = write.object.or(write.old).map(object::name).unwrap_or_default();
                let name = [write.name, named, "Unknown"].into_iter().find(|name| !name.is_empty());
                let resource = write.resource.group_resource();
                let name = name.unwrap_or_default();
                Err(Status::denied_by_policy(&resource, name, &message, reason))
            }
            None => Ok(warnings),
        }
    }
}

/// Annotates audit events with a policy's failures, if a binding wants it (upstream:
/// `publishValidationFailureAnnotation`). The first failure is used.
fn audit((policy, binding): (&Policy, &Binding), found: &[Objection], write: &Attributes<'_>) {
    let first = found.iter().find(|objection| objection.weight == Weight::AsBound);
    if let Some(Objection { index, message, .. }) = first.filter(|_| binding.audits) {
        annotate(write, "validation.policy.admission.k8s.io/validation_failure", || {
            let failure = ordered(&[
                ("message", &Value::from(message.as_str())),
                ("policy", &policy.head.name.clone().into()),
                ("binding", &binding.name.clone().into()),
                ("expressionIndex", &Value::from(*index as i64)),
                ("validationActions", &binding.actions),
            ]);
            format!("[{failure}]")
        });
    }
}

/// Applies a binding's actions to a policy's failures.
fn speak(
    (policy, binding): (&Policy, &Binding),
    found: Vec<Objection>,
    measures: &Measures,
    warnings: &mut Vec<String>,
    denials: &mut Vec<Denial>,
) {
    let (policy, name) = (&policy.head.name, &binding.name);
    for Objection { message, reason, weight, took, .. } in found {
        let count = |action| measures.validated((policy, name), action, &message, took);
        let is_bound = weight == Weight::AsBound;
        if weight == Weight::None {
            count("allow");
        }
        if is_bound && binding.audits {
            count("audit");
        }
        if is_bound && binding.warns {
            count("warn");
            warnings.push(format!(
                "Validation failed for ValidatingAdmissionPolicy '{policy}' with binding '{name}': \
                 {message}"
            ));
        }
        if weight == Weight::Full || is_bound && binding.denies {
            count("deny");
            let message = format!(
                "ValidatingAdmissionPolicy '{policy}' with binding '{name}' denied request: {message}"
            );
            denials.push(Denial { message, reason });
        }
    }
}
