use std::{env, fs};

use pintle_meta::fields;
use pintle_value::{Value, json};

use super::*;
use crate::Decision;

/// Histories of objects, and requests with the decisions of upstream's authorizer over the same
/// objects: kubernetes v1.36.3's `plugin/pkg/auth/authorizer/node`, with `PodCertificateRequest`
/// on.
const CASES: &str = include_str!("cases.jsonl");

/// The part of the rules of all nodes that the cases need in addition to the graph.
const RULES: &str = r#"{"rules": [
    {"apiGroups": ["authentication.k8s.io"], "resources": ["tokenreviews"], "verbs": ["create"]},
    {"apiGroups": [""], "resources": ["services"], "verbs": ["get", "list", "watch"]},
    {"apiGroups": ["", "events.k8s.io"], "resources": ["events"], "verbs": ["create", "patch", "update"]},
    {"apiGroups": [""], "resources": ["endpoints"], "verbs": ["get"]},
    {"apiGroups": ["certificates.k8s.io"], "resources": ["certificatesigningrequests"], "verbs": ["create", "get", "list", "watch"]},
    {"apiGroups": ["storage.k8s.io"], "resources": ["csidrivers"], "verbs": ["get", "list", "watch"]},
    {"apiGroups": ["node.k8s.io"], "resources": ["runtimeclasses"], "verbs": ["get", "list", "watch"]}
]}"#;

fn tree(text: &str) -> Value {
    json::parse(text.as_bytes()).unwrap_or_else(|error| panic!("{error}: {text}"))
}

fn text<'a>(value: &'a Value, member: &str) -> &'a str {
    value.str_at(&[member]).unwrap_or_default()
}

fn kind(resource: &str) -> Kind {
    let found = Kind::ALL.into_iter().find(|kind| kind.resource().2 == resource);
    found.unwrap_or_else(|| panic!("{resource} is not in the graph"))
}

fn replay(cases: &str) {
    let policy = Policy { rules: Rule::all_of(&tree(RULES)), pod_certificates: true };
    let mut graph = Graph::default();
    for (at, line) in cases.lines().enumerate() {
        let step = tree(line);
        if let Some(asked) = step.get("ask") {
            let expected = (asked.get("allow") == Some(&Value::Bool(true)), text(asked, "reason"));
            let ruling = ask(&policy, &graph, asked);
            let found = (ruling.decision == Decision::Allow, &*ruling.reason.to_string());
            assert_eq!(found, expected, "line {}: {line}", at + 1);
        } else if let Some(object) = step.get("object") {
            let metadata = object.get("metadata").expect("metadata");
            let (namespace, name) = (text(metadata, "namespace"), text(metadata, "name"));
            graph.set(kind(text(&step, "set")), namespace, name, object);
        } else {
            let kind = kind(text(&step, "remove"));
            graph.remove(kind, text(&step, "namespace"), text(&step, "name"));
        }
    }
    Kind::ALL.into_iter().for_each(|kind| graph.clear(kind));
    assert!(graph.is_empty(), "nothing is left when all objects are gone: {graph:?}");
}

fn ask(policy: &Policy, graph: &Graph, asked: &Value) -> Ruling {
    let groups = asked.get("groups").and_then(Value::as_array).unwrap_or_default();
    let groups = groups.iter().filter_map(Value::as_str).map(str::to_owned).collect();
    let user = User { name: text(asked, "user").to_owned(), groups, ..User::default() };
    let selector = fields::Selector::parse(text(asked, "fieldSelector")).expect("a selector");
    let subject = match asked.str_at(&["path"]) {
        Some(path) => Subject::Path(path),
        None => Subject::Resource(Objects {
            group: text(asked, "group"),
            resource: text(asked, "resource"),
            subresource: text(asked, "subresource"),
            namespace: text(asked, "namespace"),
            name: text(asked, "name"),
            fields: selector.requirements(),
            ..Objects::default()
        }),
    };
    let attributes = Attributes { user: &user, verb: text(asked, "verb"), subject };
    policy.authorize(&attributes, |node, object| graph.reaches(node, object))
}

#[test]
fn nodes_are_authorized_as_upstream() {
    replay(CASES);
}

/// The same with a larger history, from the file that `PINTLE_NODE_CASES` names.
#[test]
fn nodes_are_authorized_as_upstream_in_a_given_history() {
    if let Ok(path) = env::var("PINTLE_NODE_CASES") {
        replay(&fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}")));
    }
}

/// 50 nodes with 30 pods each, or 5,000 such nodes with `PINTLE_NODE_SCALE=large`.
#[test]
fn a_large_cluster_is_indexed_and_authorized_quickly() {
    let mut graph = Graph::default();
    let (nodes, pods): (usize, usize) = match env::var("PINTLE_NODE_SCALE").as_deref() {
        Ok("large") => (5_000, 150_000),
        _ => (50, 1_500),
    };
    let began = std::time::Instant::now();
    for pod in 0..pods {
        let node = pod % nodes;
        let object = tree(&format!(
            r#"{{"spec":{{"nodeName":"node-{node}","serviceAccountName":"account-{}",
                "volumes":[{{"name":"a","secret":{{"secretName":"secret-{pod}"}}}},
                {{"name":"b","configMap":{{"name":"shared"}}}},
                {{"name":"c","persistentVolumeClaim":{{"claimName":"claim-{pod}"}}}},
                {{"name":"d","projected":{{"sources":[{{"configMap":{{"name":"kube-root-ca.crt"}}}}]}}}}]}}}}"#,
            pod % 100
        ));
        graph.set(Kind::Pod, "namespace", &format!("some-deployment-5f7b9c6d4-{pod}"), &object);
        let volume = format!(
            r#"{{"spec":{{"claimRef":{{"namespace":"namespace","name":"claim-{pod}"}},
                "csi":{{"nodeStageSecretRef":{{"namespace":"storage","name":"shared"}}}}}}}}"#
        );
        graph.set(Kind::Volume, "", &format!("volume-{pod}"), &tree(&volume));
    }
    let built = began.elapsed();
    let began = std::time::Instant::now();
    let secret = |name: &str| Object::new(Sort::Secret, "namespace", name);
    for pod in 0..pods {
        let (own, other) = (format!("node-{}", pod % nodes), format!("node-{}", (pod + 1) % nodes));
        let of_pod = secret(&format!("secret-{pod}"));
        assert!(graph.reaches(&own, &of_pod));
        assert!(!graph.reaches(&other, &of_pod));
        assert!(graph.reaches(&own, &Object::new(Sort::Secret, "storage", "shared")));
    }
    let asked = began.elapsed() / u32::try_from(3 * pods).expect("few");
    println!("{pods} pods and volumes on {nodes} nodes: {built:?}, {asked:?} a question");
}
