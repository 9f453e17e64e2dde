use super::{Gvk, Resource, resources};
use pintle_registry::Verb;
use pintle_schema::builtin;

fn find(group: &str, version: &str, plural: &str) -> &'static Resource {
    resources()
        .iter()
        .find(|r| (r.group, r.version, r.plural) == (group, version, plural))
        .unwrap_or_else(|| panic!("no {group}/{version} {plural}"))
}

#[test]
fn the_table_is_sorted_and_its_types_exist() {
    let key = |r: &Resource| (r.group, r.version, r.plural);
    assert!(resources().is_sorted_by(|a, b| key(a) < key(b)));
    for r in resources() {
        assert!(builtin().find(r.type_name).is_some(), "{}", r.type_name);
        assert!(r.verbs.is_sorted(), "{}", r.plural);
        assert!(r.subresources.is_sorted_by(|a, b| a.name < b.name), "{}", r.plural);
        if r.verbs.contains(&Verb::List) {
            let list = format!("{}List", r.type_name);
            assert!(builtin().find(&list).is_some(), "{list}");
        }
    }
}

#[test]
fn a_resource_is_stored_in_one_form() {
    for r in resources() {
        for other in resources().iter().filter(|o| (o.group, o.plural) == (r.group, r.plural)) {
            assert_eq!(r.storage, other.storage, "{} {}", r.group, r.plural);
        }
        if let Some(stored) = r.storage {
            let named = |o: &&Resource| {
                (o.group, o.version, o.kind) == (stored.group, stored.version, stored.kind)
            };
            assert!(resources().iter().any(|o| named(&o)), "{} {stored:?}", r.plural);
        }
    }
}

#[test]
fn subresources_name_their_own_kinds() {
    let pods = find("", "v1", "pods");
    let names: Vec<&str> = pods.subresources.iter().map(|s| s.name).collect();
    assert_eq!(
        names,
        [
            "attach",
            "binding",
            "ephemeralcontainers",
            "eviction",
            "exec",
            "log",
            "portforward",
            "proxy",
            "resize",
            "status"
        ]
    );
    let kind = |r: &Resource, name: &str| {
        r.subresources.iter().find(|s| s.name == name).expect("the subresource").kind
    };
    let gvk = |group, version, kind| Gvk { group, version, kind };
    assert_eq!(kind(pods, "eviction"), gvk("policy", "v1", "Eviction"));
    assert_eq!(kind(pods, "log"), gvk("", "v1", "Pod"));
    assert_eq!(kind(find("apps", "v1", "deployments"), "scale"), gvk("autoscaling", "v1", "Scale"));
    let token = gvk("authentication.k8s.io", "v1", "TokenRequest");
    assert_eq!(kind(find("", "v1", "serviceaccounts"), "token"), token);
}

#[test]
fn only_stable_versions_are_on() {
    assert!(find("autoscaling", "v2", "horizontalpodautoscalers").on);
    assert!(find("autoscaling", "v1", "horizontalpodautoscalers").on);
    assert!(!find("coordination.k8s.io", "v1beta1", "leasecandidates").on);
    assert!(!find("internal.apiserver.k8s.io", "v1alpha1", "storageversions").on);
}

#[test]
fn events_of_both_groups_are_stored_as_core_events() {
    let core = Gvk { group: "", version: "v1", kind: "Event" };
    assert_eq!(find("", "v1", "events").storage, Some(core));
    assert_eq!(find("events.k8s.io", "v1", "events").storage, Some(core));
}
