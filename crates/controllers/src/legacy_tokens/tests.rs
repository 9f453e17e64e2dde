use pintle_value::Value;

use super::{NAME, NAMESPACE, SINCE};
use crate::cluster::{Cluster, Running};

const CONFIG_MAPS: &str = "configmaps";

#[tokio::test]
async fn the_date_is_there_once_the_namespace_is_and_is_put_right() {
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

    // It was made a day ago, so it may be made again.
    cluster.delete_now(CONFIG_MAPS, NAMESPACE, NAME).await;
    cluster.see_in(CONFIG_MAPS, NAMESPACE, NAME, says("1970-01-13")).await;
    controller.stop().await;
}
