//! The measurements. Each creates its objects, measures for a bounded time, and adds rows.

pub mod cluster;
pub mod definitions;
pub mod encodings;
pub mod idle;
pub mod lists;
pub mod paths;
pub mod pauses;
pub mod starts;
pub mod tenants;
pub mod tokens;
pub mod watches;
pub mod writes;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use serde_json::json;

use crate::load::{Client, Figures, Worker, run};
use crate::objects::{OWNER, Sample};
use crate::process::Running;
use crate::report::Report;
use crate::server::Server;

/// How long the creation of the objects may take.
const PREPARATION: Duration = Duration::from_secs(180);

/// The extent of the measurements.
#[derive(Clone, Debug)]
pub struct Extent {
    /// The duration of each measurement.
    pub time: Duration,
    /// The numbers of clients for reads and writes.
    pub clients: Vec<usize>,
    /// The numbers of pods in lists.
    pub list_sizes: Vec<usize>,
    /// The numbers of watchers.
    pub watchers: Vec<usize>,
    /// The number of objects at a restart.
    pub objects: usize,
    /// Whether requests go over HTTP/2.
    pub http2: bool,
}

/// A namespace of the benchmark, which is deleted at the end.
pub struct Namespace {
    /// The server on which it was created.
    pub server: Server,
    /// The server that the watchers use.
    pub watched: Server,
    name: String,
}

impl Namespace {
    /// Creates the namespace, with the service account that pods need.
    pub async fn create(server: &Server, name: &str) -> Result<Self> {
        let object = format!("{{\"metadata\":{{\"name\":\"{name}\"}}}}");
        server.ask("POST", "/api/v1/namespaces", &object, &[409]).await?;
        let accounts = format!("/api/v1/namespaces/{name}/serviceaccounts");
        server.ask("POST", &accounts, "{\"metadata\":{\"name\":\"default\"}}", &[404, 409]).await?;
        Ok(Self { server: server.clone(), watched: server.clone(), name: name.to_owned() })
    }

    /// Adds a quota that is never exceeded, and waits until the server has counted the objects.
    pub async fn add_quota(&self) -> Result<()> {
        let hard = r#"{"configmaps":"1G","pods":"1G","requests.cpu":"1G"}"#;
        let object = format!(r#"{{"metadata":{{"name":"quota"}},"spec":{{"hard":{hard}}}}}"#);
        let path = self.path("resourcequotas");
        self.server.ask("POST", &path, &object, &[409]).await?;
        let deadline = Instant::now() + PREPARATION;
        loop {
            let (_, body) = self.server.ask("GET", &format!("{path}/quota"), "", &[]).await?;
            let quota: serde_json::Value = serde_json::from_slice(&body)?;
            if quota["status"]["used"]["pods"].is_string() {
                return Ok(());
            }
            ensure!(Instant::now() < deadline, "the server does not count for quotas");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// Creates the ReplicaSet that owns the pods, as a controller's, and returns its uid.
    pub async fn create_owner(&self) -> Result<String> {
        let labels = json!({"app": "owner"});
        let container = json!({"name": "c", "image": "i"});
        let object = json!({
            "metadata": {"name": OWNER},
            "spec": {
                "replicas": 0,
                "selector": {"matchLabels": labels},
                "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
            },
        });
        let path = format!("/apis/apps/v1/namespaces/{}/replicasets", self.name);
        let (_, body) = self.server.ask("POST", &path, &object.to_string(), &[]).await?;
        let created: serde_json::Value = serde_json::from_slice(&body)?;
        Ok(created["metadata"]["uid"].as_str().context("the owner has a uid")?.to_owned())
    }

    /// The path of a resource's collection.
    pub fn path(&self, resource: &str) -> String {
        format!("/api/v1/namespaces/{}/{resource}", self.name)
    }

    /// Deletes its pods and config maps, and then the namespace.
    pub async fn delete(self) -> Result<()> {
        for resource in ["pods", "configmaps"] {
            let path = self.path(resource) + "?gracePeriodSeconds=0";
            self.server.ask("DELETE", &path, "", &[404, 504]).await?;
        }
        let path = format!("/api/v1/namespaces/{}", self.name);
        self.server.ask("DELETE", &path, "", &[404, 409]).await?;
        Ok(())
    }
}

/// The server's processor time during a measurement, if the benchmark started the server. It is
/// comparable between runs even if other programs use the processors, too.
pub struct Meter<'a>(Option<(&'a Running, Duration)>);

impl<'a> Meter<'a> {
    /// Starts counting when the server has done the work that earlier requests left.
    pub async fn after_rest(running: Option<&'a Running>) -> Result<Self> {
        if let Some(running) = running {
            running.rest().await?;
        }
        Self::start(running)
    }

    /// Starts counting.
    pub fn start(running: Option<&'a Running>) -> Result<Self> {
        let Some(running) = running else { return Ok(Self(None)) };
        Ok(Self(Some((running, running.processor_time()?))))
    }

    /// Adds the time per request or event.
    pub fn add(self, report: &mut Report, name: &str, count: usize) -> Result<()> {
        let Some((running, before)) = self.0 else { return Ok(()) };
        let taken = running.processor_time()?.saturating_sub(before);
        let each = taken.as_secs_f64() * 1e6 / count.max(1) as f64;
        let (each, unit) = if each < 1e3 { (each, "us") } else { (each / 1e3, "ms") };
        report.add(format!("{name}, processor time"), each, unit);
        Ok(())
    }
}

/// Creates objects, numbered from `counter` on, up to `end` or until the time is over.
pub async fn create(
    namespace: &Namespace,
    sample: &Sample,
    clients: Vec<Client>,
    counter: &Arc<AtomicU64>,
    end: u64,
    limit: Duration,
) -> Result<Figures> {
    let path = namespace.path(sample.resource);
    let workers = clients.into_iter().map(|client| {
        let counter = Arc::clone(counter);
        Worker {
            client,
            call: namespace.server.call("POST", &path, "application/json", &sample.body),
            next: Box::new(move |call| {
                let number = counter.fetch_add(1, Ordering::Relaxed);
                call.name(number);
                call.value(number);
                number < end
            }),
        }
    });
    let figures = run(workers.collect(), limit).await?;
    counter.fetch_min(end, Ordering::Relaxed);
    Ok(figures)
}

/// Creates objects until `count` exist; an error if that takes too long.
pub async fn fill(
    namespace: &Namespace,
    sample: &Sample,
    count: usize,
    counter: &Arc<AtomicU64>,
) -> Result<()> {
    let clients = Client::connect(&namespace.server, 32, false).await?;
    create(namespace, sample, clients, counter, count as u64, PREPARATION).await?;
    let there = counter.load(Ordering::Relaxed);
    ensure!(there >= count as u64, "only {there} of {count} objects could be made in time");
    Ok(())
}
