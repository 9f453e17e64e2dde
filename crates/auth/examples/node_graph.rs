//! Measures the time and memory of the Node authorizer's graph in a cluster of 5,000 nodes and
//! 150,000 pods, each with its own secret, config map and volume:
//! `cargo run --release -p pintle-auth --example node_graph`.

#![expect(clippy::print_stdout, reason = "this is a program")]

use std::fs;
use std::time::{Duration, Instant};

use pintle_auth::node::{Graph, Kind, Policy};
use pintle_auth::{Attributes, Decision, Objects, Subject, User};
use pintle_value::{Value, json};

const NODES: usize = 5_000;
const PODS: usize = 150_000;
const NAMESPACES: usize = 200;

fn main() {
    // Objects are parsed before memory is measured, so they do not count.
    let pods: Vec<Value> = (0..PODS).map(pod).collect();
    let volumes: Vec<Value> = (0..PODS).map(volume).collect();
    let mut graph = Graph::default();
    let (before, began) = (resident_bytes(), Instant::now());
    for index in 0..PODS {
        graph.set(Kind::Pod, &namespace(index), &format!("pod-{index}"), &pods[index]);
        graph.set(Kind::Volume, "", &format!("volume-{index}"), &volumes[index]);
    }
    println!("built          {:?}", began.elapsed());
    println!("memory         {} MB", (resident_bytes() - before) / 1_000_000);

    let users: Vec<User> = (0..NODES).map(user).collect();
    let policy = Policy::default();
    let allows = |node: usize, resource: &str, namespace: &str, name: &str| {
        let objects = Objects { version: "v1", resource, namespace, name, ..Objects::default() };
        let subject = Subject::Resource(objects);
        let attributes = Attributes { user: &users[node % NODES], verb: "get", subject };
        let ruling = policy.authorize(&attributes, |node, object| graph.reaches(node, object));
        ruling.decision == Decision::Allow
    };
    let secret =
        |node, index| allows(node, "secrets", &namespace(index), &format!("secret-{index}"));
    time("own secret", |index| assert!(secret(index, index)));
    time("own volume", |index| {
        assert!(allows(index, "persistentvolumes", "", &format!("volume-{index}")));
    });
    time("other's secret", |index| assert!(!secret(index + 1, index)));
    time("pod replaced", |index| {
        let (namespace, name) = (namespace(index), format!("pod-{index}"));
        graph.remove(Kind::Pod, &namespace, &name);
        graph.set(Kind::Pod, &namespace, &name, &pods[index]);
    });
}

fn time(what: &str, mut action: impl FnMut(usize)) {
    let began = Instant::now();
    (0..PODS).for_each(&mut action);
    let each: Duration = began.elapsed() / u32::try_from(PODS).unwrap_or(u32::MAX);
    println!("{what:14} {each:?}");
}

fn namespace(index: usize) -> String {
    format!("namespace-{}", index % NAMESPACES)
}

fn user(node: usize) -> User {
    User {
        name: format!("system:node:node-{node}"),
        groups: vec!["system:nodes".to_owned()],
        ..User::default()
    }
}

fn pod(index: usize) -> Value {
    let text = format!(
        r#"{{"spec":{{"nodeName":"node-{}","serviceAccountName":"account","volumes":[
            {{"name":"own","secret":{{"secretName":"secret-{index}"}}}},
            {{"name":"shared","secret":{{"secretName":"shared"}}}},
            {{"name":"map","configMap":{{"name":"map-{index}"}}}},
            {{"name":"data","persistentVolumeClaim":{{"claimName":"claim-{index}"}}}}]}}}}"#,
        index % NODES,
    );
    json::parse(text.as_bytes()).expect("this is JSON")
}

fn volume(index: usize) -> Value {
    let text = format!(
        r#"{{"spec":{{"claimRef":{{"namespace":"{}","name":"claim-{index}"}}}}}}"#,
        namespace(index)
    );
    json::parse(text.as_bytes()).expect("this is JSON")
}

fn resident_bytes() -> usize {
    let status = fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages = status.split(' ').nth(1).and_then(|pages| pages.parse::<usize>().ok());
    pages.unwrap_or_default() * 4096
}
