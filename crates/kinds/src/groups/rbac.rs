//! `rbac.authorization.k8s.io/v1`. `pintle-server` checks who may grant what.

use pintle_meta::{labels::Selector, names, validation};
use pintle_registry::NameRule;
use pintle_value::{Map, Value};

use crate::{
    checks::same,
    defaults::{
        Condition::Is,
        Constant::Text,
        Defaults,
        Row::{Each, Empty, In, When},
        set,
    },
    field::{Errors, Field},
    kind::{Kind, kind},
    rules::{
        Rule::{Named, Needed},
        Rules, check, required,
    },
    strategy::{PLAIN, Strategy},
};

const RBAC: &str = "rbac.authorization.k8s.io";

pub(crate) const KINDS: &[Kind] = &[
    kind(RBAC, "clusterrolebindings", CLUSTER_BINDING),
    kind(RBAC, "clusterroles", CLUSTER_ROLE),
    kind(RBAC, "rolebindings", BINDING),
    kind(RBAC, "roles", ROLE),
];

/// The base of the four kinds: any name that is valid in a path, and PUT creates.
const BASE: Strategy = Strategy {
    name: NameRule::PathSegment,
    create_on_update: true,
    declared_rules: false,
    ..PLAIN
};

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

fn check_rules(role: &Value, is_namespaced: bool) -> Errors {
    let mut errors = Errors::new();
    let role = Field::root(role);
    for rule in role.items("rules") {
        check_rule(&rule, is_namespaced, &mut errors);
    }
    // An aggregated cluster role has selectors.
    let aggregation = role.get("aggregationRule");
    if aggregation.is_set() {
        let words = "at least one clusterRoleSelector required if aggregationRule is non-nil";
        required(&aggregation.get("clusterRoleSelectors"), words, &mut errors);
    }
    for selector in aggregation.items("clusterRoleSelectors") {
        errors.extend(validation::label_selector(selector.value(), &selector.path()));
        if Selector::from_label_selector(selector.some()).is_err() {
            errors.push(selector.invalid_as(Value::Null, "invalid label selector."));
        }
    }
    errors
}

fn check_rule(rule: &Field<'_>, is_namespaced: bool, errors: &mut Errors) {
    check(rule, &[Needed("verbs", "verbs must contain at least one value")], errors);
    let urls = rule.get("nonResourceURLs");
    if urls.is_empty() {
        return check(rule, RESOURCE_RULE, errors);
    }
    if is_namespaced {
        errors.push(urls.invalid("namespaced rules cannot apply to non-resource URLs"));
    }
    let resources = ["apiGroups", "resources", "resourceNames"];
    if !resources.iter().all(|member| rule.get(member).is_empty()) {
        let words = "rules cannot apply to both regular resources and non-resource URLs";
        errors.push(urls.invalid(words));
    }
}

const RESOURCE_RULE: Rules = &[
    Needed("apiGroups", "resource rules must supply at least one api group"),
    Needed("resources", "resource rules must supply at least one resource"),
];

fn check_binding(binding: &Value, old: Option<&Value>, kinds: &[&str]) -> Errors {
    let mut errors = Errors::new();
    let field = Field::root(binding);
    let role = field.get("roleRef");
    if role.str("apiGroup") != RBAC {
        errors.push(role.get("apiGroup").not_supported(&[RBAC]));
    }
    if !kinds.contains(&role.str("kind")) {
        errors.push(role.get("kind").not_supported(kinds));
    }
    check(&role, &[Named("name", names::path_segment)], &mut errors);
    let needs_namespace = !kinds.contains(&"Role");
    for subject in field.items("subjects") {
        check_subject(&subject, needs_namespace, &mut errors);
    }
    if old.is_some_and(|old| !same(old.get("roleRef"), binding.get("roleRef"))) {
        // The error shows the reference in upstream's internal form.
        let members = [("APIGroup", "apiGroup"), ("Kind", "kind"), ("Name", "name")];
        let shown: Map = members
            .into_iter()
            .map(|(shown, member)| (shown.into(), Value::from(role.str(member))))
            .collect();
        errors.push(role.invalid_as(shown, "cannot change roleRef"));
    }
    errors
}

fn check_subject(subject: &Field<'_>, needs_namespace: bool, errors: &mut Errors) {
    let (kind, name, group) = (subject.get("kind"), subject.get("name"), subject.get("apiGroup"));
    required(&name, "", errors);
    match kind.text() {
        "ServiceAccount" => {
            if !name.is_empty() {
                name.all_invalid(names::dns1123_subdomain(name.text()), errors);
            }
            if !group.is_empty() {
                errors.push(group.not_supported(&[""]));
            }
            if needs_namespace {
                required(&subject.get("namespace"), "", errors);
            }
        }
        "User" | "Group" => {
            if group.text() != RBAC {
                errors.push(group.not_supported(&[RBAC]));
            }
        }
        _ => errors.push(kind.not_supported(&["ServiceAccount", "User", "Group"])),
    }
}
