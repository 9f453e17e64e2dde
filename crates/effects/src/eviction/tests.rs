//! Decisions about budgets, in tables.

use pintle_registry::request::Now;
use pintle_value::{Value, json};

use super::budget::{Verdict, guards, is_unguarded, spend, verdict};

const NOW: Now = Now { unix_micros: 1_700_000_000_000_000 };

fn tree(text: &str) -> Value {
    json::parse(text.as_bytes()).unwrap_or_else(|error| panic!("{error}: {text}"))
}

fn budget(spec: &str, status: &str) -> Value {
    tree(&format!(
        r#"{{"metadata":{{"name":"b","generation":2}},"spec":{spec},"status":{status}}}"#
    ))
}

#[test]
fn only_running_pods_are_guarded() {
    let rows = [
        (r#"{"status":{"phase":"Running"}}"#, false),
        (r#"{"status":{"phase":"Unknown"}}"#, false),
        (r#"{"status":{"phase":"Pending"}}"#, true),
        (r#"{"status":{"phase":"Succeeded"}}"#, true),
        (r#"{"status":{"phase":"Failed"}}"#, true),
        (
            r#"{"metadata":{"deletionTimestamp":"2026-01-01T00:00:00Z"},"status":{"phase":"Running"}}"#,
            true,
        ),
    ];
    for (pod, expected) in rows {
        assert_eq!(is_unguarded(&tree(pod)), expected, "{pod}");
    }
}

#[test]
fn a_budget_limits_evictions_of_selected_pods() {
    let pod = tree(r#"{"metadata":{"labels":{"a":"1"}}}"#);
    let rows = [
        (r#"{"selector":{"matchLabels":{"a":"1"}}}"#, true),
        (r#"{"selector":{"matchLabels":{"a":"2"}}}"#, false),
        (r#"{"selector":{}}"#, true),
        ("{}", false),
    ];
    for (spec, expected) in rows {
        assert_eq!(guards(&budget(spec, "{}"), &pod), expected, "{spec}");
    }
}

#[test]
fn unhealthy_pods_spend_no_budget_if_others_suffice() {
    let ready = r#"{"status":{"conditions":[{"type":"Ready","status":"True"}]}}"#;
    let always = r#"{"unhealthyPodEvictionPolicy":"AlwaysAllow"}"#;
    let rows = [
        (ready, always, r#"{"currentHealthy":3,"desiredHealthy":2}"#, Verdict::Spend),
        ("{}", always, r#"{"currentHealthy":1,"desiredHealthy":2}"#, Verdict::Unhealthy),
        ("{}", "{}", r#"{"currentHealthy":2,"desiredHealthy":2}"#, Verdict::Unhealthy),
        ("{}", "{}", r#"{"currentHealthy":1,"desiredHealthy":2}"#, Verdict::Spend),
        ("{}", "{}", r#"{"currentHealthy":1,"desiredHealthy":0}"#, Verdict::Spend),
    ];
    for (pod, spec, status, expected) in rows {
        assert_eq!(verdict(&budget(spec, status), &tree(pod)), expected, "{pod} {spec} {status}");
    }
}

#[test]
fn a_budget_is_spent_or_refuses() {
    let needs = "The disruption budget b needs 2 healthy pods and has 2 currently";
    let rows = [
        (r#"{"observedGeneration":2,"disruptionsAllowed":2}"#, Ok(1)),
        (r#"{"observedGeneration":2,"disruptionsAllowed":1}"#, Ok(0)),
        (
            r#"{"observedGeneration":1,"disruptionsAllowed":1}"#,
            Err((429, "The disruption budget b is still being processed by the server.")),
        ),
        (r#"{"observedGeneration":2,"disruptionsAllowed":-1}"#, Err((403, ""))),
        (r#"{"observedGeneration":2,"currentHealthy":2,"desiredHealthy":2}"#, Err((429, needs))),
        (
            r#"{"observedGeneration":2,"currentHealthy":3,"desiredHealthy":2}"#,
            Err((429, "The disruption budget b does not allow evicting pods currently")),
        ),
        (
            r#"{"observedGeneration":2,"conditions":[{"type":"DisruptionAllowed","status":"False","reason":"SyncFailed","message":"oh"}]}"#,
            Err((
                429,
                "The disruption budget b does not allow evicting pods currently because it failed sync: oh",
            )),
        ),
    ];
    for (status, expected) in rows {
        let mut budget = budget("{}", status);
        let spent = spend(&mut budget, "p", NOW);
        let left = budget.at(&["status", "disruptionsAllowed"]).and_then(Value::as_int);
        match (spent, expected) {
            (Ok(()), Ok(expected)) => {
                assert_eq!(left, Some(expected), "{status}");
                assert!(budget.at(&["status", "disruptedPods", "p"]).is_some(), "{status}");
            }
            (Err(refusal), Err((code, cause))) => {
                assert_eq!(refusal.code, code, "{status}");
                let causes = refusal.details.map(|details| details.causes).unwrap_or_default();
                let message = causes.first().map(|cause| cause.message.as_str());
                assert_eq!(message.unwrap_or_default(), cause, "{status}");
            }
            (spent, expected) => panic!("{status}: {spent:?}, not {expected:?}"),
        }
    }
}
