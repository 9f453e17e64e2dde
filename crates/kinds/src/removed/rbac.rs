//! Roles and their bindings, in v1beta1 and v1alpha1 (MIG-33).
//!
//! v1beta1 is v1 under another name. A subject of v1alpha1 has an `apiVersion` where v1 has an
//! `apiGroup` (upstream: `pkg/apis/rbac/v1alpha1`).

use pintle_value::{Map, Value};

use super::{Removed, same};
use crate::{
    conversion::set_api_version,
    defaults::{
        Condition::Is,
        Constant::Text,
        Defaults,
        Row::{Each, Empty, In, When},
        set,
    },
    kind::Form,
    strategy::Strategy,
};

const RBAC: &str = "rbac.authorization.k8s.io";
const ALPHA: &str = "rbac.authorization.k8s.io/v1alpha1";

macro_rules! row {
    ($version:literal, $resource:literal, $kind:literal) => {
        same!(
            "rbac.authorization.k8s.io" / $version,
            "rbac",
            $resource,
            $kind,
            "rbac.authorization.k8s.io" / "v1",
            17..22
        )
    };
}

pub(super) const ROWS: &[Removed] = &[
    row!("v1beta1", "clusterrolebindings", "ClusterRoleBinding"),
    row!("v1beta1", "clusterroles", "ClusterRole"),
    row!("v1beta1", "rolebindings", "RoleBinding"),
    row!("v1beta1", "roles", "Role"),
    Removed {
        form: BINDING,
        strategy: |today| Strategy { default: |object| set(object, DEFAULTS), ..today.clone() },
        ..row!("v1alpha1", "clusterrolebindings", "ClusterRoleBinding")
    },
    row!("v1alpha1", "clusterroles", "ClusterRole"),
    Removed {
        form: BINDING,
        strategy: |today| Strategy { default: |object| set(object, DEFAULTS), ..today.clone() },
        ..row!("v1alpha1", "rolebindings", "RoleBinding")
    },
    row!("v1alpha1", "roles", "Role"),
];

const BINDING: Form = Form {
    version: "v1alpha1",
    to_stored: |binding| {
        set_api_version(binding, "rbac.authorization.k8s.io/v1");
        each_subject(binding, subject_to_v1);
    },
    from_stored: |binding| {
        set_api_version(binding, ALPHA);
        each_subject(binding, subject_from_v1);
    },
};

const DEFAULTS: Defaults = &[
    In("roleRef", &[Empty("apiGroup", Text(RBAC))]),
    Each(
        "subjects",
        &[
            When(Is("kind", "ServiceAccount"), &[Empty("apiVersion", Text("v1"))]),
            When(Is("kind", "User"), &[Empty("apiVersion", Text(ALPHA))]),
            When(Is("kind", "Group"), &[Empty("apiVersion", Text(ALPHA))]),
        ],
    ),
];

fn each_subject(binding: &mut Value, change: fn(&mut Map)) {
    let subjects = binding.get_mut("subjects").and_then(Value::as_array_mut);
    subjects.into_iter().flatten().filter_map(Value::as_object_mut).for_each(change);
}

fn subject_to_v1(subject: &mut Map) {
    let api_version = subject.remove("apiVersion");
    let api_version = api_version.as_ref().and_then(Value::as_str).unwrap_or_default();
    let group = match subject.get("kind").and_then(Value::as_str) {
        Some("ServiceAccount") => "",
        Some("User" | "Group") => RBAC,
        _ => api_version.split_once('/').map_or("", |(group, _)| group),
    };
    // The user `*` of this version is the group of all authenticated users in v1.
    let everybody = subject.get("kind").and_then(Value::as_str) == Some("User")
        && subject.get("name").and_then(Value::as_str) == Some("*");
    if everybody {
        subject.insert("kind", "Group");
        subject.insert("name", "system:authenticated");
    }
    if !group.is_empty() {
        let group = group.to_owned();
        subject.insert("apiGroup", group);
    }
}

fn subject_from_v1(subject: &mut Map) {
    let group = subject.remove("apiGroup");
    let group = group.as_ref().and_then(Value::as_str).unwrap_or_default();
    let version = match (subject.get("kind").and_then(Value::as_str), group) {
        (Some("ServiceAccount"), "") => "v1".to_owned(),
        (Some("User" | "Group"), RBAC) => ALPHA.to_owned(),
        (_, "") => String::new(),
        (_, group) => format!("{group}/"),
    };
    if !version.is_empty() {
        subject.insert("apiVersion", version);
    }
}
