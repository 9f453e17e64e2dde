use pintle_value::{Value, json};

use super::{Limit, aggregate, check_claim, check_pod, set_defaults};

fn tree(text: &str) -> Value {
    json::parse(text.as_bytes()).expect(text)
}

fn range(limits: &str) -> Vec<Limit> {
    Limit::all(&tree(&format!(r#"{{"spec":{{"limits":[{limits}]}}}}"#)))
}

fn pod(containers: &[&str]) -> Value {
    let containers: Vec<String> = containers
        .iter()
        .enumerate()
        .map(|(i, resources)| format!(r#"{{"name":"c{i}","resources":{resources}}}"#))
        .collect();
    tree(&format!(r#"{{"spec":{{"containers":[{}]}}}}"#, containers.join(",")))
}

#[test]
fn pods_outside_their_limits_are_refused() {
    for (limits, containers, expected) in [
        (r#"{"type":"Container","max":{"cpu":"1"}}"#, &[r#"{"limits":{"cpu":"1"}}"#][..], ""),
        (
            r#"{"type":"Container","max":{"cpu":"1"}}"#,
            &[r#"{"limits":{"cpu":"2"}}"#],
            "maximum cpu usage per Container is 1, but limit is 2",
        ),
        (
            r#"{"type":"Container","max":{"cpu":"1"}}"#,
            &["{}"],
            "maximum cpu usage per Container is 1.  No limit is specified",
        ),
        (
            r#"{"type":"Container","max":{"cpu":"100m"}}"#,
            &[r#"{"limits":{"cpu":"50m"},"requests":{"cpu":"200m"}}"#],
            "maximum cpu usage per Container is 100m, but request is 200m",
        ),
        (
            r#"{"type":"Container","min":{"memory":"1Gi"}}"#,
            &["{}"],
            "minimum memory usage per Container is 1Gi.  No request is specified",
        ),
        (
            r#"{"type":"Container","min":{"memory":"1Gi"}}"#,
            &[r#"{"requests":{"memory":"100Mi"}}"#],
            "minimum memory usage per Container is 1Gi, but request is 100Mi",
        ),
        (
            r#"{"type":"Container","min":{"cpu":"50m"}}"#,
            &[r#"{"requests":{"cpu":"60m"},"limits":{"cpu":"40m"}}"#],
            "minimum cpu usage per Container is 50m, but limit is 40m",
        ),
        (
            r#"{"type":"Container","maxLimitRequestRatio":{"cpu":"2"}}"#,
            &[r#"{"requests":{"cpu":"100m"},"limits":{"cpu":"300m"}}"#],
            "cpu max limit to request ratio per Container is 2, but provided ratio is 3.000000",
        ),
        (
            r#"{"type":"Container","maxLimitRequestRatio":{"cpu":"2"}}"#,
            &[r#"{"requests":{"cpu":"100m"}}"#],
            "cpu max limit to request ratio per Container is 2, but no limit is specified or limit is 0",
        ),
        (
            r#"{"type":"Container","maxLimitRequestRatio":{"cpu":"2"}}"#,
            &["{}"],
            "cpu max limit to request ratio per Container is 2, but no request is specified or request is 0",
        ),
        (
            r#"{"type":"Pod","max":{"memory":"1Gi"}}"#,
            &[r#"{"limits":{"memory":"600Mi"}}"#, r#"{"limits":{"memory":"600Mi"}}"#],
            "maximum memory usage per Pod is 1Gi, but limit is 1200Mi",
        ),
        (
            r#"{"type":"Container","max":{"cpu":"1","memory":"1Gi"}}"#,
            &["{}"],
            "[maximum cpu usage per Container is 1.  No limit is specified, maximum memory usage per \
             Container is 1Gi.  No limit is specified]",
        ),
    ] {
        let errors = check_pod(&pod(containers), &range(limits));
        let message = if errors.is_empty() { String::new() } else { aggregate(errors) };
        assert_eq!(message, expected, "{limits} {containers:?}");
    }
}

#[test]
fn claims_outside_their_limits_are_refused() {
    let limits =
        r#"{"type":"PersistentVolumeClaim","min":{"storage":"1Gi"},"max":{"storage":"2Gi"}}"#;
    for (storage, expected) in [
        ("1Gi", &[][..]),
        (
            "500Mi",
            &["minimum storage usage per PersistentVolumeClaim is 1Gi, but request is 500Mi"],
        ),
        ("3Gi", &["maximum storage usage per PersistentVolumeClaim is 2Gi, but request is 3Gi"]),
    ] {
        let claim =
            format!(r#"{{"spec":{{"resources":{{"requests":{{"storage":"{storage}"}}}}}}}}"#);
        assert_eq!(check_claim(&tree(&claim), &range(limits)), expected, "{storage}");
    }
}

#[test]
fn containers_get_defaults_and_an_annotation_lists_them() {
    let limits = r#"{"type":"Container","default":{"cpu":"1","memory":"1Gi"},
        "defaultRequest":{"cpu":"100m"}}"#;
    let mut pod = pod(&["{}", r#"{"limits":{"cpu":"2","memory":"2Gi"},"requests":{"cpu":"1"}}"#]);
    set_defaults(&mut pod, &range(limits));
    let first = pod.at(&["spec", "containers"]).and_then(Value::as_array).map(|all| all[0].clone());
    let expected = r#"{"limits":{"cpu":"1","memory":"1Gi"},"requests":{"cpu":"100m"}}"#;
    assert_eq!(first.as_ref().and_then(|c| c.get("resources")), Some(&tree(expected)));
    assert_eq!(
        pod.str_at(&["metadata", "annotations", "kubernetes.io/limit-ranger"]),
        Some(
            "LimitRanger plugin set: cpu request for container c0; cpu, memory limit for container c0"
        )
    );
}
