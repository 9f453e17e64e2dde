use std::sync::Arc;

use pintle_auth::token::LEGACY_LAST_USED;
use pintle_value::Value;

use super::{NAME, NAMESPACE, SINCE, Uses};
use crate::cluster::{Cluster, Running};

const CONFIG_MAPS: &str = "configmaps";

#[tokio::test]
async fn the_date_is_created_with_the_namespace_and_corrected() {
    let cluster = Cluster::start().await;
    let environment = cluster.environment.clone();
    let controller =
        Running::start(|stopped| super::run(environment, async move { _ = stopped.await }));
    cluster.create("namespaces", r#"{"metadata":{"name":"kube-system"}}"#).await.expect("created");
    let says = |date: &'static str| move |tree: &Value| tree.str_at(&["data", SINCE]) == Some(date);
    let mut made = cluster.see_in(CONFIG_MAPS, NAMESPACE, NAME, says("1970-01-12")).await;

    cluster.pass_seconds(86_400);
    made.object_entry("data").insert(SINCE, "yesterday");
    cluster.update(CONFIG_MAPS, made).await.expect("updated");
    cluster.see_in(CONFIG_MAPS, NAMESPACE, NAME, says("1970-01-13")).await;

    // It was created a day ago, so it may be created again.
    cluster.delete_now(CONFIG_MAPS, NAMESPACE, NAME).await;
    cluster.see_in(CONFIG_MAPS, NAMESPACE, NAME, says("1970-01-13")).await;
    controller.stop().await;
}

#[tokio::test]
async fn the_day_of_a_use_is_recorded_in_the_secret() {
    let cluster = Cluster::start().await;
    cluster.create("namespaces", r#"{"metadata":{"name":"ns"}}"#).await.expect("created");
    let secret = r#"{"metadata":{"name":"t","namespace":"ns","labels":{"a":"b"}}}"#;
    cluster.create("secrets", secret).await.expect("created");
    let uses = Arc::new(Uses::default());
    uses.note("ns", "gone");
    uses.note("ns", "t");
    let (environment, noted) = (cluster.environment.clone(), uses.clone());
    let controller = Running::start(|stopped| {
        super::note_uses(environment, noted, async move { _ = stopped.await })
    });
    let says = |day: &'static str| {
        move |tree: &Value| {
            let label = |name: &str| tree.str_at(&["metadata", "labels", name]);
            label(LEGACY_LAST_USED) == Some(day) && label("a") == Some("b")
        }
    };
    cluster.see_in("secrets", "ns", "t", says("1970-01-12")).await;

    cluster.pass_seconds(86_400);
    uses.note("ns", "t");
    cluster.see_in("secrets", "ns", "t", says("1970-01-13")).await;
    controller.stop().await;
}
