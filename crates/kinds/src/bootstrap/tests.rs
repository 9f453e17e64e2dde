use std::collections::BTreeSet;
use std::net::IpAddr;

use pintle_value::{Value, json};

use super::{BootstrapObject, Reconcile, Settings, Step, objects};
use crate::RuntimeConfig;

fn tree(text: &str) -> Value {
    json::parse(text.as_bytes()).expect("JSON")
}

fn made(flag: &str) -> Vec<BootstrapObject> {
    with(&RuntimeConfig::parse([flag]).expect("a flag"))
}

fn with(config: &RuntimeConfig) -> Vec<BootstrapObject> {
    objects(&Settings {
        config,
        service_ranges: &["10.96.0.0/12"],
        advertise_address: Some(IpAddr::from([192, 0, 2, 7])),
        secure_port: 6443,
        client_ca: Some("PEM"),
        request_header: None,
    })
}

fn find<'a>(all: &'a [BootstrapObject], resource: &str, name: &str) -> &'a BootstrapObject {
    let is = |made: &&BootstrapObject| {
        made.resource.resource == resource
            && made.object.str_at(&["metadata", "name"]) == Some(name)
    };
    all.iter().find(is).unwrap_or_else(|| panic!("no {resource} {name}"))
}

/// BOOT-01
#[test]
fn bootstrap_objects_equal_upstreams() {
    let all = made("");
    let counts = |resource: &str| all.iter().filter(|m| m.resource.resource == resource).count();
    for (resource, count) in [
        ("namespaces", 4),
        ("priorityclasses", 2),
        ("clusterroles", 31 + 38),
        ("clusterrolebindings", 12 + 38),
        ("roles", 7),
        ("rolebindings", 7),
        ("prioritylevelconfigurations", 8),
        ("flowschemas", 11),
        ("apiservices", 21),
        ("servicecidrs", 1),
        ("services", 1),
        ("endpoints", 1),
        ("endpointslices", 1),
        ("configmaps", 1),
    ] {
        assert_eq!(counts(resource), count, "{resource}");
    }
    let first: Vec<_> = all.iter().take(4).map(|m| m.resource.resource.as_str()).collect();
    assert_eq!(first, ["namespaces"; 4], "namespaces come before what is in them");
}

/// Compares the objects with the extracted facts, if these are present.
#[test]
fn the_objects_agree_with_the_facts() {
    let file =
        format!("{}/../../../shared/reference/v1.36/bootstrap.json", env!("CARGO_MANIFEST_DIR"));
    let Ok(bytes) = std::fs::read(file) else { return };
    let facts = json::parse(&bytes).expect("the facts are JSON");
    let all = made("");
    let mut expected = Vec::new();
    let mut take = |path: &[&str]| {
        let list = facts.at(path).and_then(Value::as_array).expect("a list");
        expected.extend(list.iter().cloned());
    };
    for list in [
        "clusterRoles",
        "controllerClusterRoles",
        "clusterRoleBindings",
        "controllerClusterRoleBindings",
        "roles",
        "roleBindings",
    ] {
        take(&["rbac", list]);
    }
    for kind in ["priorityLevelConfigurations", "flowSchemas"] {
        take(&["flowControl", kind, "mandatory"]);
        take(&["flowControl", kind, "suggested"]);
    }
    take(&["apiServices", "objects"]);
    let ours: BTreeSet<String> = all.iter().map(|made| json::to_string(&made.object)).collect();
    for mut object in expected {
        // The engine sets these members, or they are empty.
        let members = object.make_object();
        members.remove("status");
        members.retain(|_, value| !value.is_null());
        // The facts are older than v1.36.3 here.
        if object.str_at(&["metadata", "name"]) == Some("v1.resource.k8s.io") {
            object.object_entry("spec").insert("versionPriority", 21);
        }
        assert!(ours.contains(&json::to_string(&object)), "{}", json::to_string(&object));
    }
}

/// An enabled feature adds its roles and rules (upstream: `bootstrappolicy`).
#[test]
fn features_add_roles_and_rules() {
    let config = RuntimeConfig::everything();
    let all = with(&config);
    let without = made("api/all=true");
    let count = |all: &[BootstrapObject], resource: &str| {
        all.iter().filter(|made| made.resource.resource == resource).count()
    };
    assert_eq!(count(&all, "clusterroles"), count(&without, "clusterroles") + 5);
    assert_eq!(count(&all, "clusterrolebindings"), count(&without, "clusterrolebindings") + 5);
    let rules = |all: &[BootstrapObject], role: &str| {
        find(all, "clusterroles", role).object.get("rules").cloned().unwrap_or_default()
    };
    for (role, more) in
        [("system:node", 2), ("system:kube-scheduler", 2), ("system:aggregate-to-view", 1)]
    {
        let (with, before) = (rules(&all, role), rules(&without, role));
        let length = |rules: &Value| rules.as_array().map_or(0, <[Value]>::len);
        assert_eq!(length(&with), length(&before) + more, "{role}");
        assert!(!json::to_string(&with).contains("feature"), "{role}");
    }
}

#[test]
fn the_service_has_endpoints_of_the_server() {
    let all = made("");
    let service = find(&all, "services", "kubernetes");
    assert_eq!(service.object.str_at(&["spec", "clusterIP"]), Some("10.96.0.1"));
    let slice = find(&all, "endpointslices", "kubernetes");
    let expected = tree(r#"[{"addresses":["192.0.2.7"],"conditions":{"ready":true}}]"#);
    assert_eq!(slice.object.get("endpoints"), Some(&expected));
    for (range, expected) in [
        ("10.0.0.0/24", Some("10.0.0.1")),
        ("10.1.2.3/8", Some("10.0.0.1")),
        ("2001:db8::/64", Some("2001:db8::1")),
        ("0.0.0.0/0", Some("0.0.0.1")),
        ("255.255.255.255/32", None),
        ("10.0.0.0/33", None),
        ("10.0.0.0", None),
        ("x/8", None),
    ] {
        let first = super::cluster::first_address(range).map(|address| address.to_string());
        assert_eq!(first.as_deref(), expected, "{range}");
    }
}

#[test]
fn objects_of_resources_that_are_not_served_are_not_created() {
    let all = made("rbac.authorization.k8s.io/v1=false,resource.k8s.io/v1beta2=true");
    assert!(all.iter().all(|made| made.resource.group != "rbac.authorization.k8s.io"));
    let names: Vec<_> =
        all.iter().filter_map(|made| made.object.str_at(&["metadata", "name"])).collect();
    assert!(!names.contains(&"v1.rbac.authorization.k8s.io"));
    assert!(names.contains(&"v1beta2.resource.k8s.io"));
}

fn object(reconcile: Reconcile, text: &str) -> BootstrapObject {
    BootstrapObject::new(["", "v1", "things"], tree(text), reconcile)
}

#[test]
fn existing_objects_are_reconciled_by_kind() {
    const ROLE: &str = r#"{"metadata":{"labels":{"l":"1"}},"rules":[{"verbs":["get"]}]}"#;
    const LEVEL: &str = r#"{"metadata":{"annotations":{"apf.kubernetes.io/autoupdate-spec":"true"}},
        "spec":{"type":"Limited"}}"#;
    let nothing = Step::Nothing;
    let update = |text: &str| Step::Update(tree(text));
    for (reconcile, wanted, stored, expected) in [
        (Reconcile::CreateOnly, r#"{"a":1}"#, "{}", nothing.clone()),
        // Missing rules are added to roles; rules that users added stay.
        (
            Reconcile::AtLeast,
            ROLE,
            r#"{"rules":[{"verbs":["put"]}]}"#,
            update(
                r#"{"metadata":{"labels":{"l":"1"}},
                    "rules":[{"verbs":["put"]},{"verbs":["get"]}]}"#,
            ),
        ),
        (
            Reconcile::AtLeast,
            ROLE,
            r#"{"metadata":{"labels":{"l":"1"}},"rules":[{"verbs":["get"]},{"verbs":["put"]}]}"#,
            nothing.clone(),
        ),
        (
            Reconcile::AtLeast,
            ROLE,
            r#"{"metadata":{"annotations":{"rbac.authorization.kubernetes.io/autoupdate":"false"}}}"#,
            nothing.clone(),
        ),
        (
            Reconcile::AtLeast,
            r#"{"roleRef":{"name":"a"}}"#,
            r#"{"roleRef":{"name":"b"}}"#,
            Step::Replace,
        ),
        // Mandatory objects are restored; defaulted members of the stored object are not a
        // difference.
        (
            Reconcile::Exactly,
            LEVEL,
            r#"{"metadata":{"annotations":{"apf.kubernetes.io/autoupdate-spec":"true"}},
                "spec":{"type":"Limited","limited":{"default":1}},"status":{}}"#,
            nothing.clone(),
        ),
        (
            Reconcile::Exactly,
            LEVEL,
            r#"{"metadata":{"annotations":{"apf.kubernetes.io/autoupdate-spec":"false"}},
                "spec":{"type":"Exempt"},"status":{"x":1}}"#,
            update(
                r#"{"metadata":{"annotations":{"apf.kubernetes.io/autoupdate-spec":"true"}},
                    "spec":{"type":"Limited"},"status":{"x":1}}"#,
            ),
        ),
        // Suggested objects are restored only while the server owns them.
        (
            Reconcile::WhileOurs,
            LEVEL,
            r#"{"metadata":{"annotations":{"apf.kubernetes.io/autoupdate-spec":"false"}},
                "spec":{"type":"Exempt"}}"#,
            nothing.clone(),
        ),
        (
            Reconcile::WhileOurs,
            LEVEL,
            r#"{"metadata":{"generation":2},"spec":{"type":"Exempt"}}"#,
            nothing.clone(),
        ),
        (
            Reconcile::WhileOurs,
            LEVEL,
            r#"{"metadata":{"generation":1},"spec":{"type":"Exempt"}}"#,
            update(
                r#"{"metadata":{"generation":1,
                    "annotations":{"apf.kubernetes.io/autoupdate-spec":"true"}},
                    "spec":{"type":"Limited"}}"#,
            ),
        ),
        (
            Reconcile::United,
            r#"{"data":{"a":"[1]","c":"[3]"}}"#,
            r#"{"data":{"a":"[0]","b":"2"}}"#,
            update(r#"{"data":{"a":"[0,1]","b":"2","c":"[3]"}}"#),
        ),
        (
            Reconcile::WithMembers(&["subsets"]),
            r#"{"subsets":[1],"other":1}"#,
            r#"{"subsets":[2],"other":2}"#,
            update(r#"{"subsets":[1],"other":2}"#),
        ),
        (
            Reconcile::WithMembers(&["endpoints"]),
            r#"{"addressType":"IPv6","endpoints":[1]}"#,
            r#"{"addressType":"IPv4","endpoints":[1]}"#,
            Step::Replace,
        ),
    ] {
        let made = object(reconcile, wanted);
        assert_eq!(made.step(Some(&tree(stored))), expected, "{reconcile:?} {wanted} {stored}");
        assert_eq!(made.step(None), Step::Create);
    }
}

/// Reconciling the objects with themselves changes nothing, so a restart commits nothing.
#[test]
fn a_restart_changes_nothing() {
    for made in made("api/all=true") {
        assert_eq!(made.step(Some(&made.object)), Step::Nothing, "{:?}", made.resource);
    }
}
