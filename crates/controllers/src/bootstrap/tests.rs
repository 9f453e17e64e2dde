use std::net::IpAddr;
use std::sync::Arc;

use pintle_kinds::RuntimeConfig;
use pintle_kinds::bootstrap::{BootstrapObject, Settings, objects};
use pintle_meta::object;
use pintle_value::Value;

use super::ensure;
use crate::cluster::Cluster;

fn wanted() -> Arc<[BootstrapObject]> {
    let settings = Settings {
        config: &RuntimeConfig::default(),
        service_ranges: &["10.96.0.0/12"],
        advertise_address: Some(IpAddr::from([192, 0, 2, 7])),
        secure_port: 6443,
        client_ca: Some("PEM"),
        request_header: None,
    };
    objects(&settings).into()
}

fn messages(failures: Vec<pintle_meta::Status>) -> Vec<String> {
    failures.into_iter().map(|status| status.message).collect()
}

/// BOOT-01
#[tokio::test]
async fn all_objects_are_created_and_a_second_run_writes_nothing() {
    let cluster = Cluster::assigning().await;
    let objects = wanted();
    assert_eq!(messages(ensure(&cluster.environment, &objects).await), [""; 0]);
    for made in objects.iter() {
        let resource = cluster.environment.registry.resource(&made.resource).expect("served");
        let (namespace, name) = (object::namespace(&made.object), object::name(&made.object));
        let stored = cluster.environment.registry.peek(&resource, namespace, name);
        assert!(stored.is_some(), "{:?} {name}", made.resource);
    }
    let head = cluster.environment.registry.head();
    assert_eq!(messages(ensure(&cluster.environment, &objects).await), [""; 0]);
    assert_eq!(cluster.environment.registry.head(), head, "a restart writes nothing");

    let range = cluster.get("networking.k8s.io/servicecidrs", "", "kubernetes").expect("made");
    let conditions = range.at(&["status", "conditions"]).and_then(Value::as_array);
    assert_eq!(conditions.map(<[Value]>::len), Some(1), "its status is written too");
    let default = cluster.get("namespaces", "", "default").expect("made");
    assert_eq!(default.str_at(&["status", "phase"]), Some("Active"));
}

#[tokio::test]
async fn missing_and_changed_objects_are_restored() {
    let cluster = Cluster::assigning().await;
    let objects = wanted();
    ensure(&cluster.environment, &objects).await;
    const SCHEMAS: &str = "flowcontrol.apiserver.k8s.io/flowschemas";
    const ROLES: &str = "rbac.authorization.k8s.io/clusterroles";
    cluster.delete(ROLES, "", "cluster-admin").await.expect("deleted");
    // Nobody may change `exempt` and `catch-all`; the others are restored while they are marked as
    // automatic.
    let mut schema = cluster.get(SCHEMAS, "", "global-default").expect("made");
    schema.object_entry("spec").insert("matchingPrecedence", 5000);
    cluster.update(SCHEMAS, schema).await.expect("updated");
    assert_eq!(messages(ensure(&cluster.environment, &objects).await), [""; 0]);
    assert!(cluster.get(ROLES, "", "cluster-admin").is_some());
    let schema = cluster.get(SCHEMAS, "", "global-default").expect("made");
    assert_eq!(schema.at(&["spec", "matchingPrecedence"]), Some(&Value::Int(9900)));
}
