//! Many clients that compete, over HTTPS: nothing is allocated twice, nothing is lost, and
//! allocations survive a restart.

use std::collections::BTreeSet;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use apiscript::Target;
use apiscript::http::Request;
use apiscript::kubeconfig::Cluster;
use pintle_testing::{Config, TestServer};
use serde_json::{Value, json};

const CLIENTS: usize = 64;
/// How long a step may take; only failing tests wait that long.
const TIMEOUT: Duration = Duration::from_secs(120);
const SERVICES: &str = "/api/v1/namespaces/default/services";
const PODS: &str = "/api/v1/namespaces/default/pods";
const BUDGETS: &str = "/apis/policy/v1/namespaces/default/poddisruptionbudgets";

/// A server with few addresses and ports, and its target.
struct World {
    server: TestServer,
    target: Target,
}

impl World {
    fn start(config: Config) -> Result<Self> {
        let server = TestServer::start_with(config)?;
        let cluster = Cluster::from_text(server.kubeconfig(), Path::new("."))?;
        Ok(Self { server, target: Target::new(cluster)? })
    }

    /// Sends a request; returns the status and the body.
    fn ask(&self, method: &str, path: &str, body: &Value) -> Result<(u16, Value)> {
        let kind = if method == "PATCH" { "merge-patch+json" } else { "json" };
        let request = Request {
            method: method.to_owned(),
            target: path.to_owned(),
            headers: vec![("Content-Type".to_owned(), format!("application/{kind}"))],
            body: (!body.is_null()).then(|| body.to_string().into_bytes()),
        };
        let response = self.target.connect(false)?.exchange(&request)?;
        Ok((response.head.status, serde_json::from_slice(&response.body)?))
    }

    /// Sends a request that must succeed.
    fn must(&self, method: &str, path: &str, body: &Value) -> Result<Value> {
        let (code, answer) = self.ask(method, path, body)?;
        ensure!(code < 300, "{method} {path}: {code} {answer}");
        Ok(answer)
    }

    /// Waits for the service account: pods wait for it for a second only.
    fn await_account(&self) -> Result<()> {
        let deadline = Instant::now() + TIMEOUT;
        let account = "/api/v1/namespaces/default/serviceaccounts/default";
        while self.ask("GET", account, &Value::Null)?.0 != 200 {
            ensure!(Instant::now() < deadline, "there is no account");
        }
        Ok(())
    }

    /// All clients send at the same time.
    fn all<T: Send>(&self, ask: impl Fn(&Self, usize) -> Result<T> + Sync) -> Result<Vec<T>> {
        thread::scope(|scope| {
            let ask = &ask;
            let clients: Vec<_> = (0..CLIENTS).map(|n| scope.spawn(move || ask(self, n))).collect();
            clients.into_iter().map(|client| client.join().expect("no client panics")).collect()
        })
    }

    fn addresses(&self) -> Result<BTreeSet<String>> {
        let list = self.must("GET", "/apis/networking.k8s.io/v1/ipaddresses", &Value::Null)?;
        let items = list["items"].as_array().context("a list has items")?;
        Ok(items.iter().map(|item| text(item, "/metadata/name")).collect())
    }
}

fn text(value: &Value, pointer: &str) -> String {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned()
}

fn small() -> Result<Config> {
    Ok(Config {
        service_cluster_ip_range: "10.9.0.0/26".to_owned(),
        service_node_port_range: "31000-31039".parse()?,
        ..Config::ephemeral()
    })
}

fn service(name: &str, port: Option<u64>) -> Value {
    json!({
        "metadata": {"name": name},
        "spec": {"type": "NodePort", "ports": [{"port": 80, "nodePort": port}]},
    })
}

/// There are 62 addresses and 40 ports, fewer than clients: each is allocated once, the other
/// clients get an error, and released ones can be allocated again.
#[test]
fn addresses_and_ports_are_allocated_once() -> Result<()> {
    let world = World::start(small()?)?;
    let own = BTreeSet::from(["10.9.0.1".to_owned()]);
    for _ in 0..2 {
        let outcomes =
            world.all(|world, n| world.ask("POST", SERVICES, &service(&format!("s{n}"), None)))?;
        let (mut ports, mut addresses) = (BTreeSet::new(), own.clone());
        for (code, answer) in &outcomes {
            if *code == 201 {
                let port = answer["spec"]["ports"][0]["nodePort"].as_u64();
                ensure!(ports.insert(port), "{port:?} was given twice");
                let address = text(answer, "/spec/clusterIP");
                ensure!(addresses.insert(address.clone()), "{address} was given twice");
            } else {
                let full = "failed to allocate a nodePort: range is full";
                ensure!(text(answer, "/message").contains(full), "{code} {answer}");
            }
        }
        ensure!(ports.len() == 40, "{} of 40 ports were given", ports.len());
        ensure!(world.addresses()? == addresses, "{:?}, not {addresses:?}", world.addresses()?);
        world.all(|world, n| world.ask("DELETE", &format!("{SERVICES}/s{n}"), &Value::Null))?;
        ensure!(world.addresses()? == own);
    }
    Ok(())
}

/// Allocated addresses and ports stay allocated after a restart, and no others.
#[test]
fn allocations_survive_a_restart() -> Result<()> {
    let directory = std::env::temp_dir().join(format!("pintle-contention-{}", std::process::id()));
    let config = Config { ephemeral: false, data_dir: directory.clone(), ..small()? };
    let world = World::start(config.clone())?;
    let port = |service: &Value| service["spec"]["ports"][0]["nodePort"].as_u64();
    let first = world.must("POST", SERVICES, &service("first", None))?;
    let gone = world.must("POST", SERVICES, &service("gone", None))?;
    world.must("DELETE", &format!("{SERVICES}/gone"), &Value::Null)?;
    let addresses = world.addresses()?;
    world.server.stop();

    let world = World::start(config)?;
    ensure!(world.addresses()? == addresses);
    let (code, refusal) = world.ask("POST", SERVICES, &service("a", port(&first)))?;
    ensure!(code == 422, "{code} {refusal}");
    let given = world.must("POST", SERVICES, &service("a", port(&gone)))?;
    ensure!(port(&given) == port(&gone));
    world.server.stop(); // its store writes until it is closed
    std::fs::remove_dir_all(directory)?;
    Ok(())
}

/// 64 clients evict 64 pods under one disruption budget, which allows ten.
#[test]
fn a_budget_is_not_overspent() -> Result<()> {
    let world = World::start(Config::ephemeral())?;
    world.await_account()?;
    world.all(|world, n| {
        let name = format!("p{n}");
        let metadata = json!({"name": name, "labels": {"app": "x"}});
        let spec = json!({"containers": [{"name": "c", "image": "i"}]});
        world.must("POST", PODS, &json!({"metadata": metadata, "spec": spec}))?;
        let ready = json!([{"type": "Ready", "status": "True"}]);
        let status = json!({"status": {"phase": "Running", "conditions": ready}});
        world.must("PATCH", &format!("{PODS}/{name}/status"), &status)
    })?;
    let selector = json!({"matchLabels": {"app": "x"}});
    let spec = json!({"minAvailable": 54, "selector": selector});
    world.must("POST", BUDGETS, &json!({"metadata": {"name": "b"}, "spec": spec}))?;
    let counted = json!({
        "observedGeneration": 1, "disruptionsAllowed": 10,
        "currentHealthy": 64, "desiredHealthy": 54, "expectedPods": 64,
    });
    world.must("PATCH", &format!("{BUDGETS}/b/status"), &json!({"status": counted}))?;

    let outcomes = world.all(|world, n| {
        let name = format!("p{n}");
        let eviction = json!({
            "apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name},
        });
        world.ask("POST", &format!("{PODS}/{name}/eviction"), &eviction)
    })?;
    let count = |wanted: u16| outcomes.iter().filter(|(code, _)| *code == wanted).count();
    ensure!((count(201), count(429)) == (10, 54), "{outcomes:?}");
    let left = world.must("GET", PODS, &Value::Null)?;
    ensure!(left["items"].as_array().is_some_and(|pods| pods.len() == 54));
    let budget = world.must("GET", &format!("{BUDGETS}/b"), &Value::Null)?;
    ensure!(budget["status"]["disruptionsAllowed"] == 0, "{budget}");
    ensure!(budget["status"]["disruptedPods"].as_object().is_some_and(|pods| pods.len() == 10));
    Ok(())
}

/// 64 clients overwrite one service without a resource version: all succeed, and it keeps its
/// allocations.
#[test]
fn unconditional_updates_all_succeed() -> Result<()> {
    let world = World::start(Config::ephemeral())?;
    let first = world.must("POST", SERVICES, &service("s", None))?;
    let updated = world.all(|world, n| {
        let mut service = service("s", None);
        service["metadata"]["annotations"] = json!({"n": n.to_string()});
        world.must("PUT", &format!("{SERVICES}/s"), &service)
    })?;
    for updated in updated {
        ensure!(updated["spec"] == first["spec"], "{updated}");
    }
    Ok(())
}

/// 64 clients create and delete objects in a namespace with two quotas that allow fewer: the quotas
/// are never exceeded, and are exact at the end, also after a restart.
#[test]
fn quotas_are_not_exceeded_and_count_everything() -> Result<()> {
    const MAPS: &str = "/api/v1/namespaces/team/configmaps";
    const QUOTAS: &str = "/api/v1/namespaces/team/resourcequotas";
    const ROUNDS: usize = 8;
    let directory = std::env::temp_dir().join(format!("pintle-quotas-{}", std::process::id()));
    let config = Config { ephemeral: false, data_dir: directory.clone(), ..Config::ephemeral() };
    let world = World::start(config.clone())?;
    world.must("POST", "/api/v1/namespaces", &json!({"metadata": {"name": "team"}}))?;
    // The controller creates one ConfigMap in the namespace, which must not interfere.
    let root = format!("{MAPS}/kube-root-ca.crt");
    let deadline = Instant::now() + TIMEOUT;
    while world.ask("GET", &root, &Value::Null)?.0 != 200 {
        ensure!(Instant::now() < deadline, "there is no root authority");
    }
    for (name, hard) in [
        ("wide", json!({"configmaps": "60", "count/secrets": "1"})),
        ("narrow", json!({"count/configmaps": "41"})),
    ] {
        world.must("POST", QUOTAS, &json!({"metadata": {"name": name}, "spec": {"hard": hard}}))?;
        while world.must("GET", &format!("{QUOTAS}/{name}"), &Value::Null)?["status"]["used"]
            .is_null()
        {
            ensure!(Instant::now() < deadline, "the quota is not counted");
        }
    }
    let used = |world: &World| -> Result<[u64; 2]> {
        let number = |quota: &str, name: &str| -> Result<u64> {
            let quota = world.must("GET", &format!("{QUOTAS}/{quota}"), &Value::Null)?;
            let used = quota["status"]["used"][name].as_str().context("it is counted")?;
            Ok(used.parse()?)
        };
        Ok([number("wide", "configmaps")?, number("narrow", "count/configmaps")?])
    };
    let there = |world: &World| -> Result<u64> {
        let list = world.must("GET", MAPS, &Value::Null)?;
        Ok(list["items"].as_array().context("a list has items")?.len() as u64)
    };
    let outcomes = world.all(|world, n| {
        let (mut made, mut refused) = (0, 0);
        for round in 0..ROUNDS {
            // Some of them use the same name.
            let name = format!("c{}-{round}", n / 2 * 2 + n % 2 * usize::from(n % 3 == 0));
            let map = json!({"metadata": {"name": name}, "data": {"by": n.to_string()}});
            match world.ask("POST", MAPS, &map)? {
                (201, _) => {
                    made += 1;
                    ensure!(there(world)? <= 41, "the quota is exceeded");
                    if (n + round) % 4 != 0 {
                        world.must("DELETE", &format!("{MAPS}/{name}"), &Value::Null)?;
                    }
                }
                (403, answer) => {
                    let why = text(&answer, "/message");
                    ensure!(why.contains("exceeded quota: narrow"), "{why}");
                    refused += 1;
                }
                (409, answer) if text(&answer, "/reason") == "AlreadyExists" => {}
                (code, answer) => anyhow::bail!("{code} {answer}"),
            }
        }
        Ok((made, refused))
    })?;
    let count = there(&world)?;
    ensure!(used(&world)? == [count, count], "{:?} of {count}", used(&world)?);
    let sum = outcomes.iter().fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
    ensure!(sum.0 > 41 && sum.1 > 0, "{sum:?} were made and refused");
    world.server.stop();

    let world = World::start(config)?;
    ensure!(there(&world)? == count && used(&world)? == [count, count]);
    world.server.stop(); // its store writes until it is closed
    std::fs::remove_dir_all(directory)?;
    Ok(())
}
