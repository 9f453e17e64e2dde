use std::sync::Arc;

use pintle_effects::{PortRange, PortRepair};
use pintle_registry::Resource;
use pintle_registry::allocation::Companion;
use pintle_value::Value;

use crate::cluster::{Cluster, Running, tree};

/// Starts a cluster with a namespace and addresses for services.
async fn start() -> Cluster {
    let cluster = Cluster::assigning().await;
    for (resource, object) in [
        ("namespaces", r#"{"metadata":{"name":"n"}}"#),
        (
            "networking.k8s.io/servicecidrs",
            r#"{"metadata":{"name":"a"},"spec":{"cidrs":["10.0.0.0/24"]}}"#,
        ),
    ] {
        cluster.create(resource, object).await.expect("it is made");
    }
    cluster
}

/// Returns the resource of the record, which no URL names.
fn ranges(cluster: &Cluster) -> Arc<Resource> {
    let ranges = pintle_kinds::internal("ranges").expect("ranges are known");
    cluster.environment.registry.unserved(ranges)
}

/// Returns the record.
fn record(cluster: &Cluster) -> Value {
    let found = cluster.environment.registry.peek(&ranges(cluster), "", "servicenodeports");
    found.expect("there is a record").tree().expect("it can be read")
}

/// Checks the data of the record.
#[track_caller]
fn check(cluster: &Cluster, data: &str) {
    let record = record(cluster);
    assert_eq!(record.str_at(&["range"]), Some("30000-32767"));
    assert_eq!(record.str_at(&["data"]), Some(data));
}

fn service(name: &str, port: i64) -> String {
    format!(
        r#"{{"metadata":{{"name":"{name}","namespace":"n"}},
            "spec":{{"type":"NodePort","ports":[{{"port":80,"nodePort":{port}}}]}}}}"#
    )
}

#[tokio::test]
async fn ports_are_recorded_and_released_with_their_service() {
    let cluster = start().await;
    check(&cluster, "");
    cluster.create("services", &service("a", 30000)).await.expect("the port is free");
    cluster.create("services", &service("b", 30009)).await.expect("the port is free");
    check(&cluster, "AgE="); // 0x0201
    let refused = cluster.create("services", &service("c", 30009)).await.expect_err("it is taken");
    assert!(refused.message.contains("provided port is already allocated"), "{refused}");
    cluster.delete_now("services", "n", "a").await;
    check(&cluster, "AgA="); // 0x0200
}

/// A record of another port range is replaced, and marks of older releases are removed.
#[tokio::test]
async fn the_record_is_rebuilt_from_services() {
    let cluster = start().await;
    cluster.create("services", &service("a", 30001)).await.expect("the port is free");
    let (registry, ranges) = (&cluster.environment.registry, ranges(&cluster));
    let found = registry.peek(&ranges, "", "servicenodeports").expect("there is a record");
    let other = tree(r#"{"kind":"RangeAllocation","apiVersion":"v1","range":"1-9","data":"/w=="}"#);
    let mark = Companion::mark("servicenodeports", "30001", "n/a");
    let written =
        registry.write_hidden(&ranges, "servicenodeports", other, Some(&found), vec![mark]).await;
    assert!(written.expect("it is written"));
    assert!(registry.is_marked("servicenodeports", "30001"));
    let mut repair = PortRepair::new(PortRange::default(), Arc::default());
    repair.repair(registry).await.expect("it is repaired");
    check(&cluster, "Ag==");
    assert!(!registry.is_marked("servicenodeports", "30001"));
    let revision = registry.head();
    repair.repair(registry).await.expect("there is nothing to repair");
    assert_eq!(registry.head(), revision);
}

#[tokio::test]
async fn repaired_ports_are_reported() {
    let cluster = start().await;
    cluster.create("services", &service("a", 30001)).await.expect("the port is free");
    let (registry, ranges) = (&cluster.environment.registry, ranges(&cluster));
    let found = registry.peek(&ranges, "", "servicenodeports").expect("there is a record");
    let none =
        tree(r#"{"kind":"RangeAllocation","apiVersion":"v1","range":"30000-32767","data":""}"#);
    let written =
        registry.write_hidden(&ranges, "servicenodeports", none, Some(&found), Vec::new()).await;
    assert!(written.expect("it is written"));
    let mut repair = PortRepair::new(PortRange::default(), Arc::default());
    repair.repair(registry).await.expect("it is repaired");
    check(&cluster, "Ag==");
    let environment = cluster.environment.clone();
    let controller = Running::start(|stopped| {
        super::run(environment, "m".into(), repair, async { _ = stopped.await })
    });
    let event = cluster.see("events.k8s.io/events", "a.38d7ea4c68000", |_| true).await;
    controller.stop().await;
    for (path, expected) in [
        ("reason", "PortNotAllocated"),
        ("message", "Port 30001 is not allocated; repairing"),
        ("action", "PortAllocation"),
        ("reportingComponent", "portallocator-repair-controller"),
        ("reportingInstance", "portallocator-repair-controller-m"),
    ] {
        assert_eq!(event.str_at(&[path]), Some(expected));
    }
}
