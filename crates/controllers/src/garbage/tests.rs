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
async fn a_deletion_cascades_to_dependents() {
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
async fn an_owner_with_another_uid_counts_as_absent() {
    with_collector(async |cluster| {
        let mut watch = cluster.watch("configmaps").await;
        make(&cluster, "owner", &[], &[]).await;
        make(&cluster, "child", &[("owner", "another", false)], &[]).await;
        gone(&mut watch, "child").await;
        assert!(get(&cluster, "owner").is_some());
    })
    .await;
}

/// An object stays while one owner exists; references to absent owners are removed.
#[tokio::test]
async fn one_existing_owner_protects_a_dependent() {
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
async fn an_owner_of_an_unserved_kind_protects_its_dependents() {
    with_collector(async |cluster| {
        let mut watch = cluster.watch("configmaps").await;
        let text = r#"{"metadata":{"name":"child","namespace":"ns","ownerReferences":[
            {"apiVersion":"example.com/v1","kind":"Unheard","name":"x","uid":"x"}]}}"#;
        cluster.create("configmaps", text).await.expect("created");
        make(&cluster, "last", &[("nobody", "nobody", false)], &[]).await;
        gone(&mut watch, "last").await; // created and evaluated after the child
        assert!(get(&cluster, "child").is_some());
    })
    .await;
}

/// KCM-01: the owner stays until its blocking dependents are deleted.
#[tokio::test]
async fn a_foreground_deletion_deletes_dependents_first() {
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

/// A dependent that does not block is deleted after its owner.
#[tokio::test]
async fn a_foreground_deletion_does_not_wait_for_nonblocking_dependents() {
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

/// Each owner waits for the other; both are deleted.
#[tokio::test]
async fn a_cycle_of_blocking_owners_is_broken() {
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

/// KCM-01: dependents stay and lose the owner reference, even those created just before the
/// deletion.
#[tokio::test]
async fn an_orphaning_deletion_keeps_dependents() {
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

/// Dependents that were left when the server stopped are found at the next start.
#[tokio::test]
async fn existing_objects_are_evaluated_at_start() {
    let cluster = Cluster::start().await;
    cluster.create("namespaces", r#"{"metadata":{"name":"ns"}}"#).await.expect("created");
    make(&cluster, "child", &[("nobody", "nobody", false)], &[]).await;
    let mut watch = cluster.watch("configmaps").await;
    let collector = running(&cluster);
    gone(&mut watch, "child").await;
    collector.stop().await;
}

/// Many dependents, in several collections and generations.
#[tokio::test]
async fn a_deletion_cascades_to_many_dependents() {
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

/// The number of evaluations grows with the number of objects, not of pairs: a change of one
/// dependent does not evaluate all dependents of its owner.
#[tokio::test]
async fn the_cost_of_a_change_does_not_depend_on_the_number_of_dependents() {
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
            // Evaluations: of a dependent when it is created, when its owner is deleted and when it
            // changes because of that, and of the owner each time.
            let evaluations = cluster.environment.collector.evaluations();
            assert!(evaluations <= 6 * DEPENDENTS, "{evaluations} evaluations, {propagation:?}");
        })
        .await;
    }
}

/// An object that many owner references of another one name is read once, and without its own
/// references: reading it for each reference would take hours.
#[tokio::test]
async fn many_references_to_one_owner_are_resolved_soon() {
    const REFERENCES: usize = 8000;
    with_collector(async |cluster| {
        let mut watch = cluster.watch("configmaps").await;
        let references = |of: &str| -> String {
            let one = |n| format!(r#"{{"apiVersion":"v1","kind":"ConfigMap","name":"o","uid":"{of}{n}"}}"#);
            (0..REFERENCES).map(one).collect::<Vec<_>>().join(",")
        };
        let unserved = r#"{"apiVersion":"example.com/v1","kind":"Unheard","name":"x","uid":"x"}"#;
        let rows = [
            ("o", format!("{unserved},{}", references("a"))),
            ("d", references("b")),
        ];
        for (name, references) in rows {
            let text = format!(
                r#"{{"metadata":{{"name":"{name}","namespace":"ns","ownerReferences":[{references}]}}}}"#
            );
            cluster.create("configmaps", &text).await.expect("created");
        }
        gone(&mut watch, "d").await;
        assert!(get(&cluster, "o").is_some());
    })
    .await;
}
