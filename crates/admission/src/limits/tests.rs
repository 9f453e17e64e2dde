use pintle_value::{Value, json};

use super::defaults::{Defaults, TooMany};
use super::group::PodResources;
use super::{Limit, Violations};

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
        // Of 2 CPUs for the largest limit and the smallest request, the ratio would be 20.
        (
            r#"{"type":"Container","maxLimitRequestRatio":{"cpu":"2"}}"#,
            &[
                r#"{"requests":{"cpu":"100m"},"limits":{"cpu":"200m"}}"#,
                r#"{"requests":{"cpu":"1"},"limits":{"cpu":"2"}}"#,
            ],
            "",
        ),
        // Equal violations are listed once.
        (
            r#"{"type":"Container","max":{"cpu":"1"}}"#,
            &["{}", "{}"],
            "maximum cpu usage per Container is 1.  No limit is specified",
        ),
        (
            r#"{"type":"Container","max":{"cpu":"1","memory":"1Gi"}}"#,
            &["{}"],
            "[maximum cpu usage per Container is 1.  No limit is specified, maximum memory usage per \
             Container is 1Gi.  No limit is specified]",
        ),
    ] {
        let found = Violations::of_pod(&PodResources::of(&pod(containers)), &range(limits));
        assert_eq!(found.text().unwrap_or_default(), expected, "{limits} {containers:?}");
    }
}

#[test]
fn claims_outside_their_limits_are_refused() {
    let limits =
        r#"{"type":"PersistentVolumeClaim","min":{"storage":"1Gi"},"max":{"storage":"2Gi"}}"#;
    for (storage, expected) in [
        ("1Gi", None),
        (
            "500Mi",
            Some("minimum storage usage per PersistentVolumeClaim is 1Gi, but request is 500Mi"),
        ),
        ("3Gi", Some("maximum storage usage per PersistentVolumeClaim is 2Gi, but request is 3Gi")),
    ] {
        let claim =
            format!(r#"{{"spec":{{"resources":{{"requests":{{"storage":"{storage}"}}}}}}}}"#);
        let found = Violations::of_claim(&tree(&claim), &range(limits));
        assert_eq!(found.text().as_deref(), expected, "{storage}");
    }
}

#[test]
fn containers_get_defaults_and_an_annotation_lists_them() {
    let limits = r#"{"type":"Container","default":{"cpu":"1","memory":"1Gi"},
        "defaultRequest":{"cpu":"100m"}}"#;
    let mut pod = pod(&["{}", r#"{"limits":{"cpu":"2","memory":"2Gi"},"requests":{"cpu":"1"}}"#]);
    assert_eq!(Defaults::default().set(&mut pod, &range(limits)), Ok(()));
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

/// `{"r0":"1","r1":"1",…}`
fn amounts(names: std::ops::Range<usize>) -> String {
    let members: Vec<String> = names.map(|name| format!(r#""example.com/r{name}":"1""#)).collect();
    format!("{{{}}}", members.join(","))
}

/// A pod with so many containers, each with these resources.
fn large_pod(containers: usize, resources: &str) -> Value {
    let container = format!(r#"{{"resources":{resources}}},"#);
    tree(&format!(r#"{{"spec":{{"containers":[{}{{}}]}}}}"#, container.repeat(containers)))
}

/// 30,000 containers and 50,000 names are 1.5 billion violations.
#[test]
fn violations_are_not_a_product_of_containers_and_names() {
    for (member, names, containers, resources, expected) in [
        ("min", 0..50_000, 30_000, "{}", 1000),
        ("max", 0..50_000, 30_000, "{}", 1000),
        ("maxLimitRequestRatio", 0..50_000, 30_000, "{}", 1000),
        ("min", 0..999, 500_000, "{}", 999),
        ("min", 0..1, 500_000, r#"{"requests":{"example.com/r0":"2"}}"#, 1),
    ] {
        let range = range(&format!(r#"{{"type":"Container","{member}":{}}}"#, amounts(names)));
        let pod = large_pod(containers, resources);
        let text = Violations::of_pod(&PodResources::of(&pod), &range).text().unwrap_or_default();
        assert_eq!(text.matches("example.com").count(), expected, "{member}");
    }
}

/// 20,000 ranges with which 30,000 containers agree are 600 million comparisons.
#[test]
fn ranges_are_not_compared_with_each_container() {
    let range = range(
        r#"{"type":"Container","min":{"cpu":"1"},"max":{"cpu":"2"},"maxLimitRequestRatio":{"cpu":"2"}}"#,
    );
    let mut pod = large_pod(30_000, r#"{"requests":{"cpu":"1"},"limits":{"cpu":"2"}}"#);
    let containers = pod.object_entry("spec").get_mut("containers");
    containers.and_then(Value::as_array_mut).map(Vec::pop);
    let resources = PodResources::of(&pod);
    for _ in 0..20_000 {
        assert_eq!(Violations::of_pod(&resources, &range).text(), None);
    }
}

/// 30,000 containers and 50,000 names are 1.5 billion defaults.
#[test]
fn defaults_are_not_a_product_of_containers_names_and_ranges() {
    let mut pod = large_pod(30_000, "{}");
    let range = |names| range(&format!(r#"{{"type":"Container","default":{}}}"#, amounts(names)));
    let many = range(0..50_000);
    assert_eq!(Defaults::default().set(&mut pod, &many), Err(TooMany));

    let mut pod = large_pod(10_000, "{}");
    let one = range(0..1);
    let mut defaults = Defaults::default();
    for _ in 0..20_000 {
        assert_eq!(defaults.set(&mut pod, &one), Ok(()));
    }
}
