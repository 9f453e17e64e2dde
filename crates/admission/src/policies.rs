//! Admission policies: users' CEL expressions that change objects (MAP-01) or validate them
//! (VAP-01).
//!
//! Finds the policies that match a write, with their bindings and parameters; [`Mutating`] and
//! [`Validating`] evaluate them. Expressions are compiled once for each state of a policy, not for
//! each write.
//!
//! Invariant: writes of policies and their bindings are exempt, so that a wrong policy can always
//! be deleted.

mod binding;
mod head;
mod input;
mod mutating;
mod params;
mod validating;

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use pintle_meta::Status;
use pintle_registry::admission::Attributes;
use pintle_registry::{Object, Registry, Resource, Unreadable};
use pintle_value::{Str, Value};

use crate::known::Known;
use crate::matching::Matching;
use crate::measures::Measures;

use binding::Binding;
pub use mutating::Mutating;
pub use validating::{ExpressionWarning, Validating, type_warnings};

pub(crate) use mutating::Policy as MutatingPolicy;
pub(crate) use validating::Policy as ValidatingPolicy;

pub(crate) const GROUP: &str = "admissionregistration.k8s.io";

/// The exempt resources: policies and bindings themselves, and reviews of identities and
/// permissions.
const EXEMPT: [(&str, &str); 10] = [
    (GROUP, "validatingadmissionpolicies"),
    (GROUP, "validatingadmissionpolicybindings"),
    (GROUP, "mutatingadmissionpolicies"),
    (GROUP, "mutatingadmissionpolicybindings"),
    ("authentication.k8s.io", "selfsubjectreviews"),
    ("authentication.k8s.io", "tokenreviews"),
    ("authorization.k8s.io", "localsubjectaccessreviews"),
    ("authorization.k8s.io", "selfsubjectaccessreviews"),
    ("authorization.k8s.io", "selfsubjectrulesreviews"),
    ("authorization.k8s.io", "subjectaccessreviews"),
];

/// The type of a policy with its compiled expressions.
trait Compiled: Send + Sync + 'static {
    /// Compiles a policy.
    fn read(policy: &Value) -> Self;
}

/// A stored policy. Its expressions are compiled when it is first evaluated: this may take long, and
/// an evaluation has a separate thread, while the index of policies is locked for all writes.
struct Stored<P> {
    name: Str,
    matching: Matching,
    compiled: LazyLock<P, Box<dyn FnOnce() -> P + Send>>,
}

impl<P: Compiled> Stored<P> {
    fn of(policy: &Object) -> Result<Self, Unreadable> {
        let tree = policy.tree()?;
        let constraints = tree.at(&["spec", "matchConstraints"]).unwrap_or(&Value::Null);
        Ok(Self {
            name: policy.name().into(),
            matching: Matching::of_policy(constraints),
            compiled: LazyLock::new(Box::new(move || P::read(&tree))),
        })
    }
}

/// Validating or mutating policies with their bindings.
struct Policies<P> {
    policies: Known<Stored<P>>,
    bindings: Known<Binding>,
    measures: Arc<Measures>,
}

/// A policy that matches a write, with the matching bindings.
struct MatchedPolicy<P> {
    policy: Arc<Stored<P>>,
    bindings: Vec<Arc<Binding>>,
    /// The version of the resource that the policy matches.
    version: Arc<Resource>,
}

impl<P: Compiled> Policies<P> {
    fn new(policies: &'static str, bindings: &'static str, measures: Arc<Measures>) -> Self {
        Self {
            policies: Known::new(GROUP, policies, Stored::of),
            bindings: Known::new(GROUP, bindings, Binding::of),
            measures,
        }
    }

    /// The policies that match a write, sorted by name.
    fn matched(
        &self,
        write: &Attributes<'_>,
        registry: &Registry,
    ) -> Result<Vec<MatchedPolicy<P>>, Status> {
        let of = &write.resource.resource;
        if EXEMPT.contains(&(of.group.as_str(), of.resource.as_str())) {
            return Ok(Vec::new());
        }
        let policies = self.policies.within("", registry)?;
        if policies.is_empty() {
            return Ok(Vec::new());
        }
        let versions = registry.versions_of(write.resource);
        let all = self.bindings.within("", registry)?;
        let mut by_policy = HashMap::<&str, Vec<&Arc<Binding>>>::new();
        for binding in &all {
            by_policy.entry(&binding.policy).or_default().push(binding);
        }
        let mut matched = Vec::new();
        for policy in policies {
            let Some(its) = by_policy.get(&*policy.name) else { continue };
            let Some(version) = policy.matching.version(write, registry, &versions)? else {
                continue;
            };
            let mut bindings = Vec::new();
            for binding in its {
                let matches = match &binding.matching {
                    Some(matching) => matching.version(write, registry, &versions)?.is_some(),
                    None => true,
                };
                bindings.extend(matches.then(|| Arc::clone(binding)));
            }
            if !bindings.is_empty() {
                matched.push(MatchedPolicy { policy, bindings, version });
            }
        }
        Ok(matched)
    }
}
