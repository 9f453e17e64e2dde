//! Prevents privilege escalation (AUTHZ-03): a role may hold only rules that its writer has, and a
//! binding may grant only those, unless the writer may `escalate` or `bind`.

use std::collections::HashSet;
use std::sync::Arc;

use pintle_auth::rbac::{self, Kind, Rule, missing_rights};
use pintle_auth::{Attributes, Authorizer, Objects, Subject};
use pintle_meta::quote::quote;
use pintle_meta::{Status, object};
use pintle_registry::Registry;
use pintle_registry::admission::{self, Admission, Hook, Hooks, Operation, Waited};
use pintle_value::{Str, Value};

use super::Roles;

/// The admission plugin.
pub(crate) struct NoEscalation {
    pub(crate) authorizer: Arc<dyn Authorizer>,
    pub(crate) roles: Arc<Roles>,
}

impl Admission for NoEscalation {
    fn hooks(&self) -> Hooks {
        Hooks::of(&[Hook::AfterMutation])
    }

    fn after_mutation<'a>(
        &'a self,
        write: &'a admission::Attributes<'a>,
        _: &'a Registry,
    ) -> Option<Waited<'a, ()>> {
        let resource = &write.resource.resource;
        let kind = Kind::of_resource(&resource.group, &resource.resource)?;
        let object = write.object.filter(|_| write.operation != Operation::Delete)?;
        if write.user.is_master() || write.old().is_some_and(|old| is_collector_update(object, old))
        {
            return None;
        }
        Some(match kind {
            Kind::ClusterRole | Kind::Role => Box::pin(self.check_role(write, kind, object)),
            Kind::ClusterRoleBinding | Kind::RoleBinding => {
                Box::pin(self.check_binding(write, object))
            }
        })
    }
}

impl NoEscalation {
    async fn check_role(
        &self,
        write: &admission::Attributes<'_>,
        kind: Kind,
        role: &Value,
    ) -> Result<(), Status> {
        // A create is authorized without a name, as its request is.
        let name = if write.has_old() { write.name } else { "" };
        if self.may(write, "escalate", kind.resource(), name).await {
            return Ok(());
        }
        self.check_rules(write, &Rule::all_of(role))?;
        let aggregates = |role: &Value| {
            let rule = role.at(&["aggregationRule", "clusterRoleSelectors"]);
            rule.and_then(Value::as_array).is_some_and(|selectors| !selectors.is_empty())
        };
        // The rules that an aggregation selector will gather are unknown.
        let takes_all = aggregates(role) || write.old().is_some_and(aggregates);
        if takes_all && self.missing(write, &everything()).is_some() {
            let why = "must have cluster-admin privileges to use the aggregationRule";
            return Err(forbidden(write, why));
        }
        Ok(())
    }

    async fn check_binding(
        &self,
        write: &admission::Attributes<'_>,
        binding: &Value,
    ) -> Result<(), Status> {
        let text = |member| binding.str_at(&["roleRef", member]).unwrap_or_default();
        let resource = match text("kind") {
            "ClusterRole" => Kind::ClusterRole.resource(),
            "Role" => Kind::Role.resource(),
            _ => "",
        };
        if !resource.is_empty() && self.may(write, "bind", resource, text("name")).await {
            return Ok(());
        }
        if text("kind") == "Role" && write.namespace.is_empty() {
            return Err(Status::bad_request("Namespace parameter required."));
        }
        // Upstream names the request's resource, not the missing role's.
        let missing = |status: Status| match status.code {
            404 => Status::not_found(&write.resource.group_resource(), text("name")),
            _ => status,
        };
        let rules = self.roles.role(text("kind"), text("name"), write.namespace);
        let rules = rules.map_err(missing)?;
        self.check_rules(write, &rules)
    }

    fn check_rules(&self, write: &admission::Attributes<'_>, rules: &[Rule]) -> Result<(), Status> {
        self.missing(write, rules).map_or(Ok(()), |why| Err(forbidden(write, &why)))
    }

    /// Describes the rules that the writer lacks, with upstream's text.
    fn missing(&self, write: &admission::Attributes<'_>, rules: &[Rule]) -> Option<String> {
        let (owned, error) = self.roles.rules_for(write.user, write.namespace);
        // Many bindings may grant one role of many rules.
        let mut seen = HashSet::new();
        let distinct = owned.iter().filter(|role| seen.insert(Arc::as_ptr(role)));
        let missing = missing_rights(distinct.flat_map(|role| role.iter()), rules);
        if missing.is_empty() {
            return None;
        }
        let (user, groups) = (quote(&write.user.name), rbac::quoted_list(&write.user.groups));
        let mut lines: Vec<String> = missing.rights.into_iter().collect();
        if missing.more {
            lines.push("and more".to_owned());
        }
        let missing = lines.join("\n");
        let errors =
            if error.is_empty() { error } else { format!("; resolution errors: [{error}]") };
        Some(format!(
            "user {user} (groups={groups}) is attempting to grant RBAC permissions not currently \
             held:\n{missing}{errors}"
        ))
    }

    /// Authorizes `escalate` or `bind`.
    async fn may(
        &self,
        write: &admission::Attributes<'_>,
        verb: &str,
        resource: &str,
        name: &str,
    ) -> bool {
        let subject = Subject::Resource(Objects {
            group: rbac::GROUP,
            version: "*",
            resource,
            namespace: write.namespace,
            name,
            ..Objects::default()
        });
        let asked = Attributes { user: write.user, verb, subject };
        self.authorizer.authorize(&asked).await.allowed()
    }
}

fn forbidden(write: &admission::Attributes<'_>, why: &str) -> Status {
    let name = write.object.map_or(write.name, object::name);
    Status::forbidden(&write.resource.group_resource(), name, why)
}

/// The rules that cover everything.
fn everything() -> [Rule; 2] {
    let all = || vec![Str::const_new("*")];
    let (mut of_resources, mut of_paths) = (Rule::default(), Rule::default());
    (of_resources.verbs, of_resources.api_groups, of_resources.resources) = (all(), all(), all());
    (of_paths.verbs, of_paths.paths) = (all(), all());
    [of_resources, of_paths]
}

/// Whether only the fields that the garbage collector changes differ.
fn is_collector_update(new: &Value, old: &Value) -> bool {
    let without = |object: &Value| {
        let mut object = object.clone();
        let metadata = object::metadata_mut(&mut object);
        for member in ["ownerReferences", "finalizers", "managedFields"] {
            metadata.remove(member);
        }
        object
    };
    without(new) == without(old)
}
