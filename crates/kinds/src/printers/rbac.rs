//! rbac.authorization.k8s.io: who has which role. The roles themselves have the default table.

use pintle_value::Value;

use super::column::Cell::By;
use super::column::{AGE, NAME, string};
use super::read::{items_at, str_at};
use super::text::joined_with;
use super::{Columns, Kind};

const GROUP: &str = "rbac.authorization.k8s.io";

pub(super) const KINDS: &[Kind] =
    &[Kind::new(GROUP, "ClusterRoleBinding", BINDING), Kind::new(GROUP, "RoleBinding", BINDING)];

const BINDING: Columns = &[
    NAME,
    string("Role", By(role), "What the subjects may do."),
    AGE,
    string("Users", By(|b| subjects(b, "User")), "The users among the subjects.").wide(),
    string("Groups", By(|b| subjects(b, "Group")), "The groups among the subjects.").wide(),
    string(
        "ServiceAccounts",
        By(|b| subjects(b, "ServiceAccount")),
        "The service accounts among the subjects.",
    )
    .wide(),
];

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
