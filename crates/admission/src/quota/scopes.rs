//! The scopes of quotas: which pods and claims a quota is about.

use std::cell::OnceCell;
use std::fmt;

use pintle_meta::GroupResource;
use pintle_value::Value;

use crate::pods::{items, total};

/// An object whose scopes are asked for. What takes time in proportion to the object is found once,
/// for all scopes of all quotas.
pub(super) struct Scoped<'a> {
    object: &'a Value,
    sort: Sort,
    is_best_effort: OnceCell<bool>,
    crosses_namespaces: OnceCell<bool>,
}

/// Only pods and claims can be in a scope.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Sort {
    Pod,
    Claim,
    Other,
}

/// Whether an object is in all scopes of a quota.
pub fn in_scope(resource: &GroupResource, quota: &Value, object: &Value) -> bool {
    Scoped::new(resource, object).is_in_scopes_of(quota)
}

/// Returns the scopes of a quota.
pub(super) fn requirements(quota: &Value) -> impl Iterator<Item = Requirement<'_>> {
    let plain = items(quota, &["spec", "scopes"]).iter().filter_map(Value::as_str);
    let plain = plain.map(|scope| Requirement { scope, operator: "Exists", values: &[] });
    let chosen = items(quota, &["spec", "scopeSelector", "matchExpressions"]);
    plain.chain(chosen.iter().map(Requirement::of))
}

/// A scope with its operator and values (upstream: `ScopedResourceSelectorRequirement`).
pub(super) struct Requirement<'a> {
    /// The scope's name.
    pub(super) scope: &'a str,
    operator: &'a str,
    values: &'a [Value],
}

impl<'a> Requirement<'a> {
    /// Reads a scope of a selector.
    pub(super) fn of(requirement: &'a Value) -> Self {
        let text = |member: &str| requirement.str_at(&[member]).unwrap_or_default();
        let (scope, operator) = (text("scopeName"), text("operator"));
        Self { scope, operator, values: items(requirement, &["values"]) }
    }

    /// Whether the operator and the values match a name; `""` stands for no name.
    fn matches(&self, name: &str) -> bool {
        let is_named = || self.values.iter().any(|value| value.as_str() == Some(name));
        match self.operator {
            "In" => !name.is_empty() && is_named(),
            "NotIn" => name.is_empty() || !is_named(),
            "DoesNotExist" => name.is_empty(),
            _ => !name.is_empty(),
        }
    }
}

/// Formats the requirement as Go prints the struct.
impl fmt::Display for Requirement<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let values: Vec<&str> = self.values.iter().filter_map(Value::as_str).collect();
        write!(f, "{{{} {} [{}]}}", self.scope, self.operator, values.join(" "))
    }
}

impl<'a> Scoped<'a> {
    pub(super) fn new(resource: &GroupResource, object: &'a Value) -> Self {
        let sort = match (resource.group.as_str(), resource.resource.as_str()) {
            ("", "pods") => Sort::Pod,
            ("", "persistentvolumeclaims") => Sort::Claim,
            _ => Sort::Other,
        };
        let (is_best_effort, crosses_namespaces) = (OnceCell::new(), OnceCell::new());
        Self { object, sort, is_best_effort, crosses_namespaces }
    }

    /// Whether the object is in all scopes of a quota.
    pub(super) fn is_in_scopes_of(&self, quota: &Value) -> bool {
        requirements(quota).all(|requirement| self.is_in(&requirement))
    }

    /// Whether the object is in a scope.
    pub(super) fn is_in(&self, requirement: &Requirement<'_>) -> bool {
        match self.sort {
            Sort::Pod => self.pod_is_in(requirement),
            Sort::Claim => claim_is_in(self.object, requirement),
            Sort::Other => false,
        }
    }

    fn pod_is_in(&self, requirement: &Requirement<'_>) -> bool {
        let pod = self.object;
        let ends = || {
            let deadline = pod.at(&["spec", "activeDeadlineSeconds"]).and_then(Value::as_int);
            deadline.is_some_and(|seconds| seconds >= 0)
        };
        let is_best_effort = || *self.is_best_effort.get_or_init(|| is_best_effort(pod));
        match requirement.scope {
            "Terminating" => ends(),
            "NotTerminating" => !ends(),
            "BestEffort" => is_best_effort(),
            "NotBestEffort" => !is_best_effort(),
            "PriorityClass" => {
                requirement.matches(pod.str_at(&["spec", "priorityClassName"]).unwrap_or_default())
            }
            "CrossNamespacePodAffinity" => {
                *self.crosses_namespaces.get_or_init(|| crosses_namespaces(pod))
            }
            _ => false,
        }
    }
}

/// Whether a class of the claim matches: its requested class, its current class, or the class to
/// which it is being modified.
fn claim_is_in(claim: &Value, requirement: &Requirement<'_>) -> bool {
    let classes = [
        &["spec", "volumeAttributesClassName"][..],
        &["status", "currentVolumeAttributesClassName"],
        &["status", "modifyVolumeStatus", "targetVolumeAttributesClassName"],
    ];
    let classes = classes.iter().filter_map(|path| claim.str_at(path));
    let classes: Vec<&str> = classes.filter(|class| !class.is_empty()).collect();
    requirement.scope == "VolumeAttributesClass"
        && match classes.as_slice() {
            [] => requirement.matches(""),
            classes => classes.iter().any(|class| requirement.matches(class)),
        }
}

fn is_best_effort(pod: &Value) -> bool {
    let asks = |part: &str| {
        let total = total(pod, part);
        ["cpu", "memory"]
            .iter()
            .any(|name| total.get(*name).is_some_and(|amount| !amount.is_zero()))
    };
    !asks("requests") && !asks("limits")
}

fn crosses_namespaces(pod: &Value) -> bool {
    let crosses = |term: &Value| {
        !items(term, &["namespaces"]).is_empty()
            || term.get("namespaceSelector").is_some_and(|selector| !selector.is_null())
    };
    ["podAffinity", "podAntiAffinity"].iter().any(|kind| {
        let terms = |member| items(pod, &["spec", "affinity", kind, member]);
        let weighted = terms("preferredDuringSchedulingIgnoredDuringExecution");
        terms("requiredDuringSchedulingIgnoredDuringExecution").iter().any(crosses)
            || weighted.iter().any(|one| one.get("podAffinityTerm").is_some_and(crosses))
    })
}
