use super::operations::paths;
use super::*;
use crate::builtin;
use pintle_value::{Value, json};

const ALL: [&str; 8] =
    ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"];

fn source(descriptions: &dyn Descriptions) -> Source<'_> {
    Source { schema: builtin(), descriptions, cbor: true, version: "1.36", open_id: true }
}

fn sub(name: &str, gvk: (&str, &str, &str), verbs: &[&'static str]) -> Subresource {
    let (group, version, kind) = gvk;
    Subresource {
        name: name.into(),
        group: group.into(),
        version: version.into(),
        kind: kind.into(),
        verbs: verbs.to_vec(),
    }
}

fn core() -> GroupVersion {
    let write = ["get", "patch", "update"];
    let pods = Resource {
        described: None,
        plural: "pods".into(),
        kind: "Pod".into(),
        type_name: "io.k8s.api.core.v1.Pod".into(),
        namespaced: true,
        verbs: ALL.to_vec(),
        delete_returns_object: true,
        subresources: vec![
            sub("eviction", ("policy", "v1", "Eviction"), &["create"]),
            sub("exec", ("", "v1", "PodExecOptions"), &["create", "get"]),
            sub("log", ("", "v1", "Pod"), &["get"]),
            sub("proxy", ("", "v1", "PodProxyOptions"), &["create", "get"]),
            sub("status", ("", "v1", "Pod"), &write),
        ],
    };
    let namespaces = Resource {
        plural: "namespaces".into(),
        kind: "Namespace".into(),
        type_name: "io.k8s.api.core.v1.Namespace".into(),
        verbs: vec!["create", "delete", "get", "list", "patch", "update", "watch"],
        subresources: vec![sub("finalize", ("", "v1", "Namespace"), &["update"])],
        ..Resource::default()
    };
    GroupVersion { group: String::new(), version: "v1".into(), resources: vec![pods, namespaces] }
}

fn member<'a>(value: &'a Value, path: &[&str]) -> &'a Value {
    path.iter().fold(value, |v, key| match v {
        Value::Object(members) => members.get(key).unwrap_or_else(|| panic!("no {key} in {v:?}")),
        _ => panic!("no {key} in {v:?}"),
    })
}

/// The OpenAPI 2 document of the core group.
fn v2() -> Vec<u8> {
    let mut json = Vec::new();
    let sink = &mut |piece: &[u8]| json.extend_from_slice(piece);
    v2_document(source(&NoDescriptions), &[core()], [], sink);
    json
}

#[test]
fn oas_03_operation_ids_match_upstream() {
    let paths = paths(builtin(), &core());
    let id = |method: &str, path: &str| -> String {
        let item = paths.iter().find(|p| p.path == path).unwrap_or_else(|| panic!("no {path}"));
        let operation = item.operations.iter().find(|o| o.method == method);
        operation.unwrap_or_else(|| panic!("no {method} of {path}")).id.clone()
    };
    let check = |method: &str, path: &str, expected: &str| {
        assert_eq!(id(method, path), expected, "{method} {path}");
    };
    let pods = "/api/v1/namespaces/{namespace}/pods";
    let pod = |rest: &str| format!("{pods}/{{name}}{rest}");
    check("get", pods, "listCoreV1NamespacedPod");
    check("post", pods, "createCoreV1NamespacedPod");
    check("delete", pods, "deleteCoreV1CollectionNamespacedPod");
    check("get", "/api/v1/pods", "listCoreV1PodForAllNamespaces");
    check("get", &pod(""), "readCoreV1NamespacedPod");
    check("put", &pod(""), "replaceCoreV1NamespacedPod");
    check("patch", &pod(""), "patchCoreV1NamespacedPod");
    check("delete", &pod(""), "deleteCoreV1NamespacedPod");
    check("get", &pod("/status"), "readCoreV1NamespacedPodStatus");
    check("get", &pod("/log"), "readCoreV1NamespacedPodLog");
    check("post", &pod("/eviction"), "createCoreV1NamespacedPodEviction");
    check("post", &pod("/exec"), "connectCoreV1PostNamespacedPodExec");
    check("get", &pod("/proxy/{path}"), "connectCoreV1GetNamespacedPodProxyWithPath");
    check("put", "/api/v1/namespaces/{name}/finalize", "replaceCoreV1NamespaceFinalize");
    check("get", "/api/v1/watch/pods", "watchCoreV1PodListForAllNamespaces");
    check("get", "/api/v1/watch/namespaces/{namespace}/pods", "watchCoreV1NamespacedPodList");
    check("get", "/api/v1/watch/namespaces/{name}", "watchCoreV1Namespace");
    check("get", "/api/v1/", "getCoreV1APIResources");
}

#[test]
fn group_names_are_converted_to_identifiers() {
    let gv = GroupVersion {
        group: "flowcontrol.apiserver.k8s.io".into(),
        version: "v1".into(),
        resources: vec![Resource {
            plural: "flowschemas".into(),
            kind: "FlowSchema".into(),
            type_name: "io.k8s.api.flowcontrol.v1.FlowSchema".into(),
            verbs: vec!["list"],
            ..Resource::default()
        }],
    };
    let paths = paths(builtin(), &gv);
    let list = &paths[1].operations[0];
    assert_eq!(list.id, "listFlowcontrolApiserverV1FlowSchema");
    assert_eq!(list.tag, "flowcontrolApiserver_v1");
}

#[test]
fn oas_03_v3_schemas_have_merge_extensions() {
    let document = json::parse(&v3_document(source(&NoDescriptions), &core())).expect("JSON");
    let schema = |name: &str| member(&document, &["components", "schemas", name]);
    let check = |name: &str, path: &[&str], expected: &str| {
        assert_eq!(json::to_string(member(schema(name), path)), expected, "{name} {path:?}");
    };
    let spec = "io.k8s.api.core.v1.PodSpec";
    let volumes = ["properties", "volumes"];
    let of = |path: &[&'static str], last: &'static str| [path, &[last]].concat();
    check(spec, &of(&volumes, "x-kubernetes-patch-strategy"), r#""merge,retainKeys""#);
    check(spec, &of(&volumes, "x-kubernetes-patch-merge-key"), r#""name""#);
    check(spec, &of(&volumes, "x-kubernetes-list-type"), r#""map""#);
    check(spec, &of(&volumes, "x-kubernetes-list-map-keys"), r#"["name"]"#);
    check(spec, &["required"], r#"["containers"]"#);
    let pod = "io.k8s.api.core.v1.Pod";
    check(pod, &["properties", "spec", "default"], "{}");
    check(
        pod,
        &["properties", "spec", "allOf"],
        r##"[{"$ref":"#/components/schemas/io.k8s.api.core.v1.PodSpec"}]"##,
    );
    check(
        pod,
        &["x-kubernetes-group-version-kind"],
        r#"[{"group":"","kind":"Pod","version":"v1"}]"#,
    );
    let port = "io.k8s.api.core.v1.ContainerPort";
    check(port, &["properties", "protocol", "default"], r#""TCP""#);
    check(port, &["properties", "protocol", "enum"], r#"["SCTP","TCP","UDP"]"#);
    check(port, &["properties", "containerPort", "default"], "0");
    let claim = "io.k8s.api.core.v1.PersistentVolumeClaimSpec";
    check(
        claim,
        &["properties", "accessModes", "items"],
        r#"{"default":"","enum":["ReadOnlyMany","ReadWriteMany","ReadWriteOnce","ReadWriteOncePod"],"type":"string"}"#,
    );
    check(
        "io.k8s.apimachinery.pkg.api.resource.Quantity",
        &["oneOf"],
        r#"[{"type":"string"},{"type":"number"}]"#,
    );
    check(
        "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta",
        &["properties", "creationTimestamp"],
        r##"{"$ref":"#/components/schemas/io.k8s.apimachinery.pkg.apis.meta.v1.Time"}"##,
    );
}

#[test]
fn references_resolve_within_the_document() {
    for document in [
        v3_document(source(&NoDescriptions), &core()),
        v3_page(source(&NoDescriptions), Page::Group("apps")),
        v3_page(source(&NoDescriptions), Page::Core),
        v3_page(source(&NoDescriptions), Page::Groups),
        v3_page(source(&NoDescriptions), Page::Version),
        v2(),
    ] {
        let document = json::parse(&document).expect("JSON");
        let mut references = Vec::new();
        collect(&document, &mut references);
        assert!(!references.is_empty());
        for reference in references {
            let path: Vec<&str> = reference.trim_start_matches("#/").split('/').collect();
            member(&document, &path);
        }
    }
}

fn collect(value: &Value, references: &mut Vec<String>) {
    match value {
        Value::Object(members) => {
            for (key, value) in members.iter() {
                match value {
                    Value::String(text) if key == "$ref" => references.push(text.to_string()),
                    value => collect(value, references),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|v| collect(v, references)),
        _ => {}
    }
}

#[test]
fn oas_02_the_index_names_documents_by_hash() {
    let index = v3_index([("api/v1", "AB"), ("apis/apps/v1", "CD")]);
    assert_eq!(
        String::from_utf8(index).expect("text"),
        r#"{"paths":{"api/v1":{"serverRelativeURL":"/openapi/v3/api/v1?hash=AB"},"apis/apps/v1":{"serverRelativeURL":"/openapi/v3/apis/apps/v1?hash=CD"}}}"#
    );
    assert_eq!(v3_path("", "v1"), "api/v1");
    assert_eq!(v3_path("apps", "v1"), "apis/apps/v1");
}

struct Words;

impl Descriptions for Words {
    fn of_type(&self, type_name: &str) -> Option<&str> {
        (type_name == "io.k8s.api.core.v1.Pod").then_some("a pod")
    }

    fn of_field(&self, _type_name: &str, field: &str) -> Option<&str> {
        (field == "claimRef" || field == "spec" || field == "limit").then_some("some words")
    }
}

#[test]
fn descriptions_are_combined_with_references() {
    let document = json::parse(&v3_document(source(&Words), &core())).expect("JSON");
    let pod = member(&document, &["components", "schemas", "io.k8s.api.core.v1.Pod"]);
    assert_eq!(json::to_string(member(pod, &["description"])), r#""a pod""#);
    let spec = member(pod, &["properties", "spec"]);
    assert_eq!(json::to_string(member(spec, &["description"])), r#""some words""#);
    member(spec, &["allOf"]);
}
