//! What the Node authorizer's graph costs in a cluster of 5,000 nodes and 150,000 pods:
//! `cargo run --release -p pintle-auth --example node_graph`.

#![expect(clippy::print_stdout, reason = "this is a program")]

use std::fs;
use std::hint::black_box;
use std::time::{Duration, Instant};

use pintle_auth::node::{Graph, Kind, Policy};
use pintle_auth::{Attributes, Decision, Objects, Subject, User};
use pintle_value::{Value, json};

const NODES: usize = 5_000;
const PODS: usize = 150_000;
const NAMESPACES: usize = 500;
/// Every so many pods have a volume with a secret of its driver.
const POD_OF_VOLUME: usize = 10;
const QUESTIONS: usize = 1_000_000;
const CHANGES: usize = 100_000;

fn main() {
    let mut graph = Graph::default();
    // Texts that are parsed before memory is measured do not count.
    let pods: Vec<Value> = (0..PODS).map(pod).collect();
    let (before, began) = (resident_bytes(), Instant::now());
    for (index, pod) in pods.iter().enumerate() {
        graph.set(Kind::Pod, &namespace(index), &name(index), pod);
        if index % POD_OF_VOLUME == 0 {
            graph.set(Kind::Volume, "", &format!("pv-{index}"), &volume(index));
        }
    }
    println!("build      {:?}", began.elapsed());
    println!("memory     {} MB", (resident_bytes() - before) / 1_000_000);

    let users: Vec<User> = (0..NODES).map(user).collect();
    let policy = Policy::default();
    let ask = |index: usize, node: usize| {
        let (namespace, name) = (namespace(index), format!("own-{}", index % 20));
        let objects = Objects {
            version: "v1",
            resource: "secrets",
            namespace: &namespace,
            name: &name,
            ..Objects::default()
        };
        let subject = Subject::Resource(objects);
        let attributes = Attributes { user: &users[node], verb: "get", subject };
        let ruling = policy.authorize(&attributes, |node, object| graph.reaches(node, object));
        ruling.decision == Decision::Allow
    };
    let time = |node_of: &dyn Fn(usize) -> usize| {
        let began = Instant::now();
        let asked = (0..QUESTIONS).map(|question| question * 7919 % PODS);
        let allowed = asked.filter(|&pod| ask(pod, node_of(pod))).count();
        (each(began, QUESTIONS), black_box(allowed))
    };
    println!("allowed    {:?}", time(&|pod| pod % NODES));
    println!("refused    {:?}", time(&|pod| (pod + 1) % NODES));

    let began = Instant::now();
    for change in 0..CHANGES {
        let index = change * 7919 % PODS;
        graph.remove(Kind::Pod, &namespace(index), &name(index));
        graph.set(Kind::Pod, &namespace(index), &name(index), &pods[index]);
    }
    println!("change     {:?} for a pod that goes and comes back", each(began, CHANGES));
}

fn each(began: Instant, count: usize) -> Duration {
    began.elapsed() / u32::try_from(count).unwrap_or(u32::MAX)
}

fn namespace(index: usize) -> String {
    format!("namespace-{}", index / (PODS / NAMESPACES))
}

fn name(index: usize) -> String {
    format!("deployment-7d9c6b8f5d-{index:06}")
}

fn user(node: usize) -> User {
    User {
        name: format!("system:node:node-{node}"),
        groups: vec!["system:nodes".to_owned()],
        ..User::default()
    }
}

fn pod(index: usize) -> Value {
    let claim = match index % POD_OF_VOLUME {
        0 => format!(r#",{{"name":"d","persistentVolumeClaim":{{"claimName":"claim-{index}"}}}}"#),
        _ => String::new(),
    };
    let text = format!(
        r#"{{"spec":{{"nodeName":"node-{node}","serviceAccountName":"account-{account}",
            "imagePullSecrets":[{{"name":"registry"}}],
            "volumes":[{{"name":"s","secret":{{"secretName":"own-{own}"}}}},
            {{"name":"c","configMap":{{"name":"settings-{own}"}}}},
            {{"name":"t","projected":{{"sources":[{{"configMap":{{"name":"kube-root-ca.crt"}}}}]}}}}{claim}]}}}}"#,
        node = index % NODES,
        account = index % 5,
        own = index % 20,
    );
    json::parse(text.as_bytes()).expect("this is JSON")
}

fn volume(index: usize) -> Value {
    let text = format!(
        r#"{{"spec":{{"claimRef":{{"namespace":"{}","name":"claim-{index}"}},
            "csi":{{"driver":"d","nodePublishSecretRef":{{"namespace":"storage","name":"driver"}}}}}}}}"#,
        namespace(index)
    );
    json::parse(text.as_bytes()).expect("this is JSON")
}

fn resident_bytes() -> usize {
    let status = fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages = status.split(' ').nth(1).and_then(|pages| pages.parse::<usize>().ok());
    pages.unwrap_or_default() * 4096
}
