//! rbac.authorization.k8s.io: bindings. Roles have the default Table.

use pintle_value::Value;

use super::column::Cell::By;
use super::column::Description::{FieldBefore, Words};
use super::column::{AGE, Column, NAME, string};
use super::read::{items_at, str_at};
use super::text::joined_with;
use super::{Columns, Kind};

const GROUP: &str = "rbac.authorization.k8s.io";

pub(super) const KINDS: &[Kind] = &[
    Kind::new(GROUP, "ClusterRoleBinding", CLUSTER_ROLE_BINDING),
    Kind::new(GROUP, "RoleBinding", ROLE_BINDING),
];

const CLUSTER_ROLE_BINDING: Columns = &[
    NAME,
    string("Role", By(role), FieldBefore("rbac.v1.ClusterRoleBinding", "roleRef", IMMUTABLE)),
    AGE,
    users("Users in the clusterRoleBinding"),
    groups("Groups in the clusterRoleBinding"),
    service_accounts("ServiceAccounts in the clusterRoleBinding"),
];

const ROLE_BINDING: Columns = &[
    NAME,
    string("Role", By(role), FieldBefore("rbac.v1.RoleBinding", "roleRef", IMMUTABLE)),
    AGE,
    users("Users in the roleBinding"),
    groups("Groups in the roleBinding"),
    service_accounts("ServiceAccounts in the roleBinding"),
];

/// The sentence that v1beta1's description of references did not have.
const IMMUTABLE: &str = "This field is immutable.";

const fn users(description: &'static str) -> Column {
    string("Users", By(|b| subjects(b, "User")), Words(description)).wide()
}

const fn groups(description: &'static str) -> Column {
    string("Groups", By(|b| subjects(b, "Group")), Words(description)).wide()
}

const fn service_accounts(description: &'static str) -> Column {
    string("ServiceAccounts", By(|b| subjects(b, "ServiceAccount")), Words(description)).wide()
}

fn role(binding: &Value) -> Value {
    format!("{}/{}", str_at(binding, "roleRef.kind"), str_at(binding, "roleRef.name")).into()
}

fn subjects(binding: &Value, kind: &str) -> Value {
    let subjects = items_at(binding, "subjects").iter().filter(|s| str_at(s, "kind") == kind);
    let names = subjects.map(|subject| match (kind, str_at(subject, "name")) {
        ("ServiceAccount", name) => format!("{}/{name}", str_at(subject, "namespace")),
        (_, name) => name.to_owned(),
    });
    joined_with(names, ", ").into()
}
