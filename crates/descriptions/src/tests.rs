use pintle_schema::openapi::Descriptions as _;
use pintle_schema::{Shape, builtin};

use super::load;

#[test]
fn kubectl_explain_finds_descriptions() {
    let d = load().expect("sound descriptions");
    let check = |text: Option<&str>, word: &str| {
        assert!(text.is_some_and(|t| t.contains(word)), "{word}: {text:?}");
    };
    check(d.of_type("io.k8s.api.core.v1.Pod"), "containers");
    check(d.of_field("io.k8s.api.core.v1.PodSpec", "containers"), "pod");
    check(d.of_field("io.k8s.api.apps.v1.DeploymentSpec", "replicas"), "pods");
    check(d.of_field("io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta", "labels"), "keys");
    check(d.of_field("io.k8s.api.core.v1.PodList", "kind"), "REST resource");
    assert_eq!(d.of_type("io.k8s.api.core.v1.Nothing"), None);
    assert_eq!(d.of_field("io.k8s.api.core.v1.PodSpec", "nothing"), None);
}

#[test]
fn nearly_every_type_has_a_description() {
    let d = load().expect("sound descriptions");
    let schema = builtin();
    let structs = schema
        .names()
        .iter()
        .filter(|(_, id)| matches!(schema.get(*id).shape, Shape::Struct { .. }));
    let is_list = |name: &str| name.ends_with("List");
    let lacking: Vec<&str> = structs
        .map(|(name, _)| name.as_ref())
        .filter(|name| !is_list(name) && d.of_type(name).is_none())
        .collect();
    // Options in queries, tables and types that only servers exchange have no descriptions.
    assert!(lacking.len() < 40, "{lacking:#?}");
}
