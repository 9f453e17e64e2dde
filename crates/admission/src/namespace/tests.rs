use pintle_meta::{GroupResource, Reason};
use pintle_registry::admission::Operation;

use super::{Request, State, decide};

fn request<'a>(
    operation: Operation,
    resource: &'a GroupResource,
    namespace: &'a str,
    name: &'a str,
) -> Request<'a> {
    Request { operation, resource, namespace, name }
}

#[test]
fn creates_in_missing_and_terminating_namespaces_are_refused() {
    use Operation::{Create, Delete, Update};
    use State::{Active, Missing, Terminating};
    const MISSING: (Reason, &str) = (Reason::NotFound, "namespaces \"n\" not found");
    const TERMINATING: (Reason, &str) = (
        Reason::Forbidden,
        "pods \"p\" is forbidden: unable to create new content in namespace n because it is being \
         terminated",
    );
    const IMMORTAL: &str = "this namespace may not be deleted";
    for (operation, resource, namespace, name, state, expected) in [
        (Create, "pods", "n", "p", Active, None),
        (Create, "pods", "n", "p", Missing, Some(MISSING)),
        (Create, "pods", "n", "p", Terminating, Some(TERMINATING)),
        (Update, "pods", "n", "p", Missing, None),
        (Update, "pods", "n", "p", Terminating, None),
        (Delete, "pods", "n", "p", Terminating, None),
        (Create, "nodes", "", "n", Missing, None),
        (Create, "namespaces", "", "n", Missing, None),
        (Delete, "namespaces", "", "n", Active, None),
        (Delete, "namespaces", "", "kube-node-lease", Active, None),
        (Update, "namespaces", "", "default", Active, None),
        (Create, "localsubjectaccessreviews", "n", "", Missing, None),
    ] {
        let group = if resource.ends_with("reviews") { "authorization.k8s.io" } else { "" };
        let resource = GroupResource::new(group, resource);
        let answer = decide(&request(operation, &resource, namespace, name), |_| Ok(state));
        let refusal = answer.err().map(|status| (status.reason, status.message));
        let expected = expected.map(|(reason, message)| (Some(reason), message.to_owned()));
        assert_eq!(refusal, expected, "{operation:?} {resource} {namespace} {name} {state:?}");
    }
    for name in ["default", "kube-system", "kube-public"] {
        let namespaces = GroupResource::new("", "namespaces");
        let answer = decide(&request(Delete, &namespaces, "", name), |_| Ok(Active));
        let message = format!("namespaces {name:?} is forbidden: {IMMORTAL}");
        assert_eq!(answer.err().map(|status| status.message), Some(message));
    }
}

#[test]
fn the_refusal_names_the_terminating_namespace_as_its_cause() {
    let pods = GroupResource::new("", "pods");
    let answer = decide(&request(Operation::Create, &pods, "n", ""), |_| Ok(State::Terminating))
        .unwrap_err();
    assert!(answer.message.starts_with("pods \"Unknown\" is forbidden: "), "{}", answer.message);
    let causes = answer.details.expect("details").causes;
    assert_eq!(causes.len(), 1);
    assert_eq!(causes[0].reason, "NamespaceTerminating");
    assert_eq!(causes[0].message, "namespace n is being terminated");
    assert_eq!(causes[0].field, "metadata.namespace");
}
