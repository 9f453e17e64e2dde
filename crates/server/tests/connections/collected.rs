//! Garbage collection and quotas over what an extension API server keeps (KCM-01).

use http::{Method, Request};
use http_body_util::Full;
use pintle_server::Running;
use serde_json::{Value, json};

use super::aggregation::{look_again, says, see, server};
use super::client::{PATIENCE, create, read, request, send};
use super::extension::Extension;
use super::parts::Parts;

const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";
const NOBODY: &str = r#"[{"apiVersion":"v1","kind":"ConfigMap","name":"nobody","uid":"nobody"}]"#;

fn owner(api_version: &str, kind: &str, name: &str, uid: &str) -> Value {
    json!([{"apiVersion": api_version, "kind": kind, "name": name, "uid": uid,
            "blockOwnerDeletion": true}])
}

/// Makes a ConfigMap; returns its uid.
async fn config_map(server: &Running, name: &str, owners: &Value, finalizers: &Value) -> String {
    let object = json!({"metadata": {
        "name": name, "ownerReferences": owners, "finalizers": finalizers}});
    create(server, CONFIG_MAPS, &object.to_string()).await;
    // One that nobody owns may be gone already.
    let made = get(server, name).await.unwrap_or_default();
    made["metadata"]["uid"].as_str().unwrap_or_default().to_owned()
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

/// Takes all finalizers of a ConfigMap away.
async fn release(server: &Running, name: &str) {
    let patch = Request::patch(format!("{CONFIG_MAPS}/{name}"))
        .header("content-type", "application/merge-patch+json")
        .body(Full::from(r#"{"metadata":{"finalizers":null}}"#))
        .unwrap();
    assert_eq!(send(server, patch).await.status(), 200);
}

async fn gone(server: &Running, name: &str) {
    see(server, &format!("{CONFIG_MAPS}/{name}"), "application/json", "NotFound").await;
}

/// Looks again and again at a part.
async fn until(parts: &Parts, name: &str, is_so: impl Fn(Option<Value>) -> bool) {
    let seen = async {
        while !is_so(parts.get(name)) {
            tokio::task::yield_now().await;
        }
    };
    let seen = tokio::time::timeout(PATIENCE, seen).await;
    assert!(seen.is_ok(), "{name} is still {:?}", parts.get(name));
}

#[tokio::test(flavor = "multi_thread")]
async fn parts_go_with_their_owners_here() {
    let extension = Extension::start().await;
    let (server, parts) = (server(&extension).await, extension.parts());
    let none = json!([]);

    let uid = config_map(&server, "goes", &none, &none).await;
    parts.make("background", &owner("v1", "ConfigMap", "goes", &uid), &none);
    let uid = config_map(&server, "leaves", &none, &none).await;
    parts.make("orphan", &owner("v1", "ConfigMap", "leaves", &uid), &none);
    let uid = config_map(&server, "waits", &none, &none).await;
    parts.make("foreground", &owner("v1", "ConfigMap", "waits", &uid), &json!(["a.io/hold"]));
    parts.make("of-none", &serde_json::from_str(NOBODY).unwrap(), &none);
    parts.make("free", &none, &none);
    until(&parts, "of-none", |part| part.is_none()).await;

    delete(&server, &format!("{CONFIG_MAPS}/goes"), "Background").await;
    until(&parts, "background", |part| part.is_none()).await;

    delete(&server, &format!("{CONFIG_MAPS}/leaves"), "Orphan").await;
    gone(&server, "leaves").await;
    assert_eq!(parts.get("orphan").unwrap()["metadata"]["ownerReferences"], none);

    delete(&server, &format!("{CONFIG_MAPS}/waits"), "Foreground").await;
    let is_leaving = |part: Option<Value>| {
        part.is_some_and(|part| part["metadata"].get("deletionTimestamp").is_some())
    };
    until(&parts, "foreground", is_leaving).await;
    assert!(get(&server, "waits").await.is_some(), "it waits for its dependent");
    let mut released = parts.get("foreground").unwrap();
    released["metadata"]["finalizers"] = none;
    parts.remove(released);
    gone(&server, "waits").await;
    assert!(parts.get("free").is_some());
}

#[tokio::test(flavor = "multi_thread")]
async fn objects_here_go_with_parts_that_own_them() {
    let extension = Extension::start().await;
    let (server, parts) = (server(&extension).await, extension.parts());
    let none = json!([]);
    let of = |name: &str, uid: &str| owner("a.io/v1", "Part", name, uid);
    let uid = parts.make("goes", &none, &none);
    config_map(&server, "background", &of("goes", &uid), &none).await;
    let uid = parts.make("leaves", &none, &none);
    config_map(&server, "orphan", &of("leaves", &uid), &none).await;
    let uid = parts.make("waits", &none, &none);
    config_map(&server, "foreground", &of("waits", &uid), &json!(["a.io/hold"])).await;
    config_map(&server, "of-another", &of("waits", "another"), &none).await;
    gone(&server, "of-another").await;

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
    gone(&server, "background").await;

    delete("leaves", "Orphan").await;
    until(&parts, "leaves", |part| part.is_none()).await;
    let orphan = get(&server, "orphan").await.unwrap();
    assert_eq!(orphan["metadata"].get("ownerReferences"), None);

    delete("waits", "Foreground").await;
    let terminating = "deletionTimestamp";
    see(&server, &format!("{CONFIG_MAPS}/foreground"), "application/json", terminating).await;
    assert!(parts.get("waits").is_some(), "it waits for its dependent");
    release(&server, "foreground").await;
    until(&parts, "waits", |part| part.is_none()).await;
    gone(&server, "foreground").await;
}

/// Who does not answer, or answers 404 to everything, says nothing of an owner.
#[tokio::test(flavor = "multi_thread")]
async fn nothing_goes_because_a_server_does_not_answer() {
    let extension = Extension::start().await;
    let (server, parts) = (server(&extension).await, extension.parts());
    says(&server, "Passed").await;
    let none = json!([]);
    let uid = parts.make("owner", &none, &none);
    let of = |name: &str, uid: &str| owner("a.io/v1", "Part", name, uid);
    config_map(&server, "before", &of("owner", &uid), &none).await;
    for (ill, name) in [("it answers 404", "during-404"), ("it answers 500", "during-500")] {
        extension.set_answer(if ill.ends_with("404") { 404 } else { 500 });
        look_again(&server, 16).await;
        config_map(&server, name, &of("owner", &uid), &none).await;
        config_map(&server, &format!("{name}-absent"), &of("absent", "absent"), &none).await;
        let last = format!("{name}-last");
        config_map(&server, &last, &serde_json::from_str(NOBODY).unwrap(), &none).await;
        gone(&server, &last).await; // made after them, and looked at after them
        for name in ["before", name, &format!("{name}-absent")] {
            assert!(get(&server, name).await.is_some(), "{name} is gone though {ill}");
        }
    }
    extension.set_answer(200);
    look_again(&server, 17).await;
    for name in ["during-404-absent", "during-500-absent"] {
        gone(&server, name).await;
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
    parts.make("first", &none, &none);
    let quota = json!({"metadata": {"name": "q"}, "spec": {"hard": {
        "count/parts.a.io": "5", "count/configmaps": "9"}}});
    create(&server, QUOTAS, &quota.to_string()).await;
    let counts = async |expected: usize| {
        let used = format!(r#""count/parts.a.io":"{expected}""#);
        see(&server, &format!("{QUOTAS}/q/status"), "application/json", &format!("{used}}}}}"))
            .await;
    };
    counts(1).await;
    parts.make("second", &none, &none);
    counts(2).await;
    parts.remove(parts.get("first").unwrap());
    counts(1).await;
    // What cannot be counted stays as it was counted last.
    extension.set_answer(500);
    look_again(&server, 16).await;
    says(&server, "FailedDiscoveryCheck").await;
    parts.make("third", &none, &none);
    config_map(&server, "one-more", &none, &none).await;
    counts(1).await;
    extension.set_answer(200);
    look_again(&server, 17).await;
    counts(2).await;
}
