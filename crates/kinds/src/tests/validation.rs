//! Validation errors in upstream's texts (DEF-03, VAL).

use pintle_meta::field;

use pintle_value::Value;

use super::{json, strategy};

fn errors(resource: &str, new: &str, old: Option<&str>) -> Vec<String> {
    let old = old.map(json);
    let errors = (strategy(resource).validate)(&json(new), old.as_ref());
    errors.iter().map(field::Error::to_string).collect()
}

fn check_update(resource: &str, new: &str, old: &str, expected: &[&str]) {
    assert_eq!(errors(resource, new, Some(old)), expected, "{resource} {old} -> {new}");
}

#[test]
fn lengths() {
    let large = format!(r#"{{"data":{{"a":"{}"}}}}"#, "x".repeat(1024 * 1024 + 1));
    for (resource, expected) in
        [("configmaps", "[]: Too long: may not be more than 1048576 bytes"), ("secrets", "")]
    {
        let found = errors(resource, &large, None);
        assert_eq!(
            found.concat(),
            expected,
            "{resource}: base64 is longer than what it stands for"
        );
    }
}

#[test]
fn immutable_fields_cannot_change() {
    for (resource, new, old, expected) in [
        (
            "scheduling.k8s.io/priorityclasses",
            r#"{"value":2}"#,
            r#"{"value":1}"#,
            &["value: Forbidden: may not be changed in an update."][..],
        ),
        (
            "apps/controllerrevisions",
            r#"{"data":{"a":1}}"#,
            r#"{"data":{"a":2}}"#,
            &["data: Invalid value: {\"a\":1}: field is immutable"],
        ),
    ] {
        check_update(resource, new, old, expected);
    }
}

/// DEF-05
#[test]
fn names() {
    for (resource, name, is_good) in [
        ("namespaces", "a.b", false),
        ("services", "1a", true),
        ("configmaps", "a.b", true),
        ("configmaps", "A", false),
        ("rbac.authorization.k8s.io/clusterroles", "system:node", true),
        ("rbac.authorization.k8s.io/clusterroles", "a/b", false),
        ("apps/statefulsets", "a.b", false),
        ("storage.k8s.io/csidrivers", "Driver.example.com", false),
        ("networking.k8s.io/ipaddresses", "192.0.2.1", true),
        ("networking.k8s.io/ipaddresses", "192.0.2.01", false),
        ("networking.k8s.io/ipaddresses", "2001:db8::1", true),
        ("networking.k8s.io/ipaddresses", "2001:DB8::1", false),
    ] {
        let wrong = strategy(resource).name.check(&Value::Null, None, name, false);
        assert_eq!(wrong.is_empty(), is_good, "{resource} {name}: {wrong:?}");
    }
}
