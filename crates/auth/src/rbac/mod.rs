//! Role-based access control, as upstream's RBAC authorizer.
//!
//! A [`Policy`] is an index over roles and bindings by user and group, so the time of a ruling does
//! not depend on the number of other users' bindings. The policy's owner applies changes of objects
//! one by one.

mod binding;
mod coverage;
#[cfg(test)]
mod recorded;
mod rule;
#[cfg(test)]
mod tests;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use pintle_meta::field::truncated;
use pintle_meta::{GroupResource, Status, status};
use pintle_value::{Str, Value};

pub use binding::{Binding, Grant};
pub use coverage::{missing_rights, quoted_list};
pub use rule::Rule;

use crate::authorizer::Reason;
use crate::{Attributes, Decision, NonResourceRule, ResourceRule, Rules, Ruling, Subject, User};

/// The first bindings of a user are evaluated without recording their roles, which needs memory.
const UNRECORDED_MAX: usize = 16;
/// The maximum number of missing roles that are reported for a user.
const MISSING_MAX: usize = 100;
/// The maximum size of a user's rules that are listed, in bytes of their texts.
const RULES_BYTES_MAX: usize = 2 << 20;

/// The API group of roles and bindings.
pub const GROUP: &str = "rbac.authorization.k8s.io";

/// The kinds of objects of a policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Rules for the cluster, or for the namespace of a binding.
    ClusterRole,
    /// Rules for a namespace.
    Role,
    /// Grants rules in the cluster.
    ClusterRoleBinding,
    /// Grants rules in a namespace.
    RoleBinding,
}

impl Kind {
    /// All kinds.
    pub const ALL: [Self; 4] =
        [Self::ClusterRole, Self::Role, Self::ClusterRoleBinding, Self::RoleBinding];

    /// The resource's name in URLs.
    pub const fn resource(self) -> &'static str {
        match self {
            Self::ClusterRole => "clusterroles",
            Self::Role => "roles",
            Self::ClusterRoleBinding => "clusterrolebindings",
            Self::RoleBinding => "rolebindings",
        }
    }

    /// The kind whose resource has this name.
    pub fn of_resource(group: &str, resource: &str) -> Option<Self> {
        let named = || Self::ALL.into_iter().find(|kind| kind.resource() == resource);
        if group == GROUP { named() } else { None }
    }
}

/// The index of roles and bindings.
#[derive(Debug, Default)]
pub struct Policy {
    cluster: Scope,
    namespaces: HashMap<Str, Scope>,
}

/// The roles and bindings of a namespace or of the cluster.
#[derive(Debug, Default)]
struct Scope {
    roles: HashMap<Str, Arc<[Rule]>>,
    bindings: HashMap<Str, Arc<Binding>>,
    /// Bindings by user and by group.
    users: HashMap<Str, Vec<Arc<Binding>>>,
    groups: HashMap<Str, Vec<Arc<Binding>>>,
}

impl Policy {
    /// Applies the state of a role or binding.
    pub fn set(&mut self, kind: Kind, namespace: &str, name: &str, object: &Value) {
        let scope = self.scope_mut(namespace);
        match kind {
            Kind::ClusterRole | Kind::Role => {
                scope.roles.insert(name.into(), Rule::all_of(object).into());
            }
            Kind::ClusterRoleBinding | Kind::RoleBinding => {
                scope.unbind(name);
                scope.bind(Arc::new(Binding::read(namespace, name, object)));
            }
        }
    }

    /// Removes a role or binding.
    pub fn remove(&mut self, kind: Kind, namespace: &str, name: &str) {
        let scope = self.scope_mut(namespace);
        match kind {
            Kind::ClusterRole | Kind::Role => drop(scope.roles.remove(name)),
            Kind::ClusterRoleBinding | Kind::RoleBinding => scope.unbind(name),
        }
        if !namespace.is_empty() && scope.roles.is_empty() && scope.bindings.is_empty() {
            self.namespaces.remove(namespace);
        }
    }

    /// Removes all objects of a kind.
    pub fn clear(&mut self, kind: Kind) {
        let in_cluster = matches!(kind, Kind::ClusterRole | Kind::ClusterRoleBinding);
        let scopes: Vec<&mut Scope> = if in_cluster {
            vec![&mut self.cluster]
        } else {
            self.namespaces.values_mut().collect()
        };
        for scope in scopes {
            match kind {
                Kind::ClusterRole | Kind::Role => scope.roles.clear(),
                Kind::ClusterRoleBinding | Kind::RoleBinding => {
                    scope.bindings.clear();
                    scope.users.clear();
                    scope.groups.clear();
                }
            }
        }
    }

    /// Authorizes a request. The reason has upstream's text.
    pub fn authorize(&self, attributes: &Attributes<'_>) -> Ruling {
        let namespace = match attributes.subject {
            Subject::Resource(objects) => objects.namespace,
            Subject::Path(_) => "",
        };
        let mut missing: Vec<String> = Vec::new();
        let mut seen = HashSet::new();
        for (number, (binding, role)) in self.granted(attributes.user, namespace).enumerate() {
            match role {
                // Many bindings may grant one role of many rules.
                Ok(rules) if number >= UNRECORDED_MAX && !seen.insert(rules.as_ptr()) => {}
                Ok(rules) if rules.iter().any(|rule| rule.allows(attributes)) => {
                    let grant = Grant::new(binding.clone(), attributes.user);
                    let reason = Reason::Granted(grant);
                    return Ruling { decision: Decision::Allow, reason, error: None };
                }
                Ok(_) => {}
                Err(status) => missing.push(status.message),
            }
        }
        if missing.is_empty() {
            return Ruling::NO_OPINION;
        }
        Ruling::no_opinion(format!("RBAC: {}", aggregate(missing)))
    }

    /// The rules of each binding that applies to a user in a namespace, and the errors or `""`.
    pub fn rules_for(&self, user: &User, namespace: &str) -> (Vec<Arc<[Rule]>>, String) {
        let (mut all, mut missing, mut seen) = (Vec::new(), Vec::new(), HashSet::new());
        for (binding, role) in self.granted(user, namespace) {
            match role {
                _ if !seen.insert(Arc::as_ptr(binding)) => {}
                Ok(rules) => all.push(rules.clone()),
                Err(status) => missing.push(status.message),
            }
        }
        (all, if missing.is_empty() { String::new() } else { aggregate(missing) })
    }

    /// The bindings that apply to a user, with their roles. Of those without a role, the first
    /// [`MISSING_MAX`] are reported: a namespace can have many thousands, of any names.
    fn granted<'p>(
        &'p self,
        user: &'p User,
        namespace: &str,
    ) -> impl Iterator<Item = (&'p Arc<Binding>, Result<&'p Arc<[Rule]>, Status>)> {
        let mut missing = 0;
        self.bindings(user, namespace).filter_map(move |binding| {
            let role = (&*binding.role_kind, &*binding.role, &*binding.namespace);
            if let Some(rules) = self.found_role(role) {
                return Some((binding, Ok(rules)));
            }
            missing += 1;
            let (kind, name, namespace) = role;
            (missing <= MISSING_MAX).then(|| (binding, self.role(kind, name, namespace)))
        })
    }

    /// [`Policy::rules_for`] as [`Rules`], up to [`RULES_BYTES_MAX`].
    pub fn rules(&self, user: &User, namespace: &str) -> Rules {
        let texts = |list: &[Str]| list.iter().map(Str::to_string).collect::<Vec<_>>();
        let (mut rules, mut missing, mut bytes) = (Rules::default(), Vec::new(), 0);
        let mut seen = HashSet::new();
        let granted = self.granted(user, namespace);
        let granted = granted.filter(|(binding, _)| seen.insert(Arc::as_ptr(binding)));
        let granted = granted.flat_map(|(_, role)| match role {
            Ok(rules) => rules.iter().map(Ok).collect::<Vec<_>>(),
            Err(status) => vec![Err(status.message)],
        });
        for rule in granted {
            let rule = match rule {
                Ok(rule) => rule,
                Err(message) => {
                    missing.push(message);
                    continue;
                }
            };
            bytes += rule.bytes();
            if bytes > RULES_BYTES_MAX {
                rules.incomplete = true;
                missing.push("the user has too many rules to list".to_owned());
                break;
            }
            if !rule.resources.is_empty() {
                rules.resource.push(ResourceRule {
                    verbs: texts(&rule.verbs),
                    api_groups: texts(&rule.api_groups),
                    resources: texts(&rule.resources),
                    resource_names: texts(&rule.resource_names),
                });
            }
            if !rule.paths.is_empty() {
                let (verbs, paths) = (texts(&rule.verbs), texts(&rule.paths));
                rules.non_resource.push(NonResourceRule { verbs, paths });
            }
        }
        rules.error = if missing.is_empty() { String::new() } else { aggregate(missing) };
        rules
    }

    /// The rules of the role that a binding in `namespace` (`""`: of the cluster) refers to.
    ///
    /// # Errors
    /// 404 for a missing role, or the error for a `kind` that is no role.
    pub fn role(&self, kind: &str, name: &str, namespace: &str) -> Result<&Arc<[Rule]>, Status> {
        let singular = match kind {
            "Role" => "role",
            "ClusterRole" => "clusterrole",
            _ => {
                let why = format!("unsupported role reference kind: {:?}", truncated(kind));
                return Err(Status::failure(status::Reason::Unknown, why));
            }
        };
        self.found_role((kind, name, namespace)).ok_or_else(|| {
            Status::not_found(&GroupResource::new(GROUP, singular), &truncated(name))
        })
    }

    fn found_role(&self, (kind, name, namespace): (&str, &str, &str)) -> Option<&Arc<[Rule]>> {
        let scope = match kind {
            "Role" => self.namespaces.get(namespace)?,
            "ClusterRole" => &self.cluster,
            _ => return None,
        };
        scope.roles.get(name)
    }

    /// The bindings that apply to a user: those of the cluster, then those of a namespace. A
    /// binding that names the user several times may be repeated.
    fn bindings<'p>(
        &'p self,
        user: &'p User,
        namespace: &str,
    ) -> impl Iterator<Item = &'p Arc<Binding>> {
        let of_namespace = self.namespaces.get(namespace).filter(|_| !namespace.is_empty());
        std::iter::once(&self.cluster).chain(of_namespace).flat_map(|scope| {
            let by_name = scope.users.get(user.name.as_str());
            let by_group = user.groups.iter().filter_map(|group| scope.groups.get(group.as_str()));
            by_name.into_iter().chain(by_group).flatten()
        })
    }

    fn scope_mut(&mut self, namespace: &str) -> &mut Scope {
        if namespace.is_empty() {
            &mut self.cluster
        } else {
            self.namespaces.entry(namespace.into()).or_default()
        }
    }
}

impl Scope {
    fn bind(&mut self, binding: Arc<Binding>) {
        for (is_group, name) in binding.names() {
            let index = if is_group { &mut self.groups } else { &mut self.users };
            index.entry(name).or_default().push(binding.clone());
        }
        self.bindings.insert(binding.name.clone(), binding);
    }

    fn unbind(&mut self, name: &str) {
        let Some(binding) = self.bindings.remove(name) else { return };
        for (is_group, name) in binding.names() {
            let index = if is_group { &mut self.groups } else { &mut self.users };
            if let Some(entry) = index.get_mut(&name) {
                entry.retain(|other| !Arc::ptr_eq(other, &binding));
                if entry.is_empty() {
                    index.remove(&name);
                }
            }
        }
    }
}

/// Joins errors as upstream's aggregates do: without duplicates.
fn aggregate(errors: Vec<String>) -> String {
    let mut seen = HashSet::new();
    let distinct: Vec<String> =
        errors.into_iter().filter(|error| seen.insert(error.clone())).collect();
    match <[String; 1]>::try_from(distinct) {
        Ok([only]) => only,
        Err(several) => format!("[{}]", several.join(", ")),
    }
}
