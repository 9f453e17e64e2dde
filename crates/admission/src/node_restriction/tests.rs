use pintle_meta::{GroupResource, User};
use pintle_registry::admission::Operation::{self, Create, Delete, Update};
use pintle_value::{Value, json};

use super::{Restricted, node};

fn tree(text: &str) -> Option<Value> {
    (!text.is_empty()).then(|| json::parse(text.as_bytes()).expect(text))
}

/// What becomes of a write by the node `n`, whose uid is `1`; `""` if nothing is said against it.
fn said(operation: Operation, what: &str, name: &str, new: &str, old: &str) -> String {
    let (path, subresource) = what.split_once('/').unwrap_or((what, ""));
    let (resource, group) = path.split_once('.').unwrap_or((path, ""));
    let find = |resource: &str, _: &str, name: &str| match (resource, name) {
        ("nodes", "n") => tree(r#"{"metadata":{"uid":"1"}}"#),
        ("pods", "here") => tree(r#"{"spec":{"nodeName":"n"}}"#),
        ("pods", "elsewhere") => tree(r#"{"spec":{"nodeName":"m"}}"#),
        _ => None,
    };
    let (new, old) = (tree(new), tree(old));
    let restricted = Restricted {
        node: "n",
        operation,
        resource: &GroupResource::new(group, resource),
        namespace: "kube-node-lease",
        name,
        subresource,
        object: new.as_ref(),
        old: old.as_ref(),
        find: &find,
    };
    restricted.decide().err().unwrap_or_default()
}

fn mirror(owners: &str, spec: &str) -> String {
    format!(
        r#"{{"metadata":{{"annotations":{{"kubernetes.io/config.mirror":"x"}},
        "ownerReferences":[{owners}]}},"spec":{{"nodeName":"n"{spec}}}}}"#
    )
}

fn owner(more: &str) -> String {
    format!(r#"{{"apiVersion":"v1","kind":"Node","name":"n","controller":true{more}}}"#)
}

#[test]
fn nodes_make_only_mirror_pods() {
    let itself = owner(r#","uid":"1""#);
    let needs = |what: &str| format!("node \"n\" can not create pods that reference {what}");
    for (pod, expected) in [
        (mirror(&itself, ""), String::new()),
        (
            r#"{"spec":{"nodeName":"n"}}"#.to_owned(),
            "pod does not have \"kubernetes.io/config.mirror\" annotation, node \"n\" can only \
             create mirror pods"
                .to_owned(),
        ),
        (
            mirror(&itself, "").replace(r#""nodeName":"n""#, r#""nodeName":"m""#),
            "node \"n\" can only create pods with spec.nodeName set to itself".to_owned(),
        ),
        (
            mirror("", ""),
            "node \"n\" can only create pods with an owner reference set to itself".to_owned(),
        ),
        (
            mirror(&format!("{itself},{itself}"), ""),
            "node \"n\" can only create pods with a single owner reference set to itself"
                .to_owned(),
        ),
        (mirror(&owner(r#","uid":"2""#), ""), "node n UID mismatch: expected 2 got 1".to_owned()),
        (
            mirror(&owner(r#","uid":"1","blockOwnerDeletion":true"#), ""),
            "node \"n\" must not set blockOwnerDeletion on an owner reference".to_owned(),
        ),
        (mirror(&itself, r#","serviceAccountName":"a""#), needs("a service account")),
        (mirror(&itself, r#","imagePullSecrets":[{"name":"a"}]"#), needs("secrets")),
        (mirror(&itself, r#","volumes":[{"secret":{"secretName":"a"}}]"#), needs("secrets")),
        (
            mirror(&itself, r#","containers":[{"envFrom":[{"configMapRef":{"name":"a"}}]}]"#),
            needs("configmaps"),
        ),
        (
            mirror(&itself, r#","volumes":[{"persistentVolumeClaim":{"claimName":"a"}}]"#),
            needs("persistentvolumeclaims"),
        ),
        (
            mirror(&itself, r#","volumes":[{"csi":{"volumeAttributes":{"secret":"a"}}}]"#),
            String::new(),
        ),
    ] {
        assert_eq!(said(Create, "pods", "p", &pod, ""), expected, "{pod}");
    }
}

#[test]
fn nodes_write_what_is_theirs() {
    const HERE: &str = r#"{"spec":{"nodeName":"n"}}"#;
    const ELSEWHERE: &str = r#"{"spec":{"nodeName":"m"}}"#;
    const LABELLED: &str = r#"{"metadata":{"labels":{"a":"b"}},"spec":{"nodeName":"n"}}"#;
    const CLAIM: &str = r#"{"metadata":{"name":"c"},"status":{"phase":"Bound"}}"#;
    for (operation, what, name, new, old, expected) in [
        (
            Update,
            "pods",
            "p",
            HERE,
            HERE,
            "unexpected operation \"UPDATE\", node \"n\" can only create and delete mirror pods",
        ),
        (Delete, "pods", "p", "", HERE, ""),
        (
            Delete,
            "pods",
            "p",
            "",
            ELSEWHERE,
            "node \"n\" can only delete pods with spec.nodeName set to itself",
        ),
        (Update, "pods/status", "p", HERE, HERE, ""),
        (
            Update,
            "pods/status",
            "p",
            ELSEWHERE,
            ELSEWHERE,
            "node \"n\" can only update pod status for pods with spec.nodeName set to itself",
        ),
        (
            Update,
            "pods/status",
            "p",
            LABELLED,
            HERE,
            "node \"n\" cannot update labels through pod status",
        ),
        (Create, "pods/eviction", "here", "{}", "", ""),
        (
            Create,
            "pods/eviction",
            "elsewhere",
            "{}",
            "",
            "node n can only evict pods with spec.nodeName set to itself",
        ),
        (
            Create,
            "pods/binding",
            "here",
            "{}",
            "",
            "unexpected pod subresource \"binding\", only 'status' and 'eviction' are allowed",
        ),
        (
            Create,
            "nodes",
            "",
            r#"{"metadata":{"name":"n","labels":{"kubernetes.io/os":"linux","a":"b"}}}"#,
            "",
            "",
        ),
        (
            Create,
            "nodes",
            "",
            r#"{"metadata":{"name":"m"}}"#,
            "",
            "node \"n\" is not allowed to modify node \"m\"",
        ),
        (
            Create,
            "nodes",
            "",
            r#"{"metadata":{"name":"n","labels":{"node-restriction.kubernetes.io/a":"b","kubernetes.io/x":"y","x.kubelet.kubernetes.io/z":""}}}"#,
            "",
            "node \"n\" is not allowed to set the following labels: kubernetes.io/x, node-restriction.kubernetes.io/a",
        ),
        (
            Update,
            "nodes",
            "n",
            r#"{"metadata":{"labels":{"x.k8s.io/a":"c"}}}"#,
            r#"{"metadata":{"labels":{"x.k8s.io/a":"b"}}}"#,
            "is not allowed to modify labels: x.k8s.io/a",
        ),
        (
            Update,
            "nodes/status",
            "n",
            r#"{"spec":{"taints":[]}}"#,
            r#"{"spec":{"taints":[{"key":"a"}]}}"#,
            "node \"n\" is not allowed to modify taints",
        ),
        (Delete, "nodes", "n", "", "{}", ""),
        (Delete, "nodes", "m", "", "{}", "node \"n\" is not allowed to modify node \"m\""),
        (Update, "persistentvolumeclaims", "c", CLAIM, CLAIM, "may only update PVC status"),
        (
            Update,
            "persistentvolumeclaims/status",
            "c",
            r#"{"metadata":{"name":"c"},"status":{"phase":"Bound","capacity":{"storage":"1Gi"}}}"#,
            CLAIM,
            "",
        ),
        (
            Update,
            "persistentvolumeclaims/status",
            "c",
            r#"{"metadata":{"name":"c"},"status":{"phase":"Lost"}}"#,
            CLAIM,
            "node \"n\" is not allowed to update fields other than status.capacity and status.conditions",
        ),
        (Create, "leases.coordination.k8s.io", "", r#"{"metadata":{"name":"n"}}"#, "", ""),
        (
            Create,
            "leases.coordination.k8s.io",
            "",
            r#"{"metadata":{"name":"m"}}"#,
            "",
            "can only access node lease with the same name as the requesting node",
        ),
        (
            Create,
            "csinodes.storage.k8s.io",
            "",
            r#"{"metadata":{"name":"m"}}"#,
            "",
            "can only access CSINode with the same name as the requesting node",
        ),
        (
            Create,
            "resourceslices.resource.k8s.io",
            "",
            r#"{"spec":{"nodeName":"m"}}"#,
            "",
            "can only create ResourceSlice with the same NodeName as the requesting node",
        ),
        (Create, "secrets", "", "{}", "", ""),
    ] {
        let row = format!("{operation:?} {what} {name} {new} {old}");
        assert_eq!(said(operation, what, name, new, old), expected, "{row}");
    }
}

#[test]
fn nodes_are_known_by_name_and_group() {
    for (name, group, expected) in [
        ("system:node:a", "system:nodes", Some("a")),
        ("system:node:", "system:nodes", Some("")),
        ("system:node:a", "system:masters", None),
        ("a", "system:nodes", None),
    ] {
        let groups = vec![group.to_owned()];
        let user = User { name: name.to_owned(), groups, ..User::default() };
        assert_eq!(node(&user), expected, "{name} {group}");
    }
}
