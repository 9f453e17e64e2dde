use std::time::Duration;

use pintle_meta::Reason;
use pintle_value::Value;

use super::content::waits;
use crate::cluster::{Cluster, Running, gone, tree};

fn running(cluster: &Cluster) -> Running {
    let environment = cluster.environment.clone();
    Running::start(|stopped| {
        super::run(environment, Duration::ZERO, async move { _ = stopped.await })
    })
}

async fn namespace(cluster: &Cluster, name: &str) {
    let text = format!(r#"{{"metadata":{{"name":"{name}"}}}}"#);
    cluster.create("namespaces", &text).await.expect("created");
}

/// Returns status and message of a condition.
fn condition(namespace: &Value, kind: &str) -> Option<(String, String)> {
    let conditions = namespace.at(&["status", "conditions"]).and_then(Value::as_array)?;
    let found = conditions.iter().find(|c| c.str_at(&["type"]) == Some(kind))?;
    Some((found.str_at(&["status"])?.to_owned(), found.str_at(&["message"])?.to_owned()))
}

/// KCM-02, DEL-10
#[tokio::test]
async fn deleting_a_namespace_deletes_its_content() {
    let cluster = Cluster::start().await;
    let controller = running(&cluster);
    for name in ["doomed", "other"] {
        namespace(&cluster, name).await;
        let metadata = format!(r#""metadata":{{"name":"a","namespace":"{name}"}}"#);
        for (resource, rest) in [
            ("configmaps", ""),
            ("secrets", ""),
            ("coordination.k8s.io/leases", ""),
            ("events", &format!(r#","involvedObject":{{"namespace":"{name}"}}"#)),
            ("pods", r#","spec":{"containers":[{"name":"a","image":"i"}]}"#),
        ] {
            let text = format!("{{{metadata}{rest}}}");
            cluster.create(resource, &text).await.unwrap_or_else(|status| panic!("{status}"));
        }
    }
    let mut watch = cluster.watch("namespaces").await;
    cluster.delete("namespaces", "", "doomed").await.expect("deleted");
    gone(&mut watch, "doomed").await;
    for resource in ["configmaps", "secrets", "coordination.k8s.io/leases", "events", "pods"] {
        assert!(cluster.get(resource, "doomed", "a").is_none(), "{resource} are gone");
        assert!(cluster.get(resource, "other", "a").is_some(), "other {resource} are not");
    }
    controller.stop().await;
}

/// KCM-02
#[tokio::test]
async fn a_namespace_waits_for_finalizers_and_reports_them() {
    let cluster = Cluster::start().await;
    let controller = running(&cluster);
    namespace(&cluster, "ns").await;
    let held = r#"{"metadata":{"name":"held","namespace":"ns","finalizers":["example.com/f"]}}"#;
    cluster.create("configmaps", held).await.expect("created");
    let mut watch = cluster.watch("namespaces").await;
    cluster.delete("namespaces", "", "ns").await.expect("deleted");

    const REMAINING: &str = "NamespaceFinalizersRemaining";
    let seen = cluster.see("namespaces", "ns", |ns| condition(ns, REMAINING).is_some()).await;
    assert_eq!(seen.str_at(&["status", "phase"]), Some("Terminating"));
    let condition_of = |kind: &str| condition(&seen, kind).unwrap_or_else(|| panic!("no {kind}"));
    let yes = |message: &str| ("True".to_owned(), message.to_owned());
    assert_eq!(
        condition_of(REMAINING),
        yes("Some content in the namespace has finalizers remaining: example.com/f in 1 resource \
             instances")
    );
    assert_eq!(
        condition_of("NamespaceContentRemaining"),
        yes("Some resources are remaining: configmaps. has 1 resource instances")
    );
    assert_eq!(condition_of("NamespaceDeletionContentFailure").0, "False");

    // Meanwhile creates are refused.
    let refused =
        cluster.create("configmaps", r#"{"metadata":{"name":"b","namespace":"ns"}}"#).await;
    assert_eq!(refused.unwrap_err().reason, Some(Reason::Forbidden));

    let mut object = cluster.get("configmaps", "ns", "held").expect("it is held");
    object.object_entry("metadata").remove("finalizers");
    cluster.update("configmaps", object).await.expect("updated");
    gone(&mut watch, "ns").await;
    controller.stop().await;
}

/// Objects whose deletion would change nothing are not deleted again.
#[test]
fn objects_wait_for_their_grace_period_or_others_finalizers() {
    let rows = [
        (r#""deletionGracePeriodSeconds":30"#, true),
        (r#""deletionGracePeriodSeconds":0,"finalizers":["example.com/f"]"#, true),
        (r#""deletionGracePeriodSeconds":0,"finalizers":["example.com/f","orphan"]"#, false),
        (r#""deletionGracePeriodSeconds":0,"finalizers":["foregroundDeletion"]"#, false),
        (r#""deletionGracePeriodSeconds":0"#, false),
        (r#""finalizers":["example.com/f"]"#, false),
    ];
    for (metadata, expected) in rows {
        let deleted = r#""deletionTimestamp":"2026-01-01T00:00:00Z""#;
        let object = tree(&format!(r#"{{"metadata":{{{deleted},{metadata}}}}}"#));
        assert_eq!(waits(&object), expected, "{metadata}");
        assert!(!waits(&tree(&format!(r#"{{"metadata":{{{metadata}}}}}"#))), "{metadata}");
    }
}

/// A namespace that terminated before the controller started, with a finalizer of another
/// controller.
#[tokio::test]
async fn other_finalizers_block_a_namespace() {
    let cluster = Cluster::start().await;
    let text = r#"{"metadata":{"name":"ns"},"spec":{"finalizers":["example.com/other"]}}"#;
    cluster.create("namespaces", text).await.expect("created");
    cluster.delete("namespaces", "", "ns").await.expect("deleted");
    let controller = running(&cluster);
    let finalizers = |ns: &Value| {
        let list = ns.at(&["spec", "finalizers"]).and_then(Value::as_array).unwrap_or_default();
        list.iter().filter_map(Value::as_str).map(str::to_owned).collect::<Vec<_>>()
    };
    let left = cluster.see("namespaces", "ns", |ns| finalizers(ns).len() == 1).await;
    assert_eq!(finalizers(&left), ["example.com/other"]);
    controller.stop().await;
}

#[tokio::test]
async fn active_namespaces_are_not_changed() {
    let cluster = Cluster::start().await;
    let controller = running(&cluster);
    for name in ["default", "ns", "doomed"] {
        namespace(&cluster, name).await;
    }
    let refused = cluster.delete("namespaces", "", "default").await.unwrap_err();
    assert_eq!(
        refused.message,
        "namespaces \"default\" is forbidden: this namespace may not be deleted"
    );
    let mut watch = cluster.watch("namespaces").await;
    cluster.delete("namespaces", "", "doomed").await.expect("deleted");
    gone(&mut watch, "doomed").await;
    for name in ["default", "ns"] {
        let namespace = cluster.get("namespaces", "", name).expect("it lives");
        assert_eq!(namespace.str_at(&["status", "phase"]), Some("Active"), "{name}");
    }
    controller.stop().await;
}

/// A slow webhook delays a create until its namespace is terminating or deleted: the create fails,
/// and leaves no object.
#[tokio::test]
async fn no_object_outlives_its_namespace() {
    let (cluster, gate) = Cluster::gated().await;
    let controller = running(&cluster);
    for (name, stays, expected) in [
        ("gone", false, r#"namespaces "gone" not found"#),
        (
            "going",
            true,
            "unable to create new content in namespace going because it is being terminated",
        ),
    ] {
        let finalizers = if stays { r#","finalizers":["example.com/x"]"# } else { "" };
        let text = format!(r#"{{"metadata":{{"name":"{name}"{finalizers}}}}}"#);
        cluster.create("namespaces", &text).await.expect("created");
        let late = tokio::spawn({
            let (cluster, labels) = (cluster.clone(), r#""labels":{"held":""}"#);
            let text = format!(r#"{{"metadata":{{"name":"late","namespace":"{name}",{labels}}}}}"#);
            async move { cluster.create("configmaps", &text).await }
        });
        gate.reached().await;
        let mut watch = cluster.watch("namespaces").await;
        cluster.delete("namespaces", "", name).await.expect("deleted");
        if !stays {
            gone(&mut watch, name).await;
        }
        gate.open();
        let refused = late.await.expect("it ends").expect_err("its namespace is deleted");
        assert!(refused.message.contains(expected), "{refused}");
        assert!(cluster.get("configmaps", name, "late").is_none());
    }
    controller.stop().await;
}

/// A change of a namespace does not refuse concurrent creates in it.
#[tokio::test]
async fn a_namespace_may_change_during_a_create_in_it() {
    let (cluster, gate) = Cluster::gated().await;
    namespace(&cluster, "busy").await;
    let late = tokio::spawn({
        let cluster = cluster.clone();
        let text = r#"{"metadata":{"name":"late","namespace":"busy","labels":{"held":""}}}"#;
        async move { cluster.create("configmaps", text).await }
    });
    gate.reached().await;
    let mut changed = cluster.get("namespaces", "", "busy").expect("there");
    pintle_meta::object::metadata_mut(&mut changed).entry_object("labels").insert("a", "b");
    cluster.update("namespaces", changed).await.expect("updated");
    gate.open();
    late.await.expect("it ends").expect("created");
}
