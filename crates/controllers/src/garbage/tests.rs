use std::future::Future;

use pintle_registry::request::Propagation;
use pintle_value::Value;

use crate::cluster::{Cluster, Running, gone};

fn running(cluster: &Cluster) -> Running {
    let environment = cluster.environment.clone();
    Running::start(|stopped| super::run(environment, async move { _ = stopped.await }))
}

/// Runs a test with a namespace `ns` and a collector at work.
async fn with_collector<F: Future<Output = ()>>(test: impl FnOnce(Cluster) -> F) {
    let cluster = Cluster::start().await;
    cluster.create("namespaces", r#"{"metadata":{"name":"ns"}}"#).await.expect("created");
    let collector = running(&cluster);
    test(cluster).await;
    collector.stop().await;
}

/// A ConfigMap with owners: (name, uid, whether it blocks), and finalizers.
async fn make(
    cluster: &Cluster,
    name: &str,
    owners: &[(&str, &str, bool)],
    finalizers: &[&str],
) -> String {
    let owners: Vec<String> = owners
        .iter()
        .map(|(name, uid, blocks)| {
            format!(
                r#"{{"apiVersion":"v1","kind":"ConfigMap","name":"{name}","uid":"{uid}",
                     "blockOwnerDeletion":{blocks}}}"#
            )
        })
        .collect();
    let text = format!(
        r#"{{"metadata":{{"name":"{name}","namespace":"ns","ownerReferences":[{}],"finalizers":{finalizers:?}}}}}"#,
        owners.join(",")
    );
    let made =
        cluster.create("configmaps", &text).await.unwrap_or_else(|status| panic!("{status}"));
    made.str_at(&["metadata", "uid"]).expect("it has a uid").to_owned()
}

fn get(cluster: &Cluster, name: &str) -> Option<Value> {
    cluster.get("configmaps", "ns", name)
}

fn has_no_owner(object: &Value) -> bool {
    object.at(&["metadata", "ownerReferences"]).is_none()
}

/// KCM-01
#[tokio::test]
async fn what_has_lost_its_owner_goes_and_so_on() {
    with_collector(async |cluster| {
        let mut watch = cluster.watch("configmaps").await;
        let owner = make(&cluster, "owner", &[], &[]).await;
        let child = make(&cluster, "child", &[("owner", &owner, false)], &[]).await;
        make(&cluster, "grandchild", &[("child", &child, true)], &[]).await;
        make(&cluster, "stranger", &[], &[]).await;
        cluster.delete("configmaps", "ns", "owner").await.expect("deleted");
        gone(&mut watch, "grandchild").await;
        assert!(get(&cluster, "child").is_none());
        assert!(get(&cluster, "stranger").is_some());
    })
    .await;
}

#[tokio::test]
async fn an_owner_of_another_uid_is_no_owner() {
    with_collector(async |cluster| {
        let mut watch = cluster.watch("configmaps").await;
        make(&cluster, "owner", &[], &[]).await;
        make(&cluster, "child", &[("owner", "another", false)], &[]).await;
        gone(&mut watch, "child").await;
        assert!(get(&cluster, "owner").is_some());
    })
    .await;
}

/// One owner that stays is enough; references to those that do not go.
#[tokio::test]
async fn an_owner_that_stays_keeps_its_dependents() {
    with_collector(async |cluster| {
        let stays = make(&cluster, "stays", &[], &[]).await;
        let goes = make(&cluster, "goes", &[], &[]).await;
        let owners = [("stays", stays.as_str(), false), ("goes", goes.as_str(), false)];
        make(&cluster, "child", &owners, &[]).await;
        cluster.delete("configmaps", "ns", "goes").await.expect("deleted");
        let count = |child: &Value| {
            child.at(&["metadata", "ownerReferences"]).and_then(Value::as_array).map(<[_]>::len)
        };
        cluster.see("configmaps", "child", |child| count(child) == Some(1)).await;
    })
    .await;
}

#[tokio::test]
async fn an_owner_of_an_unknown_kind_is_left_to_itself() {
    with_collector(async |cluster| {
        let mut watch = cluster.watch("configmaps").await;
        let text = r#"{"metadata":{"name":"child","namespace":"ns","ownerReferences":[
            {"apiVersion":"example.com/v1","kind":"Unheard","name":"x","uid":"x"}]}}"#;
        cluster.create("configmaps", text).await.expect("created");
        make(&cluster, "last", &[("nobody", "nobody", false)], &[]).await;
        gone(&mut watch, "last").await; // made after it, and looked at after it
        assert!(get(&cluster, "child").is_some());
    })
    .await;
}

/// KCM-01: the owner stays until those that block it are gone.
#[tokio::test]
async fn in_the_foreground_dependents_go_first() {
    with_collector(async |cluster| {
        let mut watch = cluster.watch("configmaps").await;
        let owner = make(&cluster, "owner", &[], &[]).await;
        let child = make(&cluster, "child", &[("owner", &owner, true)], &[]).await;
        make(&cluster, "grandchild", &[("child", &child, true)], &["example.com/hold"]).await;
        cluster.delete_with("configmaps", "ns", "owner", Propagation::Foreground).await;
        let terminating = |object: &Value| object.at(&["metadata", "deletionTimestamp"]).is_some();
        let mut held = cluster.see("configmaps", "grandchild", terminating).await;
        assert!(get(&cluster, "owner").is_some_and(|owner| terminating(&owner)));
        assert!(get(&cluster, "child").is_some_and(|child| terminating(&child)));
        held.object_entry("metadata").remove("finalizers");
        cluster.update("configmaps", held).await.expect("updated");
        gone(&mut watch, "owner").await;
        assert!(get(&cluster, "child").is_none());
        assert!(get(&cluster, "grandchild").is_none());
    })
    .await;
}

/// Whoever does not block is collected when the owner is gone.
#[tokio::test]
async fn in_the_foreground_nobody_waits_for_those_that_do_not_block() {
    with_collector(async |cluster| {
        let mut watch = cluster.watch("configmaps").await;
        let owner = make(&cluster, "owner", &[], &[]).await;
        make(&cluster, "child", &[("owner", &owner, false)], &["example.com/hold"]).await;
        cluster.delete_with("configmaps", "ns", "owner", Propagation::Foreground).await;
        gone(&mut watch, "owner").await;
        assert!(get(&cluster, "child").is_some());
    })
    .await;
}

/// Each waits for the other; both go.
#[tokio::test]
async fn a_circle_is_broken() {
    with_collector(async |cluster| {
        let mut watch = cluster.watch("configmaps").await;
        let first = make(&cluster, "first", &[], &[]).await;
        let second = make(&cluster, "second", &[("first", &first, true)], &[]).await;
        let mut object = get(&cluster, "first").expect("it is there");
        let back = format!(
            r#"[{{"apiVersion":"v1","kind":"ConfigMap","name":"second","uid":"{second}",
                 "blockOwnerDeletion":true}}]"#
        );
        object.object_entry("metadata").insert("ownerReferences", crate::cluster::tree(&back));
        cluster.update("configmaps", object).await.expect("updated");
        cluster.delete_with("configmaps", "ns", "first", Propagation::Foreground).await;
        gone(&mut watch, "first").await;
        while get(&cluster, "second").is_some() {
            crate::cluster::next(&mut watch).await;
        }
    })
    .await;
}

/// KCM-01: dependents stay, and forget their owner, also those made just before it went.
#[tokio::test]
async fn orphans_stay() {
    with_collector(async |cluster| {
        let mut watch = cluster.watch("configmaps").await;
        for round in 0..20 {
            let owner = make(&cluster, "owner", &[], &[]).await;
            let child = format!("child-{round}");
            make(&cluster, &child, &[("owner", &owner, true)], &[]).await;
            cluster.delete_with("configmaps", "ns", "owner", Propagation::Orphan).await;
            gone(&mut watch, "owner").await;
            assert!(get(&cluster, &child).is_some_and(|child| has_no_owner(&child)), "{child}");
        }
    })
    .await;
}

/// What was left when the server stopped is found when it starts.
#[tokio::test]
async fn what_is_already_there_is_looked_at() {
    let cluster = Cluster::start().await;
    cluster.create("namespaces", r#"{"metadata":{"name":"ns"}}"#).await.expect("created");
    make(&cluster, "child", &[("nobody", "nobody", false)], &[]).await;
    let mut watch = cluster.watch("configmaps").await;
    let collector = running(&cluster);
    gone(&mut watch, "child").await;
    collector.stop().await;
}

/// Many at once, over several collections and generations.
#[tokio::test]
async fn a_large_family_goes() {
    with_collector(async |cluster| {
        let owner = make(&cluster, "owner", &[], &[]).await;
        for child in 0..20 {
            let name = format!("child-{child}");
            let uid = make(&cluster, &name, &[("owner", &owner, child % 2 == 0)], &[]).await;
            for grandchild in 0..10 {
                let text = format!(
                    r#"{{"metadata":{{"name":"{name}-{grandchild}","namespace":"ns","ownerReferences":[
                        {{"apiVersion":"v1","kind":"ConfigMap","name":"{name}","uid":"{uid}"}}]}}}}"#
                );
                cluster.create("secrets", &text).await.expect("created");
            }
        }
        let mut watch = cluster.watch("secrets").await;
        cluster.delete("configmaps", "ns", "owner").await.expect("deleted");
        while cluster.count("secrets").await > 0 {
            crate::cluster::next(&mut watch).await;
        }
        assert_eq!(cluster.count("configmaps").await, 0);
    })
    .await;
}

/// How often the collector evaluations at objects grows with their number, not with the number of pairs: an owner
/// that waits for many is not the reason to look at all of them whenever one changes.
#[tokio::test]
async fn an_owner_of_many_is_no_reason_to_look_at_all_of_them_each_time() {
    const DEPENDENTS: u64 = 400;
    for propagation in [Propagation::Foreground, Propagation::Orphan, Propagation::Background] {
        with_collector(async |cluster| {
            let mut watch = cluster.watch("configmaps").await;
            let owner = make(&cluster, "owner", &[], &[]).await;
            for child in 0..DEPENDENTS {
                make(&cluster, &format!("child-{child}"), &[("owner", &owner, true)], &[]).await;
            }
            cluster.delete_with("configmaps", "ns", "owner", propagation).await;
            gone(&mut watch, "owner").await;
            let is_left =
                |n| get(&cluster, &format!("child-{n}")).is_some_and(|c| !has_no_owner(&c));
            while (0..DEPENDENTS).any(is_left) {
                crate::cluster::next(&mut watch).await;
            }
            // When it is made, when its owner goes, when it changes for that, and the owner each time.
            let evaluations = cluster.environment.collector.evaluations();
            assert!(evaluations <= 6 * DEPENDENTS, "{evaluations} evaluations, {propagation:?}");
        })
        .await;
    }
}
