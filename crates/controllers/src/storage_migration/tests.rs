use pintle_value::Value;

use super::conditions::is_true;
use crate::cluster::{Cluster, Running};

const MIGRATIONS: &str = "storagemigration.k8s.io/storageversionmigrations";
const CLASSES: &str = "scheduling.k8s.io/priorityclasses";

fn migration(name: &str, group: &str, resource: &str) -> String {
    format!(
        r#"{{"metadata":{{"name":"{name}"}},"spec":{{"resource":{{"group":"{group}",
            "resource":"{resource}"}}}}}}"#
    )
}

fn start(cluster: &Cluster) -> Running {
    let environment = cluster.environment.clone();
    Running::start(|stopped| super::run(environment, async move { _ = stopped.await }))
}

/// The conditions as `type=status reason: message`.
fn conditions(migration: &Value) -> Vec<String> {
    let all = migration.at(&["status", "conditions"]).and_then(Value::as_array);
    let text = |condition: &Value, member| condition.str_at(&[member]).unwrap_or("-").to_owned();
    let line = |c: &Value| {
        let [kind, status, reason, words] =
            ["type", "status", "reason", "message"].map(|member| text(c, member));
        format!("{kind}={status} {reason}: {words}")
    };
    all.unwrap_or_default().iter().map(line).collect()
}

fn is_over(migration: &Value) -> bool {
    super::is_terminal(migration) && !is_true(migration, "Running")
}

#[tokio::test]
async fn a_migration_succeeds_and_reports_its_conditions() {
    let cluster = Cluster::migrating().await;
    for name in ["a", "b"] {
        let class = format!(r#"{{"metadata":{{"name":"{name}"}},"value":1}}"#);
        cluster.create(CLASSES, &class).await.expect("created");
    }
    let before = cluster.get(CLASSES, "", "a");
    let classes = migration("m", "scheduling.k8s.io", "priorityclasses");
    cluster.create(MIGRATIONS, &classes).await.expect("created");
    let controller = start(&cluster);
    let seen = cluster.see(MIGRATIONS, "m", is_over).await;
    assert_eq!(
        conditions(&seen),
        [
            "Running=False MigrationCompleted: Migration completed",
            "Succeeded=True StorageVersionMigrationSucceeded: ",
        ]
    );
    let checkpoint = seen.str_at(&["status", "resourceVersion"]).unwrap_or_default();
    assert!(checkpoint.parse::<u64>().is_ok_and(|checkpoint| checkpoint > 0), "{checkpoint}");
    // An object in the current form is not committed again, and its field owners are unchanged.
    assert_eq!(cluster.get(CLASSES, "", "a"), before);
    controller.stop().await;
}

#[tokio::test]
async fn migrations_of_missing_and_unsupported_resources_fail() {
    let cluster = Cluster::migrating().await;
    cluster.create(MIGRATIONS, &migration("gone", "example.com", "things")).await.expect("created");
    cluster
        .create(MIGRATIONS, &migration("odd", "authorization.k8s.io", "subjectaccessreviews"))
        .await
        .expect("created");
    cluster.pass_seconds(61);
    let controller = start(&cluster);
    for (name, words) in [
        ("gone", "resource does not exist in discovery"),
        (
            "odd",
            "resource \"authorization.k8s.io/v1, Resource=subjectaccessreviews\" does not support \
             discovery operations: [update patch list]",
        ),
    ] {
        let seen = cluster.see(MIGRATIONS, name, is_over).await;
        assert_eq!(
            conditions(&seen)[1],
            format!("Failed=True StorageVersionMigrationFailed: {words}")
        );
    }
    controller.stop().await;
}

#[tokio::test]
async fn migrations_of_a_resource_run_one_after_the_other() {
    let cluster = Cluster::migrating().await;
    for name in ["b", "a"] {
        cluster.create(MIGRATIONS, &migration(name, "apps", "deployments")).await.expect("created");
        cluster.pass_seconds(1);
    }
    let controller = start(&cluster);
    let [first, second] =
        [cluster.see(MIGRATIONS, "b", is_over).await, cluster.see(MIGRATIONS, "a", is_over).await];
    let checkpoint = |m: &Value| {
        m.str_at(&["status", "resourceVersion"]).and_then(|text| text.parse::<u64>().ok())
    };
    assert!(checkpoint(&first) < checkpoint(&second), "{first:?} {second:?}");
    controller.stop().await;
}
