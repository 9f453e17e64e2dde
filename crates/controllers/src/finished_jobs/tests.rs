use pintle_meta::time;
use pintle_value::Value;

use super::deadline;
use crate::cluster::{Cluster, Running, tree};

fn check(job: &str, expected: Option<i64>) {
    assert_eq!(deadline(&tree(job)), expected.map(|seconds| seconds * time::SECOND), "{job}");
}

#[test]
fn the_ttl_starts_when_the_job_finishes() {
    let ended = |kind: &str, status: &str| {
        format!(
            r#"{{"spec":{{"ttlSecondsAfterFinished":10}},"status":{{"conditions":[
                {{"type":"Suspended","status":"True","lastTransitionTime":"1970-01-01T00:00:07Z"}},
                {{"type":"{kind}","status":"{status}","lastTransitionTime":"1970-01-01T00:01:00Z"}}]}}}}"#
        )
    };
    check(&ended("Complete", "True"), Some(70));
    check(&ended("Failed", "True"), Some(70));
    check(&ended("Complete", "False"), None);
    check(&ended("FailureTarget", "True"), None);
    check(&ended("Complete", "True").replace("ttlSecondsAfterFinished", "parallelism"), None);
    check(&ended("Complete", "True").replace(":10}", ":0}"), Some(60));
    check(r#"{"spec":{"ttlSecondsAfterFinished":10}}"#, None);
    let going = r#"{"metadata":{"deletionTimestamp":"1970-01-01T00:00:00Z"},"#;
    check(&ended("Complete", "True").replacen('{', going, 1), None);
}

#[tokio::test]
async fn a_finished_job_is_deleted_after_its_ttl() {
    let cluster = Cluster::start().await;
    let environment = cluster.environment.clone();
    let controller =
        Running::start(|stopped| super::run(environment, async move { _ = stopped.await }));
    cluster.create("namespaces", r#"{"metadata":{"name":"ns"}}"#).await.expect("created");
    for (name, ttl) in [("short", "0"), ("long", "1000"), ("ever", "null")] {
        let text = format!(
            r#"{{"metadata":{{"name":"{name}","namespace":"ns"}},"spec":{{
                "ttlSecondsAfterFinished":{ttl},"template":{{"spec":{{"restartPolicy":"Never",
                "containers":[{{"name":"a","image":"i"}}]}}}}}}}}"#
        );
        cluster.create("batch/jobs", &text).await.unwrap_or_else(|status| panic!("{status}"));
    }
    let mut watch = cluster.watch("batch/jobs").await;
    for name in ["ever", "long", "short"] {
        let mut job = cluster.get("batch/jobs", "ns", name).expect("it is there");
        job.make_object().insert("status", tree(
            r#"{"startTime":"1970-01-12T13:46:40Z","completionTime":"1970-01-12T13:46:40Z","succeeded":1,
                "conditions":[
                {"type":"SuccessCriteriaMet","status":"True","lastTransitionTime":"1970-01-12T13:46:40Z"},
                {"type":"Complete","status":"True","lastTransitionTime":"1970-01-12T13:46:40Z"}]}"#,
        ));
        cluster.update_part("batch/jobs", "status", job).await.expect("updated");
    }
    let left = |name: &str| cluster.get("batch/jobs", "ns", name);
    let is_going = |job: Option<Value>| {
        job.is_none_or(|job| job.at(&["metadata", "deletionTimestamp"]).is_some())
    };
    // The deletion is in the foreground: without a garbage collector the job stays as terminating.
    while !is_going(left("short")) {
        crate::cluster::next(&mut watch).await;
    }
    assert!(!is_going(left("long")) && !is_going(left("ever")));
    cluster.pass_seconds(1001);
    let mut job = left("long").expect("it is there");
    job.object_entry("metadata").insert("labels", tree(r#"{"a":"b"}"#)); // this change enqueues it
    cluster.update("batch/jobs", job).await.expect("updated");
    while !is_going(left("long")) {
        crate::cluster::next(&mut watch).await;
    }
    assert!(!is_going(left("ever")));
    controller.stop().await;
}
