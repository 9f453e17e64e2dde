//! CustomResourceDefinitions and APIServices, in v1beta1 (MIG-13 … MIG-21).
//!
//! `pintle-crd` converts definitions to v1. In etcd they are stored as v1beta1, also by v1.36
//! (upstream: `apiextensions-apiserver/pkg/apis/apiextensions/v1beta1/defaults.go`).

use pintle_meta::field::Errors;
use pintle_value::{Map, Value};

use super::{Removed, lenient, same};
use crate::{
    defaults::{
        Condition::Is,
        Constant::{Bool, Int, Made, Text, Texts},
        Defaults,
        Row::{At, Do, Empty, In, Unset, When},
        is_filled, set,
    },
    groups::apiextensions::names_from_kind,
    kind::Form,
    strategy::Strategy,
};

pub(super) const ROWS: &[Removed] = &[
    Removed {
        type_name: "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1beta1.\
                    CustomResourceDefinition",
        form: Form {
            version: "v1beta1",
            to_stored: |definition| (pintle_crd::V1BETA1.read)(definition),
            from_stored: pintle_crd::to_v1beta1,
        },
        strategy: |today| Strategy {
            default: |definition| set(definition, DEFINITION),
            validate: definition,
            ..today.clone()
        },
        ..same!(
            "apiextensions.k8s.io" / "v1beta1",
            "apiextensions",
            "customresourcedefinitions",
            "CustomResourceDefinition",
            "apiextensions.k8s.io" / "v1",
            16..22
        )
    },
    Removed {
        type_name: "io.k8s.kube-aggregator.pkg.apis.apiregistration.v1beta1.APIService",
        ..same!(
            "apiregistration.k8s.io" / "v1beta1",
            "apiregistration",
            "apiservices",
            "APIService",
            "apiregistration.k8s.io" / "v1",
            19..22
        )
    },
];

const DEFINITION: Defaults = &[
    In(
        "spec",
        &[
            Empty("scope", Text("Namespaced")),
            In("names", &[Do(names_from_kind)]),
            Do(one_version),
            Unset("conversion", Made(|| Value::from([("strategy", "None")]))),
            At(
                "conversion",
                &[
                    When(
                        Is("strategy", "Webhook"),
                        &[Empty("conversionReviewVersions", Texts(&["v1beta1"]))],
                    ),
                    At("webhookClientConfig", &[At("service", &[Unset("port", Int(443))])]),
                ],
            ),
            Unset("preserveUnknownFields", Bool(true)),
        ],
    ),
    Do(stored_versions),
];

/// Fills in `version` from the first of `versions`, or `versions` from `version`.
fn one_version(spec: &mut Map) {
    let version = spec.get("version").and_then(Value::as_str).unwrap_or_default().to_owned();
    let versions = spec.get("versions").and_then(Value::as_array).unwrap_or_default();
    if version.is_empty() {
        let first = versions.first().and_then(|first| first.get("name")).cloned();
        first.into_iter().for_each(|first| _ = spec.insert("version", first));
    } else if versions.is_empty() {
        let on = || Value::Bool(true);
        let only = [("name", version.into()), ("served", on()), ("storage", on())];
        spec.insert("versions", vec![Value::from(only)]);
    }
}

fn stored_versions(definition: &mut Map) {
    let versions = definition.get("spec").and_then(|spec| spec.get("versions"));
    let mut versions = versions.and_then(Value::as_array).unwrap_or_default().iter();
    let storage = versions.find(|version| version.get("storage") == Some(&Value::Bool(true)));
    let name = storage.and_then(|version| version.get("name")).cloned();
    let status = definition.entry_object("status");
    if let Some(name) = name.filter(|_| !is_filled(status, "storedVersions")) {
        status.insert("storedVersions", vec![name]);
    }
}

/// Drops errors of v1 for a missing schema, for missing types in it, and for preserved unknown
/// fields: v1beta1 allows them.
fn definition(new: &Value, old: Option<&Value>) -> Errors {
    let kind = ("apiextensions.k8s.io", "customresourcedefinitions");
    lenient(kind, new, old, |field, words| {
        let schema = field.ends_with(".schema.openAPIV3Schema") && words.is_empty();
        let untyped = field.ends_with(".type") && words.starts_with("must not be empty ");
        schema || untyped || field == "spec.preserveUnknownFields"
    })
}
