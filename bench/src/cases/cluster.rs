//! The traffic of the kubelets of a large cluster: each watches the pods of its node, renews its
//! lease every 10 s and reports its status every 5 minutes; each pod reports its status once an
//! hour. The time is scaled: at a speed of 10, all of this happens ten times as often, which is the
//! load of ten times as many nodes.
//!
//! A request is sent when it is due, or later if all senders wait for responses. Delays count from
//! the time at which a request was due.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use memchr::memmem;
use serde_json::json;

use super::watches::{self, Form};
use super::{Extent, Meter, Namespace};
use crate::call::{Call, NAME, VALUE, digits};
use crate::load::{Client, Figures, Worker, run};
use crate::objects::Sample;
use crate::process::Running;
use crate::report::Report;
use crate::server::{Connection, Server};

const NODES: &str = "/api/v1/nodes";
const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases";
/// The pods of a node.
const PODS: u64 = 30;
/// The number of connections over which requests are sent. Real kubelets have one each, beside
/// their watches.
const SENDERS: u64 = 64;
/// How long creating all objects may take.
const PREPARATION: Duration = Duration::from_secs(1800);
/// A speed is too high if the responses to its requests take longer than planned by more than this
/// share of the time.
const LATE_MAX: f64 = 0.1;

/// Measures at each speed, with the largest number of watchers as the number of nodes, until the
/// server cannot keep up. The nodes and leases are deleted at the end, also after an error.
pub async fn measure(
    namespace: &Namespace,
    running: Option<&Running>,
    pod: &Sample,
    extent: &Extent,
    report: &mut Report,
) -> Result<()> {
    let nodes = extent.watchers.iter().copied().max().unwrap_or(1) as u64;
    let mut measured = create(namespace, pod, nodes, report).await;
    if measured.is_ok() {
        measured = measure_traffic(namespace, running, pod, (nodes, extent), report).await;
    }
    for path in [NODES, LEASES] {
        let path = format!("{path}?labelSelector=bench%3Dnode");
        let deleted = namespace.server.ask("DELETE", &path, "", &[504]).await;
        measured = measured.and(deleted.map(drop));
    }
    measured
}

async fn measure_traffic(
    namespace: &Namespace,
    running: Option<&Running>,
    pod: &Sample,
    (nodes, extent): (u64, &Extent),
    report: &mut Report,
) -> Result<()> {
    add_memory(running, report, format!("memory with {nodes} nodes and their pods"))?;
    let path = namespace.path(pod.resource);
    list(namespace, running, &path, (nodes, extent.time), report).await?;
    let (clock, end) = (Instant::now(), Arc::new(AtomicU64::new(u64::MAX)));
    let query = |node| format!("fieldSelector=spec.nodeName%3D{}", node_name(node));
    let paths = (0..nodes).map(|node| format!("{path}?watch=1&{}", query(node)));
    let version = watches::newest(namespace, pod).await?;
    let paths = paths.map(|path| format!("{path}&resourceVersion={version}")).collect();
    let watchers = watches::open(namespace, paths, Form::JSON, clock, &end).await?;
    report.add(format!("{nodes} watches opened"), clock.elapsed().as_secs_f64(), "s");
    add_memory(running, report, format!("memory with {nodes} nodes, their pods and watches"))?;
    let versions: Arc<[AtomicU64]> = (0..nodes).map(|_| AtomicU64::new(0)).collect();
    for speed in [1, 2, 4, 8, 16, 32] {
        let traffic = Traffic {
            server: namespace.server.clone(),
            pods: path.clone(),
            pod_patch: pod_status(),
            nodes,
            speed,
            clock,
            versions: versions.clone(),
        };
        let (meter, start) = (Meter::start(running)?, Instant::now());
        let (figures, due) = traffic.send(extent.time).await?;
        let name = format!("requests of {nodes} kubelets, {speed} times as often");
        report.add_rate(&name, &figures);
        meter.add(report, &name, figures.count)?;
        let took = start.elapsed();
        report.add(format!("{name}, due"), due as f64 / extent.time.as_secs_f64(), "/s");
        if took.as_secs_f64() > extent.time.as_secs_f64() * (1.0 + LATE_MAX) {
            break;
        }
    }
    end.store(0, Ordering::Release);
    let mut latencies = Vec::new();
    for watcher in watchers {
        latencies.extend(watcher.await??.0);
    }
    let events = Figures::of(latencies, clock.elapsed());
    report.add_rate(format!("events to the watches of {nodes} kubelets, at all rates"), &events);
    Ok(())
}

/// Lists the pods of one node after the other, from several clients, as kubelets do before they
/// watch.
async fn list(
    namespace: &Namespace,
    running: Option<&Running>,
    pods: &str,
    (nodes, time): (u64, Duration),
    report: &mut Report,
) -> Result<()> {
    let next = Arc::new(AtomicU64::new(0));
    let path = format!("{pods}?fieldSelector=spec.nodeName%3Dnode-{VALUE}&resourceVersion=0");
    let clients = Client::connect(&namespace.server, 32, false).await?;
    let workers = clients.into_iter().map(|client| {
        let next = next.clone();
        Worker {
            client,
            call: namespace.server.call("GET", &path, "", ""),
            next: Box::new(move |call: &mut Call| {
                call.value(next.fetch_add(1, Ordering::Relaxed) % nodes);
                true
            }),
        }
    });
    let (meter, name) = (Meter::start(running)?, "lists of the pods of a node");
    let figures = run(workers.collect(), time).await?;
    ensure!(figures.refused == 0, "{} lists were refused", figures.refused);
    report.add_rate(name, &figures);
    meter.add(report, name, figures.count)
}

fn add_memory(running: Option<&Running>, report: &mut Report, name: String) -> Result<()> {
    if let Some(running) = running {
        report.add(name, running.memory_bytes()? as f64 / 1e6, "MB");
    }
    Ok(())
}

fn node_name(node: u64) -> String {
    format!("node-{}", digits(node))
}

/// Creates the nodes, their leases, and their pods.
async fn create(
    namespace: &Namespace,
    pod: &Sample,
    nodes: u64,
    report: &mut Report,
) -> Result<()> {
    let named = |mut object: serde_json::Value| {
        object["metadata"]["name"] = json!(format!("node-{NAME}"));
        object.to_string()
    };
    let labels = json!({"labels": {"bench": "node"}});
    let node = named(json!({"metadata": labels, "status": {}}));
    let lease = named(
        json!({"metadata": labels, "spec": {"holderIdentity": "kubelet", "leaseDurationSeconds": 40}}),
    );
    let mut of_nodes: serde_json::Value = serde_json::from_str(&pod.body)?;
    of_nodes["spec"]["nodeName"] = json!(format!("node-{VALUE}"));
    of_nodes["metadata"]["labels"]["changing"] = json!("none");
    let start = Instant::now();
    let pods = namespace.path(pod.resource);
    for (path, body, count) in
        [(NODES, node, nodes), (LEASES, lease, nodes), (&pods, of_nodes.to_string(), nodes * PODS)]
    {
        let next = Arc::new(AtomicU64::new(0));
        let clients = Client::connect(&namespace.server, 32, false).await?;
        let workers = clients.into_iter().map(|client| {
            let next = next.clone();
            Worker {
                client,
                call: namespace.server.call("POST", path, "application/json", &body),
                next: Box::new(move |call: &mut Call| {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    call.name(number);
                    call.value(number % nodes);
                    number < count
                }),
            }
        });
        let created = run(workers.collect(), PREPARATION).await?;
        let there = created.count + created.refused;
        ensure!(there as u64 == count, "only {there} of {count} objects could be made in time");
    }
    let what = format!("{nodes} nodes and {} pods created", nodes * PODS);
    report.add(what, start.elapsed().as_secs_f64(), "s");
    Ok(())
}

/// A patch of a pod's status by its kubelet.
fn pod_status() -> String {
    let condition = json!({"type": "Ready", "status": "True", "message": "m"});
    json!({
        "metadata": {"labels": {"changing": VALUE}},
        "status": {"phase": "Running", "conditions": [condition]},
    })
    .to_string()
}

/// The requests that kubelets send.
#[derive(Clone)]
struct Traffic {
    server: Server,
    /// The path of the pods.
    pods: String,
    pod_patch: String,
    nodes: u64,
    speed: u64,
    clock: Instant,
    /// The newest resource version of each lease; 0 if it is not known.
    versions: Arc<[AtomicU64]>,
}

/// A request: of a node's lease, of its status, or of the status of a pod.
#[derive(Clone, Copy)]
enum Request {
    Lease(u64),
    Node(u64),
    Pod(u64),
}

impl Traffic {
    /// Requests a second: each lease every 10 s, each node every 300 s, each pod every hour.
    fn rates(&self) -> [f64; 3] {
        let all = (self.nodes * self.speed) as f64;
        [all / 10.0, all / 300.0, all * PODS as f64 / 3600.0]
    }

    /// Sends what is due within a time; returns the delays, and the number that was due.
    async fn send(self, time: Duration) -> Result<(Figures, u64)> {
        let rates = self.rates();
        let total: f64 = rates.iter().sum();
        let due = (total * time.as_secs_f64()) as u64;
        let next = Arc::new(AtomicU64::new(0));
        let mut senders = Vec::new();
        let start = Instant::now();
        for _ in 0..SENDERS {
            let (traffic, next) = (self.clone(), next.clone());
            let mut connection = self.server.connect().await?;
            senders.push(tokio::spawn(async move {
                let mut latencies = Vec::new();
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= due {
                        return anyhow::Ok(latencies);
                    }
                    let at = start + Duration::from_secs_f64(number as f64 / total);
                    tokio::time::sleep_until(at.into()).await;
                    traffic.one(&mut connection, traffic.request(number)).await?;
                    let delay = at.elapsed().as_micros();
                    latencies.push(u32::try_from(delay).unwrap_or(u32::MAX));
                }
            }));
        }
        let mut latencies = Vec::new();
        for sender in senders {
            latencies.extend(sender.await??);
        }
        Ok((Figures::of(latencies, start.elapsed()), due))
    }

    /// The request of a number: kinds are mixed by their rates, and objects take turns.
    fn request(&self, number: u64) -> Request {
        let [leases, nodes, pods] = self.rates();
        let total = leases + nodes + pods;
        // The fractions of the golden ratio's multiples are evenly spread.
        let share = (number as f64 * 0.618_033_988_75).fract() * total;
        let all_pods = self.nodes * PODS;
        if share < leases {
            Request::Lease(number % self.nodes)
        } else if share < leases + nodes {
            Request::Node(number % self.nodes)
        } else {
            Request::Pod(number * 7919 % all_pods)
        }
    }

    async fn one(&self, connection: &mut Connection, request: Request) -> Result<()> {
        let patch = "application/merge-patch+json";
        let mut call = match request {
            Request::Lease(node) => return self.renew(connection, node).await,
            Request::Node(node) => {
                let path = format!("{NODES}/{}/status", node_name(node));
                let condition = json!({"type": "Ready", "status": "True", "message": VALUE});
                let body = json!({"status": {"conditions": [condition]}}).to_string();
                self.server.call("PATCH", &path, patch, &body)
            }
            Request::Pod(pod) => {
                let path = format!("{}/a{}/status", self.pods, digits(pod));
                self.server.call("PATCH", &path, patch, &self.pod_patch)
            }
        };
        call.value(u64::try_from(self.clock.elapsed().as_micros()).unwrap_or(u64::MAX));
        let status = connection.exchange(call.bytes(), None).await?.status;
        ensure!(status == 200, "a patch was answered {status}");
        Ok(())
    }

    /// Updates a lease as kubelets do: with the version of the last answer.
    async fn renew(&self, connection: &mut Connection, node: u64) -> Result<()> {
        let name = node_name(node);
        let path = format!("{LEASES}/{name}");
        let known = &self.versions[usize::try_from(node)?];
        let mut lease = Vec::new();
        let version = match known.load(Ordering::Relaxed) {
            0 => {
                let read = self.server.call("GET", &path, "", "");
                connection.exchange(read.bytes(), Some(&mut lease)).await?;
                version_of(&lease)?
            }
            version => version,
        };
        let micros = self.clock.elapsed().as_micros() % 1_000_000;
        let body = json!({
            "metadata": {"name": name, "resourceVersion": version.to_string()},
            "spec": {
                "holderIdentity": "kubelet", "leaseDurationSeconds": 40,
                "renewTime": format!("2026-01-01T00:00:00.{micros:06}Z"),
            },
        });
        let write = self.server.call("PUT", &path, "application/json", &body.to_string());
        lease.clear();
        let answer = connection.exchange(write.bytes(), Some(&mut lease)).await?;
        // At high speeds two senders may renew one lease: after a conflict it is read again.
        let version = if answer.status == 200 { version_of(&lease)? } else { 0 };
        known.store(version, Ordering::Relaxed);
        ensure!(matches!(answer.status, 200 | 409), "a renewal was answered {}", answer.status);
        Ok(())
    }
}

/// The resource version in an object's JSON.
fn version_of(object: &[u8]) -> Result<u64> {
    const NAME: &[u8] = b"\"resourceVersion\":\"";
    let at = memmem::find(object, NAME).context("an object without version")? + NAME.len();
    let digits = object[at..].split(|byte| *byte == b'"').next().unwrap_or_default();
    Ok(std::str::from_utf8(digits)?.parse()?)
}
