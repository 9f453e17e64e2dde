//! Destinations by names and pods, in tables.

use std::time::{Duration, Instant};

use pintle_value::json;

use super::*;
use crate::cluster;

#[test]
fn names_are_parsed_with_schemes_and_ports() {
    let rows = [
        ("a", Some(("", "a", ""))),
        ("a:80", Some(("", "a", "80"))),
        ("https:a:web", Some(("https", "a", "web"))),
        ("https:a:", Some(("https", "a", ""))),
        ("ftp:a:80", None),
        (":80", None),
        ("a:b:c:d", None),
    ];
    for (id, expected) in rows {
        assert_eq!(split(id), expected, "{id}");
    }
}

#[test]
fn a_container_is_named_or_the_only_one() {
    let one = r#"{"spec":{"initContainers":[{"name":"i"}],"containers":[{"name":"c"}]}}"#;
    let two =
        r#"{"spec":{"initContainers":[{"name":"i"}],"containers":[{"name":"c"},{"name":"d"}]}}"#;
    let rows = [
        (one, "", "c"),
        (one, "c", "c"),
        (one, "i", "i"),
        (one, "x", "container x is not valid for pod p"),
        (two, "d", "d"),
        (two, "", "a container name must be specified for pod p, choose one of: [i c d]"),
        ("{}", "", "a container name must be specified for pod p"),
    ];
    for (pod, container, expected) in rows {
        let pod = json::parse(pod.as_bytes()).unwrap();
        let chosen = choose_container(&pod, "p", container);
        let message = chosen.unwrap_or_else(|status| status.message);
        assert_eq!(message, expected, "{container}");
    }
}

#[test]
fn an_address_of_the_preferred_type_is_chosen() {
    let node = r#"{"status":{"addresses":[{"type":"InternalIP","address":"10.0.0.1"},
        {"type":"Hostname","address":"n"},{"type":"InternalIP","address":"fd00::1"}]}}"#;
    let rows: &[(&str, &[&str], &str)] = &[
        (node, &["Hostname", "InternalIP"], "n"),
        (node, &["InternalDNS", "InternalIP"], "10.0.0.1"),
        (
            node,
            &["ExternalIP"],
            "no preferred addresses found; known addresses: [{InternalIP 10.0.0.1} {Hostname n} \
             {InternalIP fd00::1}]",
        ),
        ("{}", &["Hostname"], "no preferred addresses found; known addresses: []"),
    ];
    for (node, types, expected) in rows {
        let node = json::parse(node.as_bytes()).unwrap();
        let types: Vec<String> = types.iter().map(|name| (*name).to_owned()).collect();
        let found = preferred_address(&node, &types).unwrap_or_else(|status| status.message);
        assert_eq!(found, *expected, "{types:?}");
    }
}

/// Endpoints with an address per row: the pod's name and the IP.
async fn with_endpoints(registry: &Registry, addresses: impl Iterator<Item = (String, String)>) {
    let of = |(name, ip): (String, String)| {
        let reference =
            Value::from([("namespace", cluster::NAMESPACE), ("name", &*name), ("kind", "Pod")]);
        Value::from([("ip", Value::from(ip)), ("targetRef", reference)])
    };
    let addresses: Vec<Value> = addresses.map(of).collect();
    let port = Value::from([("name", Value::from("")), ("port", 80.into())]);
    let subset =
        Value::from([("addresses", Value::from(addresses)), ("ports", Value::from(vec![port]))]);
    let endpoints = Value::from([
        ("metadata", Value::from([("name", "s")])),
        ("subsets", Value::from(vec![subset])),
    ]);
    let all = cluster::target(registry, "endpoints", "", "");
    cluster::create(registry, &all, endpoints).await.unwrap_or_else(|status| panic!("{status}"));
}

/// A pod with an address and a long environment variable.
async fn with_pod(registry: &Registry, name: &str, ip: &str, len: usize) {
    let long = "x".repeat(len);
    let metadata = format!(r#""metadata":{{"name":"{name}"}}"#);
    let pod = format!(
        r#"{{{metadata},"spec":{{"containers":[{{"name":"c","image":"i","env":[{{"name":"A","value":"{long}"}}]}}]}}}}"#
    );
    let all = cluster::target(registry, "pods", "", "");
    cluster::create(registry, &all, cluster::tree(&pod)).await.expect("created");
    let status = format!(
        r#"{{"apiVersion":"v1","kind":"Pod",{metadata},"status":{{"podIP":"{ip}","podIPs":[{{"ip":"{ip}"}}]}}}}"#
    );
    cluster::set_status(registry, "pods", &cluster::tree(&status)).await;
}

async fn found(registry: &Registry, entropy: fn(&mut [u8])) -> String {
    let target = cluster::target(registry, "services", "s", "proxy");
    match proxied(registry, &target, &[], entropy).await {
        Ok(Destination::Address { host, .. }) => host,
        Ok(other) => panic!("{other:?}"),
        Err(status) => status.message.to_string(),
    }
}

#[tokio::test]
async fn a_random_endpoint_that_is_a_pod_is_chosen() {
    let registry = cluster::registry().await;
    with_pod(&registry, "a", "10.1.0.1", 1).await;
    with_pod(&registry, "b", "10.1.0.2", 1).await;
    let rows = [("a", "10.1.0.1"), ("a", "10.1.0.9"), ("b", "10.1.0.2"), ("none", "10.1.0.3")];
    let rows = rows.iter().map(|(name, ip)| ((*name).to_owned(), (*ip).to_owned()));
    with_endpoints(&registry, rows).await;
    type Row = (fn(&mut [u8]), &'static str);
    let rows: [Row; 4] = [
        (|bytes| bytes[0] = 0, "10.1.0.1:80"),
        (|bytes| bytes[0] = 1, "10.1.0.2:80"),
        (|bytes| bytes[0] = 2, "10.1.0.2:80"),
        (|bytes| bytes[0] = 3, "10.1.0.1:80"),
    ];
    for (index, (entropy, expected)) in rows.into_iter().enumerate() {
        assert_eq!(found(&registry, entropy).await, expected, "{index}");
    }
}

/// Many addresses of one large pod are as much work as one. A search among more pods than it may
/// read ends.
#[tokio::test]
async fn a_search_among_many_addresses_ends_soon() {
    const ADDRESSES: usize = 15_000;
    let none = "no endpoints available for service \"s\"";
    for pods in [1, 60] {
        let registry = cluster::registry().await;
        for pod in 0..pods {
            with_pod(&registry, &format!("p{pod}"), "10.1.0.1", 1_400_000).await;
        }
        let address = |n: usize| format!("10.2.{}.{}", n / 250, n % 250 + 1);
        let all = (0..ADDRESSES).map(|n| (format!("p{}", n % pods), address(n)));
        with_endpoints(&registry, all).await;
        let began = Instant::now();
        assert_eq!(found(&registry, |bytes| bytes.fill(0)).await, none, "{pods}");
        assert!(began.elapsed() < Duration::from_secs(20), "{pods}: {:?}", began.elapsed());
    }
}
