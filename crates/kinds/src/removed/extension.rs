//! CustomResourceDefinitions and APIServices, in v1beta1 (MIG-13 … MIG-21).
//!
//! `pintle-crd` converts definitions to v1. In etcd they are stored as v1beta1, also by v1.36
//! (upstream: `apiextensions-apiserver/pkg/apis/apiextensions/v1beta1/defaults.go`).

use pintle_value::{Map, Value};

use super::{Removed, same};
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
            to_stored: definition_to_v1,
            from_stored: definition_from_v1,
        },
        conforms: false,
        strategy: |today| Strategy {
            default: |definition| set(definition, DEFINITION),
            validate: pintle_crd::validate_v1beta1,
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

/// Members that v1 cannot express stay in the spec for validation, although v1's type lacks them.
fn definition_to_v1(definition: &mut Value) {
    pintle_crd::to_v1(definition);
    let spec = definition.object_entry("spec");
    let take = |name: &&'static str| spec.remove(name).map(|value| (*name, value));
    let unexpressed: Vec<_> = pintle_crd::UNEXPRESSED.iter().filter_map(take).collect();
    adjust(definition, "v1");
    let spec = definition.object_entry("spec");
    unexpressed.into_iter().for_each(|(name, value)| _ = spec.insert(name, value));
}

fn definition_from_v1(definition: &mut Value) {
    pintle_crd::to_v1beta1(definition);
    adjust(definition, "v1beta1");
}

/// Adjusts a definition to its type in a version.
fn adjust(definition: &mut Value, version: &str) {
    let package = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions";
    let schema = pintle_schema::with_removed();
    let ty = schema.find(&format!("{package}.{version}.CustomResourceDefinition"));
    // A definition of another type is refused when it is encoded.
    ty.into_iter().for_each(|ty| _ = pintle_schema::conform(schema, ty, definition));
}

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
