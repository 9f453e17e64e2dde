//! The bytes of objects: `stored.jsonl` has the bytes that kube-apiserver v1.36.3 stored in etcd
//! for an object of each kind and, where a client can get the object, its response;
//! `stored_as_json.jsonl` has the bytes that a kube-apiserver with
//! `--storage-media-type=application/json` stored.

use std::time::Duration;

use base64::{Engine, engine::general_purpose::STANDARD};
use pintle_kinds::RuntimeConfig;
use pintle_layout::{MediaType, Upstream};
use pintle_store::{Key, Kind, Layout, Revision};
use pintle_value::{Value, cbor, json};

struct Sample {
    path: String,
    revision: Revision,
    stored: Vec<u8>,
    shown: String,
}

fn samples() -> Vec<Sample> {
    read(include_str!("stored.jsonl"))
}

fn read(rows: &str) -> Vec<Sample> {
    let read = |line: &str| {
        let row = json::parse(line.as_bytes()).expect("a row");
        let text = |member: &str| row.str_at(&[member]).unwrap_or_default().to_owned();
        let stored = match row.get("message") {
            Some(_) => STANDARD.decode(text("message")).expect("base64"),
            None => text("json").into_bytes(),
        };
        let revision = row.get("revision").and_then(Value::as_int).expect("a revision");
        let revision = Revision(revision.cast_unsigned());
        Sample { path: text("path"), revision, stored, shown: text("shown") }
    };
    rows.lines().map(read).collect()
}

fn layout() -> Upstream {
    Upstream::new(&RuntimeConfig::default(), MediaType::Protobuf, Duration::from_secs(3600))
}

fn key(collection: &str, item: &str) -> Key {
    Key { collection: collection.into(), item: item.into() }
}

/// Checks that bytes decode to this object, which is given without its resource version.
#[track_caller]
fn check(collection: &str, stored: &[u8], expected: &str) {
    let decoded = layout().decode(&key(collection, "a"), stored, Revision(7));
    let decoded = decoded.expect("it can be read");
    let mut tree = json::parse(&decoded).expect("JSON");
    let metadata = tree.object_entry("metadata");
    assert_eq!(metadata.remove("resourceVersion"), Some(Value::from("7")));
    assert_eq!(tree, json::parse(expected.as_bytes()).expect("JSON"), "{collection}");
}

/// Checks that decoding fails with this error, which names the key.
#[track_caller]
fn check_refused(collection: &str, stored: &[u8], why: &str) {
    let mismatch = layout().decode(&key(collection, "a"), stored, Revision(7));
    let mismatch = mismatch.expect_err("it cannot be read");
    assert_eq!(mismatch.key, key(collection, "a"));
    assert!(mismatch.why.contains(why), "{}", mismatch.why);
}

#[test]
fn every_sample_round_trips_as_upstream() {
    let layout = layout();
    for Sample { path, revision, stored, shown } in samples() {
        let key = layout.key(&path).expect("a key");
        let value = layout.decode(&key, &stored, revision).expect("it can be read");
        if !shown.is_empty() {
            assert_eq!(String::from_utf8_lossy(&value), shown, "{path}");
        }
        assert!(layout.is_current(&key, &stored), "{path}");
        let again = layout.encode(&key, &value, Kind::Created).expect("it can be written");
        assert_eq!(STANDARD.encode(&again), STANDARD.encode(&stored), "{path}");
    }
}

#[test]
fn json_storage_matches_upstream() {
    let layout =
        Upstream::new(&RuntimeConfig::default(), MediaType::Json, Duration::from_secs(3600));
    for Sample { path, revision, stored, .. } in read(include_str!("stored_as_json.jsonl")) {
        let key = layout.key(&path).expect("a key");
        let value = layout.decode(&key, &stored, revision).expect("it can be read");
        let again = layout.encode(&key, &value, Kind::Created).expect("it can be written");
        assert_eq!(String::from_utf8_lossy(&again), String::from_utf8_lossy(&stored), "{path}");
        assert!(layout.is_current(&key, &stored), "{path}");
    }
}

#[test]
fn every_kind_has_a_sample() {
    let layout = layout();
    let keys: Vec<Key> = samples().iter().filter_map(|s| layout.key(&s.path)).collect();
    for definition in pintle_kinds::stored(&RuntimeConfig::default()) {
        let storage = definition.storage.expect("it is stored");
        let has_sample = keys.iter().any(|key| key.collection == storage.collection);
        assert!(has_sample, "{}", storage.collection);
    }
}

#[test]
fn damaged_bytes_do_not_panic() {
    let layout = layout();
    for Sample { path, stored, .. } in samples() {
        let key = layout.key(&path).expect("a key");
        for at in 0..stored.len() {
            // The result is irrelevant, as long as decoding terminates.
            let _ = layout.decode(&key, &stored[..at], Revision(7));
            let mut broken = stored.clone();
            broken[at] ^= 0xff;
            let _ = layout.decode(&key, &broken, Revision(7));
        }
    }
}

#[test]
fn other_versions_and_encodings_are_readable() {
    let map = r#"{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"a"},"data":{"x":"y"}}"#;
    check("configmaps", format!(" {map} ").as_bytes(), map);
    let mut encoded = Vec::new();
    cbor::write(&json::parse(map.as_bytes()).expect("JSON"), &mut encoded);
    check("configmaps", &encoded, map);
    check(
        "events",
        br#"{"apiVersion":"events.k8s.io/v1","kind":"Event","metadata":{"name":"a"},"note":"n"}"#,
        r#"{"apiVersion":"v1","kind":"Event","metadata":{"name":"a"},"message":"n",
            "involvedObject":{},"source":{},"firstTimestamp":null,"lastTimestamp":null,
            "eventTime":null,"reportingComponent":"","reportingInstance":""}"#,
    );
    check(
        "example.com/things",
        br#"{"spec":{"b":1.0,"a":"<"},"metadata":{"resourceVersion":"9","selfLink":"/x"},"kind":"T"}"#,
        r#"{"kind":"T","metadata":{},"spec":{"a":"<","b":1}}"#,
    );
}

/// The expected objects are responses of a kube-apiserver v1.36.3 with the same bytes in etcd.
#[test]
fn removed_versions_are_decoded() {
    check(
        "networking.k8s.io/ingresses",
        br#"{"apiVersion":"extensions/v1beta1","kind":"Ingress","metadata":{"name":"a"},"spec":{
            "backend":{"serviceName":"s","servicePort":80},"rules":[{"host":"a.b","http":{"paths":[
            {"path":"/x","backend":{"serviceName":"t","servicePort":"web"}}]}}]}}"#,
        r#"{"apiVersion":"networking.k8s.io/v1","kind":"Ingress","metadata":{"name":"a"},"spec":{
            "defaultBackend":{"service":{"name":"s","port":{"number":80}}},"rules":[{"host":"a.b",
            "http":{"paths":[{"path":"/x","pathType":"ImplementationSpecific","backend":{"service":
            {"name":"t","port":{"name":"web"}}}}]}}]},"status":{"loadBalancer":{}}}"#,
    );
    check(
        "scheduling.k8s.io/priorityclasses",
        b"k8s\0\x0a\x2a\x0a\x19scheduling.k8s.io/v1beta1\x12\x0dPriorityClass\x12\x19\x0a\x11\x0a\x03pc1\
          \x12\0\x1a\0\"\0*\x002\08\0\x10\x05\x18\0\"\0\x1a\0\"\0",
        r#"{"apiVersion":"scheduling.k8s.io/v1","kind":"PriorityClass","metadata":{"name":"pc1"},
            "value":5,"preemptionPolicy":"PreemptLowerPriority"}"#,
    );
}

/// Values that storage migration rewrites.
#[test]
fn other_versions_and_encodings_are_not_current() {
    let mut encoded = Vec::new();
    cbor::write(&json::parse(b"{}").expect("JSON"), &mut encoded);
    let (definition, custom) = ("apiextensions.k8s.io/customresourcedefinitions", "example.com/as");
    let rows: [(&str, &[u8], bool); 10] = [
        (
            "networking.k8s.io/ingresses",
            b"k8s\0\x0a\x18\x0a\x12extensions/v1beta1\x12\x02In",
            false,
        ),
        ("configmaps", br#"{"kind":"ConfigMap","apiVersion":"v1"}"#, false),
        ("configmaps", &encoded, false),
        ("events", b"k8s\0\x0a\x16\x0a\x10events.k8s.io/v1\x12\x02Ev", false),
        ("events", b"k8s\0\x0a\x08\x0a\x02v1\x12\x02Ev", true),
        (definition, br#"{"apiVersion":"apiextensions.k8s.io/v1beta1"}"#, true),
        (definition, br#"{"apiVersion":"apiextensions.k8s.io/v1"}"#, false),
        (custom, br#"{"apiVersion":"example.com/v1"}"#, true),
        (custom, &encoded, false),
        ("unheard-of", b"x", true),
    ];
    for (collection, stored, expected) in rows {
        let is_current = layout().is_current(&key(collection, "a"), stored);
        assert_eq!(is_current, expected, "{collection} {}", String::from_utf8_lossy(stored));
    }
}

/// Values that kube-apiserver v1.21.14 stored in versions since removed, with the responses of
/// v1.36.3 on the same database, in current versions.
#[test]
fn values_of_an_old_server_are_decoded() {
    let layout = layout();
    let rows = read(include_str!("stored_by_v1.21.jsonl"));
    assert_eq!(rows.len(), 6);
    for Sample { path, revision, stored, shown } in rows {
        let key = layout.key(&path).expect("a key");
        assert!(!layout.is_current(&key, &stored), "{path}");
        let value = layout.decode(&key, &stored, revision).expect("it can be read");
        let tree = |text: &[u8]| json::parse(text).expect("JSON");
        assert_eq!(tree(&value), tree(shown.as_bytes()), "{path}");
    }
}

/// Versions that v1.36's own scheme cannot decode.
#[test]
fn versions_that_upstream_no_longer_decodes_are_decoded() {
    let v2 = r#"{"kind":"HorizontalPodAutoscaler","apiVersion":"autoscaling/v2","metadata":{"name":"a"},
        "spec":{"scaleTargetRef":{"kind":"Deployment","name":"d"},"minReplicas":1,"maxReplicas":3,
            "metrics":[{"type":"Pods","pods":{"metric":{"name":"m"},
                "target":{"type":"AverageValue","averageValue":"1"}}}]},
        "status":{"desiredReplicas":0,"currentMetrics":null}}"#;
    check(
        "autoscaling/horizontalpodautoscalers",
        br#"{"kind":"HorizontalPodAutoscaler","apiVersion":"autoscaling/v2beta1","metadata":{"name":
            "a"},"spec":{"scaleTargetRef":{"kind":"Deployment","name":"d"},"maxReplicas":3,
            "metrics":[{"type":"Pods","pods":{"metricName":"m","targetAverageValue":"1"}}]}}"#,
        v2,
    );
    check(
        "autoscaling/horizontalpodautoscalers",
        br#"{"kind":"HorizontalPodAutoscaler","apiVersion":"autoscaling/v2beta2","metadata":{"name":
            "a"},"spec":{"scaleTargetRef":{"kind":"Deployment","name":"d"},"maxReplicas":3,
            "metrics":[{"type":"Pods","pods":{"metric":{"name":"m"},
                "target":{"type":"AverageValue","averageValue":"1"}}}]}}"#,
        v2,
    );
}

/// PodSecurityPolicies have a key only if `--runtime-config` enables them.
#[test]
fn enabled_pod_security_policies_are_decoded() {
    let path = "podsecuritypolicy/a";
    assert_eq!(layout().key(path), None);
    let config = RuntimeConfig::parse(["policy/v1beta1=true"]).expect("a configuration");
    let layout = Upstream::new(&config, MediaType::Protobuf, Duration::from_secs(3600));
    let key = layout.key(path).expect("a key");
    assert_eq!(layout.path(&key), path);
    let stored =
        b"k8s\0\x0a\x23\x0a\x0epolicy/v1beta1\x12\x11PodSecurityPolicy\x12\x05\x0a\x03\x0a\x01a";
    let value = layout.decode(&key, stored, Revision(7)).expect("it can be read");
    let tree = json::parse(&value).expect("JSON");
    let escalates = tree.at(&["spec", "allowPrivilegeEscalation"]);
    assert_eq!(escalates, Some(&Value::Bool(true)));
}

#[test]
fn a_v1beta1_definition_is_converted_to_v1() {
    check(
        "apiextensions.k8s.io/customresourcedefinitions",
        br#"{"apiVersion":"apiextensions.k8s.io/v1beta1","kind":"CustomResourceDefinition",
            "metadata":{"name":"a"},"spec":{"group":"g.io","version":"v1","names":{"plural":"as",
            "kind":"A"},"subresources":{"status":{}},"validation":{"openAPIV3Schema":{"type":
            "object"}},"additionalPrinterColumns":[{"name":"N","type":"string","JSONPath":".n"}],
            "conversion":{"strategy":"Webhook","webhookClientConfig":{"url":"https://a"}}}}"#,
        r#"{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition",
            "metadata":{"name":"a"},"spec":{"group":"g.io","scope":"Namespaced",
            "names":{"plural":"as","singular":"a","kind":"A","listKind":"AList"},
            "preserveUnknownFields":true,
            "versions":[{"name":"v1","served":true,"storage":true,"subresources":{"status":{}},
                "schema":{"openAPIV3Schema":{"type":"object"}},
                "additionalPrinterColumns":[{"name":"N","type":"string","jsonPath":".n"}]}],
            "conversion":{"strategy":"Webhook","webhook":{"clientConfig":{"url":"https://a"},
                "conversionReviewVersions":["v1beta1"]}}},
            "status":{"conditions":null,"acceptedNames":{"plural":"","kind":""},
                "storedVersions":["v1"]}}"#,
    );
}

#[test]
fn unreadable_bytes_are_errors() {
    let deep = [&b"{\"metadata\":"[..], &[b'['; 100_000]].concat();
    check_refused("configmaps", &deep, "exceeded max depth");
    check_refused("example.com/things", &deep, "exceeded max depth");
    check_refused("configmaps", b"k8s:enc:aescbc:v1:key1:xyz", "encrypted");
    check_refused("configmaps", b"", "unexpected end");
    check_refused("configmaps", b"k8s\0\xff", "");
    check_refused(
        "configmaps",
        br#"{"kind":"Secret","apiVersion":"v1"}"#,
        "v1 Secret is not known",
    );
    check_refused("example.com/things", b"[]", "not an object");
    check_refused("example.com/things", b"{}", "no metadata");
}
