use std::collections::BTreeMap;

use pintle_value::{Str, Value, json};

use super::aggregated_rules;
use crate::cluster::{Cluster, Running, tree};

const ROLES: &str = "rbac.authorization.k8s.io/clusterroles";

fn role(labels: &str, rules: &str) -> Value {
    tree(&format!(r#"{{"metadata":{{"labels":{labels}}},"rules":{rules}}}"#))
}

fn check(selectors: &str, expected: Option<&str>) {
    let pods = r#"{"verbs":["get"],"resources":["pods"]}"#;
    let nodes = r#"{"verbs":["get"],"resources":["nodes"]}"#;
    let mut gatherer = role(r#"{"a":"1"}"#, &format!("[{nodes}]"));
    if !selectors.is_empty() {
        let rule = tree(&format!(r#"{{"clusterRoleSelectors":{selectors}}}"#));
        gatherer.make_object().insert("aggregationRule", rule);
    }
    let others = [
        ("b", role(r#"{"a":"1"}"#, &format!("[{nodes},{pods}]"))),
        ("a", role(r#"{"a":"1","b":"1"}"#, &format!("[{pods}]"))),
        ("c", role("{}", "[]")),
        ("me", gatherer.clone()),
    ];
    let roles: BTreeMap<Str, Value> = others.into_iter().map(|(n, r)| (n.into(), r)).collect();
    let found =
        aggregated_rules("me", &gatherer, &roles).map(|rules| json::to_string(&rules.into()));
    let expected = expected.map(|names| {
        let rules: Vec<_> =
            names.split_whitespace().map(|n| if n == "pods" { pods } else { nodes }).collect();
        json::to_string(&tree(&format!("[{}]", rules.join(","))))
    });
    assert_eq!(found, expected, "{selectors}");
}

#[test]
fn rules_are_unique_and_ordered_by_selector_and_name() {
    // AUTHZ-04
    check("", None);
    check("[]", Some(""));
    check(r#"[{"matchLabels":{"a":"1"}}]"#, Some("pods nodes"));
    check(r#"[{"matchLabels":{"b":"1"}}]"#, Some("pods"));
    check(r#"[{"matchLabels":{"b":"1"}},{"matchLabels":{"a":"1"}}]"#, Some("pods nodes"));
    check(r#"[{"matchLabels":{"a":"2"}}]"#, Some(""));
}

#[tokio::test]
async fn an_aggregated_role_follows_the_selected_roles() {
    let cluster = Cluster::start().await;
    let environment = cluster.environment.clone();
    let running = Running::start(|stop| async move {
        super::run(environment, async move { drop(stop.await) }).await;
    });
    let gatherer = r#"{"metadata":{"name":"all"},"rules":[],
        "aggregationRule":{"clusterRoleSelectors":[{"matchLabels":{"a":"1"}}]}}"#;
    cluster.create(ROLES, gatherer).await.expect("created");
    let one = r#"{"metadata":{"name":"one","labels":{"a":"1"}},
        "rules":[{"verbs":["get"],"apiGroups":[""],"resources":["pods"]}]}"#;
    cluster.create(ROLES, one).await.expect("created");
    let count = |role: &Value| role.get("rules").and_then(Value::as_array).map_or(0, <[_]>::len);
    cluster.see(ROLES, "all", |role| count(role) == 1).await;
    cluster.delete(ROLES, "", "one").await.expect("deleted");
    cluster.see(ROLES, "all", |role| count(role) == 0).await;
    running.stop().await;
}
