use std::time::Duration;

use pintle_meta::field;
use pintle_value::{Value, json};

use super::checks::violations;
use super::pods::{check, group_warning};
use super::policy::{Level, Policies, Policy, Version};
use super::{Configuration, PodSecurity, is_significant};
use crate::cluster::Cluster;

fn tree(text: &str) -> Value {
    json::parse(text.as_bytes()).expect(text)
}

/// The minor version of the newest release that is compared.
const NEWEST: i64 = 36;

/// The expected results, each with its level and the minor release since which it holds.
type Answers<'a> = Vec<(Level, i64, &'a str)>;

/// The rows of `verdicts.txt`.
fn rows() -> Vec<(&'static str, Value, Answers<'static>)> {
    let mut rows = Vec::new();
    for line in include_str!("tests/verdicts.txt").lines().filter(|line| !line.starts_with('#')) {
        let Some(answer) = line.strip_prefix(' ') else {
            let (name, pod) = line.split_once(' ').expect(line);
            rows.push((name, tree(pod), Answers::new()));
            continue;
        };
        let (level, answer) = answer.split_once(" v1.").expect(line);
        let (version, answer) = answer.split_once(": ").expect(line);
        let level = if level == "restricted" { Level::Restricted } else { Level::Baseline };
        let answer = if answer == "allowed" { "" } else { answer };
        rows.last_mut().expect(line).2.push((level, version.parse().unwrap(), answer));
    }
    rows
}

#[test]
fn verdicts_equal_upstreams() {
    let rows = rows();
    assert!(rows.len() > 100, "{}", rows.len());
    for (name, pod, answers) in rows {
        let is_compared = |level| !answers.contains(&(level, 0, "untold"));
        let levels = [Level::Baseline, Level::Restricted];
        for level in levels.into_iter().filter(|level| is_compared(*level)) {
            let mut expected = "";
            for minor in 0..=NEWEST {
                let change = answers.iter().find(|row| (row.0, row.1) == (level, minor));
                expected = change.map_or(expected, |(_, _, answer)| answer);
                let policy = Policy { level, version: Version::Minor(minor) };
                assert_eq!(violations(policy, &pod).to_string(), expected, "{name} {policy}");
            }
            for version in [Version::Minor(NEWEST + 100), Version::Latest] {
                let policy = Policy { level, version };
                assert_eq!(violations(policy, &pod).to_string(), expected, "{name} {policy}");
            }
        }
        let policy = Policy { level: Level::Privileged, version: Version::Latest };
        assert!(violations(policy, &pod).is_empty(), "{name}");
    }
}

/// Labels without their prefix, as `key=value`, with the expected `enforce` and `warn` policies and
/// errors.
#[test]
fn labels_set_policies() {
    for (labels, enforce, warn, errors) in [
        ("", "privileged:latest", "privileged:latest", ""),
        ("enforce=baseline", "baseline:latest", "baseline:latest", ""),
        ("enforce=restricted enforce-version=v1.25", "restricted:v1.25", "restricted:v1.25", ""),
        ("enforce=restricted warn=baseline", "restricted:latest", "baseline:latest", ""),
        ("enforce=baseline warn=privileged", "baseline:latest", "privileged:latest", ""),
        ("enforce=baseline warn-version=v1.2", "baseline:latest", "baseline:v1.2", ""),
        ("enforce-version=v1.8", "privileged:v1.8", "privileged:latest", ""),
        ("warn=restricted", "privileged:latest", "restricted:latest", ""),
        ("audit=restricted audit-version=v1.0", "privileged:latest", "privileged:latest", ""),
        (
            "enforce=Baseline",
            "restricted:latest",
            "privileged:latest",
            "metadata.labels[pod-security.kubernetes.io/enforce]: Invalid value: \"Baseline\": must be \
             one of privileged, baseline, restricted",
        ),
        (
            "enforce=baseline enforce-version=v1.08",
            "baseline:latest",
            "baseline:latest",
            "metadata.labels[pod-security.kubernetes.io/enforce-version]: Invalid value: \"v1.08\": \
             must be \"latest\" or \"v1.x\"",
        ),
        (
            "warn=x audit-version=y",
            "privileged:latest",
            "privileged:latest",
            "[metadata.labels[pod-security.kubernetes.io/audit-version]: Invalid value: \"y\": must be \
             \"latest\" or \"v1.x\", metadata.labels[pod-security.kubernetes.io/warn]: Invalid value: \
             \"x\": must be one of privileged, baseline, restricted]",
        ),
    ] {
        let label = |key: &str| {
            let key = key.strip_prefix("pod-security.kubernetes.io/").expect(key);
            let mut pairs = labels.split(' ').filter_map(|label| label.split_once('='));
            pairs.find(|(name, _)| *name == key).map(|(_, value)| value)
        };
        let (policies, found) = Policies::of(Policies::default(), label);
        let levels = (policies.enforce.to_string(), policies.warn.to_string());
        assert_eq!(levels, (enforce.to_owned(), warn.to_owned()), "{labels}");
        let found = if found.is_empty() { String::new() } else { field::aggregate(&found) };
        assert_eq!(found, errors, "{labels}");
    }
}

#[test]
fn versions_have_one_spelling() {
    for text in ["latest", "v1.0", "v1.9", "v1.10", "v1.9223372036854775807"] {
        assert_eq!(Version::parse(text).map(|v| v.to_string()), Some(text.to_owned()));
    }
    for text in [
        "",
        "v1",
        "v1.",
        "1.0",
        "v1.00",
        "v1.01",
        "v1.-1",
        "v1.+1",
        "v2.0",
        "v1.1 ",
        "Latest",
        "v1.9223372036854775808",
    ] {
        assert_eq!(Version::parse(text), None, "{text}");
    }
}

#[test]
fn changed_containers_are_checked_again() {
    let pod = |text: &str| tree(&format!(r#"{{"spec":{{{text}}}}}"#));
    let old = r#""containers":[{"name":"a","image":"i"}],"ephemeralContainers":[{"name":"e","image":"i"}]"#;
    for (new, expected) in [
        (old.to_owned(), false),
        (format!(r#"{old},"tolerations":[{{}}],"activeDeadlineSeconds":5"#), false),
        (old.replacen(r#""i""#, r#""j""#, 1), true),
        (old.replace(r#""e","image":"i""#, r#""e","image":"j""#), true),
        (old.replace(r#""name":"e""#, r#""name":"f""#), true),
        (old.replace(r#"{"name":"e","image":"i"}"#, ""), false),
        (format!(r#"{old},"initContainers":[{{"name":"b"}}]"#), true),
    ] {
        assert_eq!(is_significant(&pod(&new), &pod(old)), expected, "{new}");
    }
}

#[test]
fn warnings_group_pods_with_equal_violations() {
    for (names, expected) in [
        (&["a"][..], "a: privileged"),
        (&["b", "a"], "a (and 1 other pod): privileged"),
        (&["b", "c", "a"], "a (and 2 other pods): privileged"),
    ] {
        let names = names.iter().map(|name| (*name).to_owned()).collect();
        assert_eq!(group_warning("privileged", names), expected);
    }
}

/// A namespace `n` with four pods, of which two are replicas, and three are refused by `baseline`.
async fn namespace_with_pods() -> Cluster {
    let configuration = Configuration::default();
    let plugin = PodSecurity { configuration, measures: Default::default() };
    let cluster = Cluster::with(vec![Box::new(plugin)]).await;
    let created = cluster.create("namespaces", r#"{"metadata":{"name":"n"}}"#).await;
    assert_eq!(created, Ok(Vec::new()));
    let owner = r#""ownerReferences":[{"apiVersion":"apps/v1","kind":"ReplicaSet","name":"r","uid":"u",
        "controller":true}],"#;
    for (name, owner, privileged) in
        [("a", owner, true), ("b", owner, true), ("c", "", true), ("d", "", false)]
    {
        let pod = format!(
            r#"{{"metadata":{{{owner}"name":"{name}","namespace":"n"}},"spec":{{"containers":[
            {{"name":"c","image":"i","securityContext":{{"privileged":{privileged}}}}}]}}}}"#
        );
        assert_eq!(cluster.create("pods", &pod).await, Ok(Vec::new()));
    }
    cluster
}

#[tokio::test]
async fn a_stricter_policy_of_a_namespace_warns_about_its_pods() {
    let cluster = namespace_with_pods().await;
    let relabelled = |level: &str| {
        format!(
            r#"{{"metadata":{{"name":"n","labels":{{"pod-security.kubernetes.io/enforce":"{level}"}}}}}}"#
        )
    };
    for (level, expected) in [
        ("privileged", &[][..]),
        (
            "baseline",
            &[
                "existing pods in namespace \"n\" violate the new PodSecurity enforce level \
                 \"baseline:latest\"",
                "a (and 2 other pods): privileged",
            ],
        ),
        ("privileged", &[]),
    ] {
        let warnings = cluster.update("namespaces", &relabelled(level)).await;
        assert_eq!(warnings.expect(level), expected, "{level}");
    }
    let refused = cluster.update("namespaces", &relabelled("x")).await.expect_err("x is no level");
    assert!(refused.message.contains("must be one of"), "{}", refused.message);
}

/// Many pods are not checked for longer than the deadline, of which upstream looks at the clock
/// after each pod.
#[tokio::test]
async fn the_check_of_pods_has_a_deadline() {
    let pods = namespace_with_pods().await.objects("pods", "n");
    let policy = Policy { level: Level::Baseline, version: Version::Latest };
    for (check_max, expected) in [(Duration::ZERO, 1), (Duration::from_secs(60), 4)] {
        let (_, checked) = check(pods.clone(), policy, check_max).await.expect("pods are readable");
        assert_eq!(checked, expected);
    }
}
