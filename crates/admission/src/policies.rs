//! ValidatingAdmissionPolicy: expressions that users write decide on what is valid otherwise (VAP-01).
//!
//! Purpose: finds the policies that concern a write, with their bindings and parameters, and refuses what
//! one of them objects to. A policy's expressions are compiled once, when it is written.
//!
//! Missing: `authorizer` in expressions, which counts as a name that nobody knows; the annotations that go
//! into an audit log.
//!
//! Invariant: nobody is asked about policies and their bindings, so that a wrong one can always be taken
//! away.

mod decision;
mod policy;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use pintle_meta::labels::Selector;
use pintle_meta::{GroupVersion, Reason, Status, object};
use pintle_registry::admission::{Admission, Attributes, Operation, Waited};
use pintle_registry::{Registry, Resource};
use pintle_value::{Str, Value};

use crate::expressions::Facts;
use crate::known::Known;
use crate::matching::is_namespace;
use crate::request::{describe, shown};
use crate::{find, is_of};
use decision::{Objection, objections};
use policy::{Binding, ParamRef, Policy};

const GROUP: &str = "admissionregistration.k8s.io";

/// What policies are made of.
const EXEMPT: [&str; 4] = [
    "validatingadmissionpolicies",
    "validatingadmissionpolicybindings",
    "mutatingadmissionpolicies",
    "mutatingadmissionpolicybindings",
];

/// The plugin.
pub struct ValidatingPolicies {
    policies: Known<Policy>,
    bindings: Known<Binding>,
}

/// A policy that a write concerns, with the bindings by which it does.
struct Concerned {
    policy: Arc<Policy>,
    bindings: Vec<Arc<Binding>>,
    /// The version of the resource that the policy knows.
    version: Arc<Resource>,
}

/// What is against a write.
struct Denial {
    message: String,
    reason: Reason,
}

impl Default for ValidatingPolicies {
    fn default() -> Self {
        Self {
            policies: Known::new(GROUP, "validatingadmissionpolicies", Policy::of),
            bindings: Known::new(GROUP, "validatingadmissionpolicybindings", Binding::of),
        }
    }
}

impl Admission for ValidatingPolicies {
    /// Refuses a policy whose expressions make no sense (VAP-02). What was let in once may stay.
    fn judge(&self, write: &Attributes<'_>, _: &Registry) -> Result<Vec<String>, Status> {
        let is_it = is_of(write, GROUP, EXEMPT[0]) && write.operation != Operation::Delete;
        let Some(new) = write.object.filter(|_| is_it) else { return Ok(Vec::new()) };
        let problems = match write.old {
            Some(old) if old.get("spec") == new.get("spec") => Vec::new(),
            _ => Policy::read(new).problems(),
        };
        match problems.is_empty() {
            true => Ok(Vec::new()),
            false => Err(Status::invalid(&write.resource.group_kind(), write.name, &problems)),
        }
    }

    fn review<'a>(
        &'a self,
        write: &'a Attributes<'a>,
        registry: &'a Registry,
    ) -> Option<Waited<'a, Vec<String>>> {
        let concerned = self.concerned(write, registry);
        (!concerned.is_empty()).then(|| -> Waited<'a, Vec<String>> {
            Box::pin(async move { judge(write, registry, &concerned).await })
        })
    }
}

impl ValidatingPolicies {
    fn concerned(&self, write: &Attributes<'_>, registry: &Registry) -> Vec<Concerned> {
        let policies = self.policies.within("", registry);
        let of = &write.resource.resource;
        if policies.is_empty() || of.group == GROUP && EXEMPT.contains(&of.resource.as_str()) {
            return Vec::new();
        }
        let versions = registry.versions_of(write.resource);
        let all = self.bindings.within("", registry);
        let concerned = policies.into_iter().filter_map(|policy| {
            let is_its = |binding: &&Arc<Binding>| binding.policy == policy.name;
            if !all.iter().any(|binding| is_its(&binding)) {
                return None;
            }
            let version = policy.matching.version(write, registry, &versions)?;
            let is_meant = |binding: &&Arc<Binding>| {
                let matching = binding.matching.as_ref();
                matching.is_none_or(|one| one.version(write, registry, &versions).is_some())
            };
            let bindings: Vec<_> = all.iter().filter(is_its).filter(is_meant).cloned().collect();
            (!bindings.is_empty()).then_some(Concerned { policy, bindings, version })
        });
        concerned.collect()
    }
}

/// Asks all; the first denial is the answer.
async fn judge(
    write: &Attributes<'_>,
    registry: &Registry,
    concerned: &[Concerned],
) -> Result<Vec<String>, Status> {
    let (mut warnings, mut denials) = (Vec::new(), Vec::new());
    for one in concerned {
        let Concerned { policy, bindings, version } = one;
        let kind = match params_of(policy, registry) {
            Ok(kind) => kind,
            Err(_) if policy.lenient => continue,
            Err(why) => {
                let message = format!(
                    "ValidatingAdmissionPolicy '{}' denied request: failed to configure policy: {why}",
                    policy.name
                );
                denials.push(Denial { message, reason: Reason::Invalid });
                continue;
            }
        };
        let seen = Seen::of(write, registry, version).await?;
        for binding in bindings {
            let found = match params(kind.as_deref(), binding, write, registry) {
                Ok(params) => params.iter().flat_map(|p| seen.objections(policy, p)).collect(),
                Err(_) if policy.lenient => Vec::new(),
                Err(why) => vec![Objection {
                    message: format!("failed to configure binding: {why}"),
                    reason: Reason::Invalid,
                    always: true,
                }],
            };
            speak(policy, binding, found, &mut warnings, &mut denials);
        }
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

/// Makes of a policy's objections what a binding wants of them.
fn speak(
    policy: &Policy,
    binding: &Binding,
    found: Vec<Objection>,
    warnings: &mut Vec<String>,
    denials: &mut Vec<Denial>,
) {
    let (policy, name) = (&policy.name, &binding.name);
    for Objection { message, reason, always } in found {
        if binding.warns && !always {
            warnings.push(format!(
                "Validation failed for ValidatingAdmissionPolicy '{policy}' with binding '{name}': \
                 {message}"
            ));
        }
        if binding.denies || always {
            let message = format!(
                "ValidatingAdmissionPolicy '{policy}' with binding '{name}' denied request: {message}"
            );
            denials.push(Denial { message, reason });
        }
    }
}

/// A write as a policy sees it.
struct Seen {
    object: Value,
    old: Value,
    request: Value,
    namespace: Value,
}

impl Seen {
    async fn of(
        write: &Attributes<'_>,
        registry: &Registry,
        version: &Resource,
    ) -> Result<Self, Status> {
        let object = match write.object {
            Some(object) => shown(object, write, version).await?,
            None => Value::Null,
        };
        let old = match write.old {
            Some(old) => shown(old, write, version).await?,
            None => Value::Null,
        };
        let has_namespace = !write.namespace.is_empty() && !is_namespace(write.resource);
        let namespace = has_namespace.then_some(write.namespace);
        let namespace = namespace.and_then(|name| find(registry, ("", "namespaces"), "", name));
        let request = describe(write, version).into();
        Ok(Self { object, old, request, namespace: namespace.unwrap_or_default() })
    }

    fn objections(&self, policy: &Policy, params: &Value) -> Vec<Objection> {
        let facts = Facts {
            object: &self.object,
            old: &self.old,
            request: &self.request,
            params: policy.params.is_some().then_some(params),
            namespace: &self.namespace,
        };
        objections(policy, facts)
    }
}

/// The resource of a policy's parameters, where it has a kind of them.
fn params_of(policy: &Policy, registry: &Registry) -> Result<Option<Arc<Resource>>, String> {
    let Some((version, kind)) = &policy.params else { return Ok(None) };
    let GroupVersion { group, version: number } = version;
    let (_, resources) = registry.resources();
    let is_it = |resource: &Resource| {
        let of = resource.gvk();
        of.kind == *kind && of.group == *group && of.version == *number
    };
    let found = resources.iter().find(|resource| is_it(resource) && resource.storage.is_some());
    found.cloned().map(Some).ok_or_else(|| {
        let kind = format!("{group}/{number}, Kind={kind}");
        format!("failed to find resource referenced by paramKind: '{kind}'")
    })
}

/// The parameters by which a binding has a policy decide, each on its own; `null` where it knows none.
fn params(
    kind: Option<&Resource>,
    binding: &Binding,
    write: &Attributes<'_>,
    registry: &Registry,
) -> Result<Vec<Value>, String> {
    let (Some(resource), Some(wanted)) = (kind, &binding.params) else {
        return Ok(vec![Value::Null]);
    };
    let namespace = place(resource, wanted, write)?;
    let shown = |tree: Value| {
        let mut tree = tree;
        resource.to_served(&mut tree);
        resource.stamp(&mut tree);
        tree
    };
    let found: Vec<Value> = if wanted.name.is_empty() {
        let selector = Selector::from_label_selector(Some(&wanted.selector));
        let selector = selector.map_err(|why| why.to_string())?;
        let all = registry.objects_in(resource, &namespace).into_iter();
        let all = all.map(|one| one.tree());
        all.filter(|one| selector.matches_map(object::labels(one))).map(shown).collect()
    } else {
        let named = registry.peek(resource, &namespace, &wanted.name);
        named.into_iter().map(|one| shown(one.tree())).collect()
    };
    if found.is_empty() && wanted.required {
        return Err(
            "no params found for policy binding with `Deny` parameterNotFoundAction".to_owned()
        );
    }
    Ok(found)
}

/// The namespace of parameters.
fn place(resource: &Resource, wanted: &ParamRef, write: &Attributes<'_>) -> Result<Str, String> {
    let why = match (resource.namespaced(), wanted.namespace.as_str(), write.namespace) {
        (true, "", "") => {
            "cannot use namespaced paramRef in policy binding that matches cluster-scoped resources"
        }
        (true, "", namespace) | (true, namespace, _) => return Ok(namespace.into()),
        (false, "", _) => return Ok("".into()),
        (false, ..) => "paramRef.namespace must not be provided for a cluster-scoped `paramKind`",
    };
    Err(why.to_owned())
}
