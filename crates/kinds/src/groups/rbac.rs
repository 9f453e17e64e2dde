//! `rbac.authorization.k8s.io/v1`. Who may grant what is the authorizer's matter.

use pintle_meta::field::Error;
use pintle_registry::NameRule;
use pintle_value::{Map, Path, Value};

use crate::{
    checks::{items, one_of, required, same},
    defaults::{
        Condition::Is,
        Constant::Text,
        Defaults,
        Row::{Each, Empty, In, When},
        set,
    },
    kind::{Kind, kind},
    strategy::{PLAIN, Strategy},
};

const RBAC: &str = "rbac.authorization.k8s.io";

pub(crate) const KINDS: &[Kind] = &[
    kind(RBAC, "clusterrolebindings", CLUSTER_BINDING),
    kind(RBAC, "clusterroles", CLUSTER_ROLE),
    kind(RBAC, "rolebindings", BINDING),
    kind(RBAC, "roles", ROLE),
];

/// What the four kinds share: any name that can stand in a path, and PUT creates.
const BASE: Strategy = Strategy { name: NameRule::PathSegment, create_on_update: true, ..PLAIN };

const ROLE: Strategy = Strategy { validate: |new, _| check_rules(new, true), ..BASE };

const CLUSTER_ROLE: Strategy = Strategy { validate: |new, _| check_rules(new, false), ..BASE };

const BINDING: Strategy = Strategy {
    default: |object| set(object, BINDING_DEFAULTS),
    validate: |new, old| check_binding(new, old, &["Role", "ClusterRole"]),
    ..BASE
};

const CLUSTER_BINDING: Strategy = Strategy {
    default: |object| set(object, BINDING_DEFAULTS),
    validate: |new, old| check_binding(new, old, &["ClusterRole"]),
    ..BASE
};

const BINDING_DEFAULTS: Defaults = &[
    In("roleRef", GROUP),
    Each("subjects", &[When(Is("kind", "User"), GROUP), When(Is("kind", "Group"), GROUP)]),
];

const GROUP: Defaults = &[Empty("apiGroup", Text(RBAC))];

fn check_rules(role: &Value, is_namespaced: bool) -> Vec<Error> {
    let mut errors = Vec::new();
    for (i, rule) in items(role, &["rules"]).iter().enumerate() {
        check_rule(rule, &Path::new("rules").index(i), is_namespaced, &mut errors);
    }
    errors
}

fn check_rule(rule: &Value, path: &Path, is_namespaced: bool, errors: &mut Vec<Error>) {
    let is_empty = |member: &str| items(rule, &[member]).is_empty();
    let mut need = |member: &str, words: &str| {
        if is_empty(member) {
            errors.push(Error::required(&path.field(member), words));
        }
    };
    need("verbs", "verbs must contain at least one value");
    if is_empty("nonResourceURLs") {
        need("apiGroups", "resource rules must supply at least one api group");
        need("resources", "resource rules must supply at least one resource");
        return;
    }
    let path = path.field("nonResourceURLs");
    let urls = Value::from(items(rule, &["nonResourceURLs"]).to_vec());
    if is_namespaced {
        let words = "namespaced rules cannot apply to non-resource URLs";
        errors.push(Error::invalid(&path, &urls, words));
    }
    if !["apiGroups", "resources", "resourceNames"].into_iter().all(is_empty) {
        let words = "rules cannot apply to both regular resources and non-resource URLs";
        errors.push(Error::invalid(&path, &urls, words));
    }
}

fn check_binding(binding: &Value, old: Option<&Value>, kinds: &[&str]) -> Vec<Error> {
    let mut errors = Vec::new();
    let role = binding.get("roleRef").unwrap_or(&Value::Null);
    let path = Path::new("roleRef");
    one_of(role.get("apiGroup"), &path.field("apiGroup"), &[RBAC], &mut errors);
    let kind = role.get("kind").cloned().unwrap_or_else(|| Value::from(""));
    one_of(Some(&kind), &path.field("kind"), kinds, &mut errors);
    let needs_namespace = !kinds.contains(&"Role");
    for (i, subject) in items(binding, &["subjects"]).iter().enumerate() {
        check_subject(subject, &Path::new("subjects").index(i), needs_namespace, &mut errors);
    }
    if old.is_some_and(|old| !same(old.get("roleRef"), binding.get("roleRef"))) {
        // Upstream shows its own form of the reference.
        let members = [("APIGroup", "apiGroup"), ("Kind", "kind"), ("Name", "name")];
        let shown: Map = members
            .into_iter()
            .map(|(shown, member)| (shown.into(), role.get(member).cloned().unwrap_or_default()))
            .collect();
        errors.push(Error::invalid(&path, &Value::from(shown), "cannot change roleRef"));
    }
    errors
}

fn check_subject(subject: &Value, path: &Path, needs_namespace: bool, errors: &mut Vec<Error>) {
    let kind = subject.get("kind").cloned().unwrap_or_else(|| Value::from(""));
    let group = subject.get("apiGroup");
    match kind.as_str() {
        Some("ServiceAccount") => {
            if needs_namespace || subject.get("namespace").is_none() {
                required(subject, path, "namespace", errors);
            }
            one_of(group, &path.field("apiGroup"), &[""], errors);
        }
        Some("User" | "Group") => one_of(group, &path.field("apiGroup"), &[RBAC], errors),
        _ => {
            let kinds = ["ServiceAccount", "User", "Group"];
            errors.push(Error::not_supported(&path.field("kind"), &kind, &kinds));
        }
    }
}
