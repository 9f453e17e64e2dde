//! Decisions about budgets, in tables, and what admission decides about.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Poll, Waker};

use pintle_meta::{Status, object};
use pintle_registry::Registry;
use pintle_registry::admission::{Admission, Attributes, Hook, Hooks, Operation};
use pintle_registry::allocation::Companion;
use pintle_registry::request::{Context, DeleteOptions, Now, Target};
use pintle_registry::work::{self, Thread};
use pintle_value::{Value, json};

use super::Eviction;
use super::budget::{Verdict, guards, is_unguarded, spend, verdict};
use crate::cluster::{self, tree};
use crate::pods;

const NOW: Now = Now { unix_micros: 1_700_000_000_000_000 };

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

/// Refuses deletions, and counts the hooks at the commit of a deletion.
struct NoDeletions(AtomicUsize);

impl Admission for NoDeletions {
    fn hooks(&self) -> Hooks {
        Hooks::of(&[Hook::BeforeMutation, Hook::Validate, Hook::BeforeCommit])
    }

    fn before_mutation(&self, write: &Attributes<'_>, _: &Registry) -> Result<(), Status> {
        refuse_deletion(write)
    }

    fn validate(&self, write: &Attributes<'_>, _: &Registry) -> Result<(), Status> {
        refuse_deletion(write)
    }

    fn before_commit(
        &self,
        write: &Attributes<'_>,
        _: &Registry,
    ) -> Result<Vec<Companion>, Status> {
        let is_deletion = write.operation == Operation::Delete;
        self.0.fetch_add(usize::from(is_deletion), Ordering::Relaxed);
        Ok(Vec::new())
    }
}

fn refuse_deletion(write: &Attributes<'_>) -> Result<(), Status> {
    match write.operation {
        Operation::Delete => Err(Status::bad_request("no deletions")),
        _ => Ok(()),
    }
}

/// Admission that refuses deletions does not refuse evictions, but quotas see the deletion.
#[tokio::test]
async fn admission_decides_about_the_eviction_and_not_about_the_deletion() {
    let admission = Arc::new(NoDeletions(AtomicUsize::new(0)));
    let registry = cluster::registry_with(admission.clone()).await;
    let pods = cluster::target(&registry, "pods", "", "");
    let pod = r#"{"metadata":{"name":"p"},"spec":{"containers":[{"name":"c","image":"i"}]}}"#;
    cluster::create(&registry, &pods, tree(pod)).await.expect("created");
    let one = cluster::target(&registry, "pods", "p", "");
    let (options, context) = (DeleteOptions::default(), cluster::context());
    let deleted = registry.delete(&one, &options, &context).await;
    assert_eq!(deleted.map(|_| ()).map_err(|status| status.code), Err(400));
    let eviction = cluster::target(&registry, "pods", "p", "eviction");
    let posted = r#"{"apiVersion":"policy/v1","kind":"Eviction","metadata":{"name":"p"}}"#;
    cluster::create(&registry, &eviction, tree(posted)).await.expect("evicted");
    assert!(registry.peek(&one.resource, cluster::NAMESPACE, "p").is_none());
    assert_eq!(admission.0.load(Ordering::Relaxed), 1);
}

/// Creates a budget for pods whose label `a` has one of some values.
async fn limit(registry: &Registry, name: &str, values: &[String]) {
    let budgets = pods::resource(registry, "policy", "poddisruptionbudgets").expect("served");
    let to = Target { resource: budgets, ..cluster::target(registry, "pods", "", "") };
    let values =
        Value::from(values.iter().map(|value| Value::from(value.as_str())).collect::<Vec<_>>());
    let values = json::to_string(&values);
    let budget = tree(&format!(
        r#"{{"apiVersion":"policy/v1","metadata":{{"name":"{name}"}},"spec":{{"maxUnavailable":1,
            "selector":{{"matchExpressions":[{{"key":"a","operator":"In","values":{values}}}]}}}}}}"#
    ));
    cluster::create(registry, &to, budget).await.unwrap_or_else(|status| panic!("{status}"));
}

/// The name of a budget, or the code of a refusal.
type Found<'a> = Result<Option<&'a str>, u16>;

/// The values of the budgets' selectors, and the budget of a pod.
#[tokio::test]
async fn a_pod_has_at_most_one_budget() {
    let rows: [(&[&str], Found<'_>); 5] = [
        (&[], Ok(None)),
        (&["2", "3"], Ok(None)),
        (&["2", "1", "3"], Ok(Some("b1"))),
        (&["1", "2", "1"], Err(500)),
        (&["1", "1", "1"], Err(500)),
    ];
    for (budgets, expected) in rows {
        let registry = cluster::registry().await;
        for (n, value) in budgets.iter().enumerate() {
            limit(&registry, &format!("b{n}"), &[(*value).to_owned()]).await;
        }
        let found = guard(&registry, &cluster::context()).await;
        let found = found.map(|guard| guard.map(|guard| object::name(&guard).to_owned()));
        let found = found.map_err(|status| status.code);
        assert_eq!(found.as_ref().map(Option::as_deref).map_err(|code| *code), expected);
    }
}

async fn guard(registry: &Registry, context: &Context) -> Result<Option<Value>, Status> {
    let pod = cluster::target(registry, "pods", "p", "");
    let eviction = Eviction { registry, pod, options: DeleteOptions::default(), context };
    let budgets = pods::resource(registry, "policy", "poddisruptionbudgets")?;
    eviction.guard(&budgets, &tree(r#"{"metadata":{"name":"p","labels":{"a":"1"}}}"#)).await
}

/// Budgets are as long as users make them, so reading them is announced and divided.
#[tokio::test]
async fn long_budgets_are_read_on_a_separate_thread() {
    let registry = cluster::registry().await;
    let values: Vec<String> = (0..3000).map(|n| format!("{n:040}")).collect();
    for name in ["a", "b", "c"] {
        limit(&registry, name, &values).await;
    }
    let context = cluster::context();
    let mut reading = pin!(guard(&registry, &context));
    let (mut thread, mut polls) = (Thread::Shared, Vec::new());
    loop {
        polls.push(thread);
        let mut context = std::task::Context::from_waker(Waker::noop());
        let (polled, apart) = work::watched(thread, || reading.as_mut().poll(&mut context));
        if let Poll::Ready(found) = polled {
            assert_eq!(found.map_err(|status| status.code), Ok(None));
            break;
        }
        assert!(apart, "it waits for nothing else");
        thread = Thread::Separate;
    }
    assert_eq!(polls, [Thread::Shared, Thread::Separate, Thread::Separate]);
}
