//! Upstream's cases (`builder_test.go`), without descriptions.

use std::sync::Arc;

use pintle_schema::openapi::{Dialect, NoDescriptions};
use pintle_value::{Value, json};

use super::described;
use crate::definition::{Crd, stored_schema};

fn tree(text: &str) -> Value {
    json::parse(text.as_bytes()).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// The definitions of a version with a schema (`null` for none) and other members.
fn definitions(dialect: Dialect, schema: &str, others: &str) -> Vec<(String, Value)> {
    let names = r#"{"plural":"foos","singular":"foo","kind":"Foo","listKind":"FooList"}"#;
    let crd = tree(&format!(
        r#"{{"metadata":{{"uid":"u","generation":3}},
            "spec":{{"group":"bar.k8s.io","scope":"Namespaced","names":{names},
                "versions":[{{"name":"v1","served":true,"storage":true{others},
                    "schema":{{"openAPIV3Schema":{schema}}}}}]}},
            "status":{{"acceptedNames":{names}}}}}"#
    ));
    let version = Crd(&crd).version("v1").expect("it has this version");
    let source = json::to_string(&crd);
    let source = Arc::new(move |version: &str| stored_schema(source.as_bytes(), version));
    let described = described(Crd(&crd), version, source);
    assert_eq!(described.list_type, "io.k8s.bar.v1.FooList");
    let written = [described.type_name, described.list_type].map(|name| {
        let mut out = Vec::new();
        (described.write)(&name, dialect, &NoDescriptions, &mut out);
        let text = String::from_utf8(out).expect("text");
        let schema = tree(&text);
        assert_eq!(json::to_string(&schema), text, "members are sorted");
        (name, schema)
    });
    written.into()
}

const GVK: &str =
    r#""x-kubernetes-group-version-kind":[{"group":"bar.k8s.io","kind":"Foo","version":"v1"}]"#;

/// Checks the schema of objects; `expected` has the properties except those of every object, or is
/// `""` if there are no properties.
fn check(dialect: Dialect, schema: &str, expected: &str) {
    let found = definitions(dialect, schema, "");
    let expected = match (expected, dialect) {
        ("", _) => format!(r#"{{"type":"object",{GVK}}}"#),
        (expected, dialect) => {
            let reference = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";
            let metadata = match dialect {
                Dialect::V2 => format!(r##"{{"$ref":"#/definitions/{reference}"}}"##),
                Dialect::V3 => {
                    format!(r##"{{"allOf":[{{"$ref":"#/components/schemas/{reference}"}}]}}"##)
                }
            };
            let comma = if expected == "{}" { "" } else { "," };
            let all = format!(
                r#"{{"apiVersion":{{"type":"string"}},"kind":{{"type":"string"}},"metadata":{metadata}{comma}{}"#,
                &expected[1..]
            );
            format!(r#"{{"type":"object","properties":{all},{GVK}}}"#)
        }
    };
    assert_eq!(found[0].0, "io.k8s.bar.v1.Foo");
    assert_eq!(json::to_string(&found[0].1), json::to_string(&tree(&expected)), "{schema}");
}

const EITHER: &str = r#"[{"type":"integer"},{"type":"string"}]"#;

#[test]
fn openapi_v2_schemas_are_reduced() {
    let v2 = |schema: &str, expected: &str| check(Dialect::V2, schema, expected);
    v2("null", "");
    v2(
        r#"{"type":"object","properties":{"spec":{"type":"object"},"status":{"type":"object"}}}"#,
        r#"{"spec":{"type":"object"},"status":{"type":"object"}}"#,
    );
    v2(r#"{"type":"object"}"#, "{}");
    v2(r#"{"type":"object","x-kubernetes-preserve-unknown-fields":true}"#, "");
    v2(
        r#"{"type":"object","properties":{"foo":{"type":"string","oneOf":[{"pattern":"a"},{"pattern":"b"}]}}}"#,
        r#"{"foo":{"type":"string"}}"#,
    );
    for given in [
        format!(r#""anyOf":{EITHER}"#),
        format!(r#""allOf":[{{"anyOf":{EITHER}}},{{"anyOf":[{{"minimum":42.0}}]}}]"#),
        r#""anyOf":[{"minimum":42.0}],"allOf":[{"minimum":42.0}]"#.to_owned(),
        r#""nullable":false"#.to_owned(),
    ] {
        v2(
            &format!(
                r#"{{"type":"object","properties":{{"a":{{"x-kubernetes-int-or-string":true,{given}}}}}}}"#
            ),
            r#"{"a":{"x-kubernetes-int-or-string":true}}"#,
        );
    }
    // Clients of OpenAPI 2 reject undeclared members besides declared ones.
    v2(
        r#"{"type":"object","properties":{"any":{"x-kubernetes-preserve-unknown-fields":true},
            "embedded":{"x-kubernetes-embedded-resource":true,"x-kubernetes-preserve-unknown-fields":true,"type":"object"}}}"#,
        r#"{"any":{"x-kubernetes-preserve-unknown-fields":true},
            "embedded":{"x-kubernetes-embedded-resource":true,"x-kubernetes-preserve-unknown-fields":true}}"#,
    );
    // A nullable value has no type in OpenAPI 2, and is not required.
    v2(
        r#"{"type":"object","properties":{"a":{"type":"object","required":["b","c"],"properties":
            {"b":{"type":"array","nullable":true,"items":{"type":"string"}},"c":{"type":"string","default":"x"}}}}}"#,
        r#"{"a":{"type":"object","required":["c"],"properties":{"b":{},"c":{"type":"string"}}}}"#,
    );
}

#[test]
fn openapi_v3_schemas_are_complete() {
    let v3 = |schema: &str, expected: &str| check(Dialect::V3, schema, expected);
    v3("null", "");
    v3(
        r#"{"type":"object","properties":{"spec":{"type":"object","nullable":true},"status":{"type":"object"}}}"#,
        r#"{"spec":{"type":"object","nullable":true},"status":{"type":"object"}}"#,
    );
    v3(
        r#"{"type":"object","properties":{"a":{"type":"string","default":"foo","description":"words"}}}"#,
        r#"{"a":{"type":"string","default":"foo","description":"words"}}"#,
    );
    let rule = r#""x-kubernetes-validations":[{"rule":"self.size() < 5"}]"#;
    v3(
        &format!(r#"{{"type":"object","properties":{{"a":{{"type":"string",{rule}}}}}}}"#),
        &format!(r#"{{"a":{{"type":"string",{rule}}}}}"#),
    );
    for (given, shown) in [
        (String::new(), format!(r#","anyOf":{EITHER}"#)),
        (format!(r#","anyOf":{EITHER}"#), format!(r#","anyOf":{EITHER}"#)),
        (
            r#","anyOf":[{"minimum":42}]"#.to_owned(),
            format!(r#","anyOf":[{{"minimum":42}}],"allOf":[{{"anyOf":{EITHER}}}]"#),
        ),
    ] {
        v3(
            &format!(
                r#"{{"type":"object","properties":{{"a":{{"x-kubernetes-int-or-string":true{given}}}}}}}"#
            ),
            &format!(r#"{{"a":{{"x-kubernetes-int-or-string":true{shown}}}}}"#),
        );
    }
}

#[test]
fn embedded_resources_have_object_members() {
    let schema = r#"{"type":"object","properties":{"a":{"type":"object","x-kubernetes-embedded-resource":true}}}"#;
    let found = definitions(Dialect::V3, schema, "");
    let embedded = found[0].1.at(&["properties", "a"]).expect("it is there");
    let required = embedded.get("required").map(json::to_string);
    assert_eq!(required.as_deref(), Some(r#"["kind","apiVersion"]"#));
    assert!(embedded.at(&["properties", "metadata", "allOf"]).is_some());
}

#[test]
fn selectable_fields_are_published() {
    let others = r#","selectableFields":[{"jsonPath":".spec.field"}]"#;
    for (_, schema) in definitions(Dialect::V3, r#"{"type":"object"}"#, others) {
        let fields = schema.get("x-kubernetes-selectable-fields").map(json::to_string);
        assert_eq!(fields.as_deref(), Some(r#"[{"fieldPath":"spec.field"}]"#));
    }
}

#[test]
fn lists_refer_to_their_items() {
    let found = definitions(Dialect::V3, r#"{"type":"object"}"#, "");
    assert_eq!(found[1].0, "io.k8s.bar.v1.FooList");
    let items = found[1].1.at(&["properties", "items", "items"]).map(json::to_string);
    assert_eq!(items.as_deref(), Some(r##"{"$ref":"#/components/schemas/io.k8s.bar.v1.Foo"}"##));
    let kind = found[1].1.get("x-kubernetes-group-version-kind").map(json::to_string);
    let expected = r#"[{"group":"bar.k8s.io","kind":"FooList","version":"v1"}]"#;
    assert_eq!(kind.as_deref(), Some(expected));
}
