//! Garbage collection and quotas for objects of an extension API server (KCM-01).

use http::{Method, Request};
use http_body_util::Full;
use pintle_server::Running;
use serde_json::{Value, json};

use super::aggregation::{check_again, see, server, wait_for_reason};
use super::client::{TIMEOUT, create, read, request, send};
use super::extension::Extension;
use super::parts::Parts;

const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";
const ABSENT_OWNER: &str =
    r#"[{"apiVersion":"v1","kind":"ConfigMap","name":"nobody","uid":"nobody"}]"#;

fn owner(api_version: &str, kind: &str, name: &str, uid: &str) -> Value {
    json!([{"apiVersion": api_version, "kind": kind, "name": name, "uid": uid,
            "blockOwnerDeletion": true}])
}

/// Creates a ConfigMap; returns its uid.
async fn config_map(server: &Running, name: &str, owners: &Value, finalizers: &Value) -> String {
    let object = json!({"metadata": {
        "name": name, "ownerReferences": owners, "finalizers": finalizers}});
    create(server, CONFIG_MAPS, &object.to_string()).await;
    // The garbage collector may have deleted the ConfigMap already, if its owners do not exist.
    let created = get(server, name).await.unwrap_or_default();
    created["metadata"]["uid"].as_str().unwrap_or_default().to_owned()
}

async fn get(server: &Running, name: &str) -> Option<Value> {
    let asked = request(Method::GET, &format!("{CONFIG_MAPS}/{name}"));
    let (code, text) = read(send(server, asked).await).await;
    (code == 200).then(|| serde_json::from_str(&text).unwrap())
}

async fn delete(server: &Running, path: &str, propagation: &str) {
    let options = json!({"propagationPolicy": propagation}).to_string();
    let asked = Request::delete(path).body(Full::from(options)).unwrap();
    assert_eq!(send(server, asked).await.status(), 200);
}

/// Removes all finalizers of a ConfigMap.
async fn release(server: &Running, name: &str) {
    let patch = Request::patch(format!("{CONFIG_MAPS}/{name}"))
        .header("content-type", "application/merge-patch+json")
        .body(Full::from(r#"{"metadata":{"finalizers":null}}"#))
        .unwrap();
    assert_eq!(send(server, patch).await.status(), 200);
}

/// Waits until a ConfigMap does not exist.
async fn wait_until_gone(server: &Running, name: &str) {
    see(server, &format!("{CONFIG_MAPS}/{name}"), "application/json", "NotFound").await;
}

/// Waits until a part satisfies a condition.
async fn until(parts: &Parts, name: &str, condition: impl Fn(Option<Value>) -> bool) {
    let seen = async {
        while !condition(parts.get(name)) {
            tokio::task::yield_now().await;
        }
    };
    let seen = tokio::time::timeout(TIMEOUT, seen).await;
    assert!(seen.is_ok(), "{name} is still {:?}", parts.get(name));
}

#[tokio::test(flavor = "multi_thread")]
async fn objects_of_an_extension_are_collected_with_owners_in_this_server() {
    let extension = Extension::start().await;
    let (server, parts) = (server(&extension).await, extension.parts());
    let none = json!([]);

    let uid = config_map(&server, "goes", &none, &none).await;
    parts.create("background", &owner("v1", "ConfigMap", "goes", &uid), &none);
    let uid = config_map(&server, "leaves", &none, &none).await;
    parts.create("orphan", &owner("v1", "ConfigMap", "leaves", &uid), &none);
    let uid = config_map(&server, "waits", &none, &none).await;
    parts.create("foreground", &owner("v1", "ConfigMap", "waits", &uid), &json!(["a.io/hold"]));
    parts.create("of-none", &serde_json::from_str(ABSENT_OWNER).unwrap(), &none);
    parts.create("free", &none, &none);
    until(&parts, "of-none", |part| part.is_none()).await;

    delete(&server, &format!("{CONFIG_MAPS}/goes"), "Background").await;
    until(&parts, "background", |part| part.is_none()).await;

    delete(&server, &format!("{CONFIG_MAPS}/leaves"), "Orphan").await;
    wait_until_gone(&server, "leaves").await;
    assert_eq!(parts.get("orphan").unwrap()["metadata"]["ownerReferences"], none);

    delete(&server, &format!("{CONFIG_MAPS}/waits"), "Foreground").await;
    let is_terminating = |part: Option<Value>| {
        part.is_some_and(|part| part["metadata"].get("deletionTimestamp").is_some())
    };
    until(&parts, "foreground", is_terminating).await;
    assert!(get(&server, "waits").await.is_some(), "a foreground deletion waits for dependents");
    let mut released = parts.get("foreground").unwrap();
    released["metadata"]["finalizers"] = none;
    parts.remove(released);
    wait_until_gone(&server, "waits").await;
    assert!(parts.get("free").is_some());
}

#[tokio::test(flavor = "multi_thread")]
async fn objects_of_this_server_are_collected_with_owners_in_an_extension() {
    let extension = Extension::start().await;
    let (server, parts) = (server(&extension).await, extension.parts());
    let none = json!([]);
    let of = |name: &str, uid: &str| owner("a.io/v1", "Part", name, uid);
    let uid = parts.create("goes", &none, &none);
    config_map(&server, "background", &of("goes", &uid), &none).await;
    let uid = parts.create("leaves", &none, &none);
    config_map(&server, "orphan", &of("leaves", &uid), &none).await;
    let uid = parts.create("waits", &none, &none);
    config_map(&server, "foreground", &of("waits", &uid), &json!(["a.io/hold"])).await;
    config_map(&server, "of-another", &of("waits", "another"), &none).await;
    wait_until_gone(&server, "of-another").await;

    const PARTS: &str = "/apis/a.io/v1/namespaces/default/parts";
    let delete = async |name: &str, propagation: &str| {
        let metadata = parts.get(name).unwrap()["metadata"].clone();
        let options = json!({"propagationPolicy": propagation, "preconditions": {
            "uid": metadata["uid"], "resourceVersion": metadata["resourceVersion"]}});
        let asked = Request::delete(format!("{PARTS}/{name}"));
        let asked = asked.body(Full::from(options.to_string())).unwrap();
        assert_eq!(send(&server, asked).await.status(), 200);
    };
    delete("goes", "Background").await;
    wait_until_gone(&server, "background").await;

    delete("leaves", "Orphan").await;
    until(&parts, "leaves", |part| part.is_none()).await;
    let orphan = get(&server, "orphan").await.unwrap();
    assert_eq!(orphan["metadata"].get("ownerReferences"), None);

    delete("waits", "Foreground").await;
    let terminating = "deletionTimestamp";
    see(&server, &format!("{CONFIG_MAPS}/foreground"), "application/json", terminating).await;
    assert!(parts.get("waits").is_some(), "a foreground deletion waits for dependents");
    release(&server, "foreground").await;
    until(&parts, "waits", |part| part.is_none()).await;
    wait_until_gone(&server, "foreground").await;
}

/// Errors, or 404 for everything, do not prove that an owner is absent.
#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_collected_while_the_owners_server_fails() {
    let extension = Extension::start().await;
    let (server, parts) = (server(&extension).await, extension.parts());
    wait_for_reason(&server, "Passed").await;
    let none = json!([]);
    let uid = parts.create("owner", &none, &none);
    let of = |name: &str, uid: &str| owner("a.io/v1", "Part", name, uid);
    config_map(&server, "before", &of("owner", &uid), &none).await;
    for (code, name) in [(404, "during-404"), (500, "during-500")] {
        extension.set_answer(code);
        check_again(&server, 16).await;
        config_map(&server, name, &of("owner", &uid), &none).await;
        config_map(&server, &format!("{name}-absent"), &of("absent", "absent"), &none).await;
        let last = format!("{name}-last");
        config_map(&server, &last, &serde_json::from_str(ABSENT_OWNER).unwrap(), &none).await;
        wait_until_gone(&server, &last).await; // it was created after them, so the collector has handled them
        for name in ["before", name, &format!("{name}-absent")] {
            assert!(
                get(&server, name).await.is_some(),
                "{name} is gone though the extension responds {code}"
            );
        }
    }
    extension.set_answer(200);
    check_again(&server, 17).await;
    for name in ["during-404-absent", "during-500-absent"] {
        wait_until_gone(&server, name).await;
    }
    for name in ["before", "during-404", "during-500"] {
        assert!(get(&server, name).await.is_some(), "{name} has an owner");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn quotas_count_parts() {
    const QUOTAS: &str = "/api/v1/namespaces/default/resourcequotas";
    let extension = Extension::start().await;
    let (server, parts) = (server(&extension).await, extension.parts());
    let none = json!([]);
    parts.create("first", &none, &none);
    let quota = json!({"metadata": {"name": "q"}, "spec": {"hard": {
        "count/parts.a.io": "5", "count/configmaps": "9"}}});
    create(&server, QUOTAS, &quota.to_string()).await;
    let counts = async |expected: usize| {
        let used = format!(r#""count/parts.a.io":"{expected}""#);
        see(&server, &format!("{QUOTAS}/q/status"), "application/json", &format!("{used}}}}}"))
            .await;
    };
    counts(1).await;
    parts.create("second", &none, &none);
    counts(2).await;
    parts.remove(parts.get("first").unwrap());
    counts(1).await;
    // While the extension fails, the last count stays.
    extension.set_answer(500);
    check_again(&server, 16).await;
    wait_for_reason(&server, "FailedDiscoveryCheck").await;
    parts.create("third", &none, &none);
    config_map(&server, "one-more", &none, &none).await;
    counts(1).await;
    extension.set_answer(200);
    check_again(&server, 17).await;
    counts(2).await;
}
