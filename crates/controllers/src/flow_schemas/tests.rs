use pintle_value::Value;

use crate::cluster::{Cluster, Running};

const SCHEMAS: &str = "flowcontrol.apiserver.k8s.io/flowschemas";
const LEVELS: &str = "flowcontrol.apiserver.k8s.io/prioritylevelconfigurations";
const LEVEL: &str = r#"{"metadata":{"name":"quiet"},"spec":{"type":"Limited","limited":{
    "nominalConcurrencyShares":5,"limitResponse":{"type":"Reject"}}}}"#;

fn schema(name: &str, level: &str) -> String {
    format!(
        r#"{{"metadata":{{"name":"{name}"}},"spec":{{"matchingPrecedence":500,
            "priorityLevelConfiguration":{{"name":"{level}"}}}}}}"#
    )
}

/// Waits until the only condition of a schema has a status.
async fn says(cluster: &Cluster, name: &str, status: &str) -> Value {
    let condition = |schema: &Value| match schema.at(&["status", "conditions"]) {
        Some(Value::Array(conditions)) if conditions.len() == 1 => Some(conditions[0].clone()),
        _ => None,
    };
    let has =
        |schema: &Value| condition(schema).is_some_and(|c| c.str_at(&["status"]) == Some(status));
    let seen = cluster.see(SCHEMAS, name, has).await;
    condition(&seen).expect("it was seen")
}

/// APF-03
#[tokio::test]
async fn the_dangling_condition_reports_a_missing_level() {
    let cluster = Cluster::start().await;
    cluster.create(SCHEMAS, &schema("before", "quiet")).await.expect("created");
    let environment = cluster.environment.clone();
    let controller =
        Running::start(|stopped| super::run(environment, async move { _ = stopped.await }));
    let dangling = says(&cluster, "before", "True").await;
    let words = "This FlowSchema references the PriorityLevelConfiguration object named \"quiet\" \
                 but there is no such object";
    let text = |member| dangling.str_at(&[member]).unwrap_or_default();
    assert_eq!([text("type"), text("reason"), text("message")], ["Dangling", "NotFound", words]);
    cluster.create(SCHEMAS, &schema("after", "quiet")).await.expect("created");
    cluster.create(LEVELS, LEVEL).await.expect("created");
    for name in ["before", "after"] {
        let found = says(&cluster, name, "False").await;
        assert_eq!(found.str_at(&["reason"]), Some("Found"));
    }
    cluster.delete(LEVELS, "", "quiet").await.expect("deleted");
    says(&cluster, "after", "True").await;
    controller.stop().await;
}
