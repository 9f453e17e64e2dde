use crate::cluster::{Cluster, Running};

const ACCOUNTS: &str = "serviceaccounts";

fn running(cluster: &Cluster) -> Running {
    let environment = cluster.environment.clone();
    Running::start(|stopped| super::run(environment, async move { _ = stopped.await }))
}

async fn namespace(cluster: &Cluster, name: &str) {
    let text = format!(r#"{{"metadata":{{"name":"{name}"}}}}"#);
    cluster.create("namespaces", &text).await.expect("created");
}

/// KCM-03
#[tokio::test]
async fn every_namespace_gets_a_default_account_even_after_its_deletion() {
    let cluster = Cluster::start().await;
    namespace(&cluster, "before").await;
    let controller = running(&cluster);
    namespace(&cluster, "after").await;
    for name in ["before", "after"] {
        let made = cluster.see_in(ACCOUNTS, name, "default", |_| true).await;
        let uid = made.str_at(&["metadata", "uid"]).map(str::to_owned);
        cluster.delete(ACCOUNTS, name, "default").await.expect("deleted");
        let is_another = |account: &pintle_value::Value| {
            account.str_at(&["metadata", "uid"]).map(str::to_owned) != uid
        };
        let made = cluster.see_in(ACCOUNTS, name, "default", is_another).await;
        let managers = made.at(&["metadata", "managedFields"]).and_then(|m| m.as_array());
        assert_eq!(managers, None, "no field has a manager");
    }
    controller.stop().await;
}

#[tokio::test]
async fn a_terminating_namespace_gets_no_default_account() {
    let cluster = Cluster::start().await;
    namespace(&cluster, "going").await;
    let held =
        r#"{"metadata":{"name":"default","namespace":"going","finalizers":["example.com/f"]}}"#;
    cluster.create(ACCOUNTS, held).await.expect("created");
    cluster.delete("namespaces", "", "going").await.expect("deleted");
    let controller = running(&cluster);
    cluster.delete(ACCOUNTS, "going", "default").await.expect("deleted");
    let mut account = cluster.get(ACCOUNTS, "going", "default").expect("it is held");
    account.object_entry("metadata").remove("finalizers");
    cluster.update(ACCOUNTS, account).await.expect("updated");
    namespace(&cluster, "later").await; // reconciled after the other
    cluster.see_in(ACCOUNTS, "later", "default", |_| true).await;
    assert!(cluster.get(ACCOUNTS, "going", "default").is_none());
    controller.stop().await;
}
