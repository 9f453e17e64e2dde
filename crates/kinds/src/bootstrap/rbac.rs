//! The bootstrap roles and bindings, from `rbac.json`, which leaves out the label and the
//! annotation that all of them have. An entry or a rule with a `feature` exists only if the feature
//! is on.

use pintle_value::{Map, Value};

use super::{BootstrapObject, Reconcile, list, object, parse};
use crate::features::Features;

const FILE: &str = include_str!("rbac.json");
const GROUP: &str = "rbac.authorization.k8s.io";
const API_VERSION: &str = "rbac.authorization.k8s.io/v1";
const BOOTSTRAPPING: &str = "kubernetes.io/bootstrapping";

/// The annotation that allows the server to add to a role or binding.
pub(super) const AUTO_UPDATE: &str = "rbac.authorization.kubernetes.io/autoupdate";

pub(super) fn objects(features: Features) -> Vec<BootstrapObject> {
    let mut file = parse(FILE);
    for (_, entries) in file.make_object().iter_mut() {
        keep_those_with(features, entries);
        for entry in entries.as_array_mut().into_iter().flatten() {
            entry.get_mut("rules").into_iter().for_each(|rules| keep_those_with(features, rules));
        }
    }
    let mut objects = Vec::new();
    for role in list(&file, "clusterRoles") {
        objects.push(made("clusterroles", "ClusterRole", role, &["aggregationRule", "rules"]));
    }
    for controller in list(&file, "controllers") {
        let role = named_for_controller(controller);
        objects.push(made("clusterroles", "ClusterRole", &role, &["rules"]));
    }
    for binding in list(&file, "clusterRoleBindings") {
        objects.push(bound("clusterrolebindings", "ClusterRoleBinding", "ClusterRole", binding));
    }
    for controller in list(&file, "controllers") {
        let binding = named_for_controller(controller);
        objects.push(bound("clusterrolebindings", "ClusterRoleBinding", "ClusterRole", &binding));
    }
    for role in list(&file, "roles") {
        objects.push(made("roles", "Role", role, &["rules"]));
    }
    for binding in list(&file, "roleBindings") {
        objects.push(bound("rolebindings", "RoleBinding", "Role", binding));
    }
    objects
}

/// The entry of the role of nodes, without the rules of disabled features.
pub fn node_role(features: Features) -> Value {
    let mut file = parse(FILE);
    let roles = file.make_object().get_mut("clusterRoles").and_then(Value::as_array_mut);
    let role =
        roles.into_iter().flatten().find(|role| role.str_at(&["name"]) == Some("system:node"));
    let mut role = role.cloned().unwrap_or_default();
    role.get_mut("rules").into_iter().for_each(|rules| keep_those_with(features, rules));
    role
}

/// Removes entries that belong to a disabled feature.
fn keep_those_with(features: Features, entries: &mut Value) {
    let Some(entries) = entries.as_array_mut() else { return };
    entries.retain(|entry| entry.str_at(&["feature"]).is_none_or(|name| features.has_named(name)));
    entries.iter_mut().for_each(|entry| _ = entry.make_object().remove("feature"));
}

/// Expands a controller's entry into its role and its binding: the role is named after the
/// controller and bound to its service account.
fn named_for_controller(controller: &Value) -> Value {
    let name = controller.str_at(&["name"]).unwrap_or_default();
    let role = format!("system:controller:{name}");
    let account =
        Value::from([("kind", "ServiceAccount"), ("name", name), ("namespace", "kube-system")]);
    let mut entry = Map::new();
    entry.insert("name", role.as_str());
    entry.insert("role", role);
    entry.insert("subjects", vec![account]);
    if let Some(rules) = controller.get("rules") {
        entry.insert("rules", rules.clone());
    }
    Value::Object(entry)
}

/// Builds an object from an entry of the file; the object gets the entry's `members`.
fn made(
    resource: &'static str,
    kind: &'static str,
    entry: &Value,
    members: &[&str],
) -> BootstrapObject {
    let of = |member: &str| entry.str_at(&[member]).unwrap_or_default();
    let mut made = object(API_VERSION, kind, of("namespace"), of("name"));
    let metadata = made.entry_object("metadata");
    metadata.insert("annotations", Value::from([(AUTO_UPDATE, "true")]));
    let labels = metadata.entry_object("labels");
    labels.insert(BOOTSTRAPPING, "rbac-defaults");
    for (label, value) in
        entry.get("labels").and_then(Value::as_object).iter().flat_map(|l| l.iter())
    {
        labels.insert(label.clone(), value.clone());
    }
    for member in members {
        if let Some(value) = entry.get(member) {
            made.insert(*member, value.clone());
        }
    }
    BootstrapObject::new([GROUP, "v1", resource], Value::Object(made), Reconcile::AtLeast)
}

fn bound(
    resource: &'static str,
    kind: &'static str,
    role_kind: &'static str,
    entry: &Value,
) -> BootstrapObject {
    let mut binding = made(resource, kind, entry, &["subjects"]);
    let role = entry.str_at(&["role"]).unwrap_or_default();
    let reference = Value::from([("apiGroup", GROUP), ("kind", role_kind), ("name", role)]);
    binding.object.make_object().insert("roleRef", reference);
    binding
}
