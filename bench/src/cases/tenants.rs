//! A tenant with many clients that list everything, without a pause and without regard to
//! refusals. Another tenant's reads and a controller's lease must not suffer, and the server's
//! memory must stay bounded.
//!
//! Tenants are impersonated users, because the administrator's requests are exempt from limits.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, anyhow};
use memchr::memmem;
use serde_json::{Value, json};

use super::{Extent, Namespace, fill};
use crate::load::Figures;
use crate::objects::Sample;
use crate::process::Running;
use crate::report::Report;
use crate::server::{Connection, Server};

/// The name of the lease, the role and its binding.
const NAME: &str = "bench-tenants";
const GREEDY: &str = "bench-mean-tenant";
const OTHER: &str = "bench-other-tenant";
/// The user of the controller. Requests for its leases have a priority level of their own.
const CONTROLLER: &str = "system:kube-controller-manager";
const ROLES: &str = "/apis/rbac.authorization.k8s.io/v1/clusterroles";
const BINDINGS: &str = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings";
const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases";
/// How often a controller renews its lease.
const RENEWAL: Duration = Duration::from_secs(2);
/// How often the server's memory is read.
const SAMPLING: Duration = Duration::from_millis(200);

/// Measures the other tenant's gets alone, and beside the largest number of clients that list. The
/// lease, the role and its binding are deleted at the end, also after an error.
pub async fn measure(
    namespace: &Namespace,
    running: Option<&Running>,
    pod: &Sample,
    extent: &Extent,
    report: &mut Report,
) -> Result<()> {
    let server = &namespace.server;
    let pods = extent.list_sizes.iter().copied().max().unwrap_or(1);
    fill(namespace, pod, pods, &Arc::new(AtomicU64::new(0))).await?;
    let objects = objects();
    let mut measured = Ok(());
    for (path, object) in &objects {
        let created = server.ask("POST", path, &object.to_string(), &[]).await;
        measured = measured.and(created.map(drop));
    }
    if measured.is_ok() {
        measured = compare(namespace, running, pod, (pods, extent), report).await;
    }
    for (path, _) in objects.iter().rev() {
        let deleted = server.ask("DELETE", &format!("{path}/{NAME}"), "", &[404]).await;
        measured = measured.and(deleted.map(drop));
    }
    measured
}

async fn compare(
    namespace: &Namespace,
    running: Option<&Running>,
    pod: &Sample,
    (pods, extent): (usize, &Extent),
    report: &mut Report,
) -> Result<()> {
    let server = &namespace.server;
    let path = format!("{}/a{}", namespace.path(pod.resource), crate::call::digits(0));
    let alone = reader(server, &path, extent.time)?.join().map_err(|_| anyhow!("a panic"))??;
    report.add_rate("gets of a tenant, alone", &alone);

    let over = Arc::new(AtomicBool::new(false));
    let clients = extent.clients.iter().copied().max().unwrap_or(1);
    let list = namespace.path(pod.resource);
    let lists =
        (0..clients).map(|_| tokio::spawn(list_all(server.clone(), list.clone(), over.clone())));
    let lists: Vec<_> = lists.collect();
    let reads = reader(server, &path, extent.time)?;
    let renewals = renewals(server, extent.time)?;
    let mut memory = 0;
    while !reads.is_finished() {
        if let Some(running) = running {
            memory = memory.max(running.memory_bytes()?);
        }
        tokio::time::sleep(SAMPLING).await;
    }
    over.store(true, Ordering::Release);
    let beside = reads.join().map_err(|_| anyhow!("a panic"))??;
    report.add_rate(format!("gets of a tenant beside {clients} clients that list"), &beside);
    let gap = renewals.join().map_err(|_| anyhow!("a panic"))??;
    report.add("longest time between renewals of a lease", gap.as_secs_f64(), "s");
    if memory > 0 {
        report.add("most memory", memory as f64 / 1e6, "MB");
    }
    let (mut answered, mut refused) = (0, 0);
    for list in lists {
        let (some, others) = list.await??;
        answered += some;
        refused += others;
    }
    let seconds = extent.time.as_secs_f64();
    report.add(format!("lists of {pods} pods"), f64::from(answered) / seconds, "/s");
    report.add("lists refused", f64::from(refused) / seconds, "/s");
    Ok(())
}

/// The lease, and a role for the impersonated users: each collection with its object.
fn objects() -> [(&'static str, Value); 3] {
    const GROUP: &str = "rbac.authorization.k8s.io";
    let subject = |name| json!({"apiGroup": GROUP, "kind": "User", "name": name});
    let role = json!({
        "metadata": {"name": NAME},
        "rules": [
            {"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list"]},
            {
                "apiGroups": ["coordination.k8s.io"], "resources": ["leases"],
                "resourceNames": [NAME], "verbs": ["get", "update"],
            },
        ],
    });
    let binding = json!({
        "metadata": {"name": NAME},
        "roleRef": {"apiGroup": GROUP, "kind": "ClusterRole", "name": NAME},
        "subjects": [subject(GREEDY), subject(OTHER), subject(CONTROLLER)],
    });
    let lease = json!({"metadata": {"name": NAME}, "spec": {"holderIdentity": NAME}});
    [(LEASES, lease), (ROLES, role), (BINDINGS, binding)]
}

/// The header that impersonates a user.
fn by(user: &str) -> String {
    format!("Impersonate-User: {user}\r\n")
}

/// Lists without a pause; returns the numbers of lists, and of refusals and failures.
async fn list_all(server: Server, path: String, over: Arc<AtomicBool>) -> Result<(u32, u32)> {
    let call = server.call_with("GET", &path, "", &by(GREEDY), "");
    let (mut answered, mut refused) = (0, 0);
    let mut open: Option<Connection> = None;
    while !over.load(Ordering::Acquire) {
        let connection = match &mut open {
            Some(connection) => connection,
            None => match server.connect_lean().await {
                Ok(connection) => open.insert(connection),
                Err(_) => {
                    refused += 1;
                    continue;
                }
            },
        };
        match connection.exchange(call.bytes(), None).await {
            Ok(answer) if answer.status == 200 => answered += 1,
            Ok(_) => refused += 1,
            Err(_) => {
                refused += 1;
                open = None;
            }
        }
    }
    Ok((answered, refused))
}

type Thread<T> = std::thread::JoinHandle<Result<T>>;

/// Runs requests in a thread of their own, because the many clients share the others.
fn thread<T: Send + 'static>(
    work: impl Future<Output = Result<T>> + Send + 'static,
) -> Result<Thread<T>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    Ok(std::thread::spawn(move || runtime.block_on(work)))
}

/// Reads an object by one client of the other tenant, for a time.
fn reader(server: &Server, path: &str, time: Duration) -> Result<Thread<Figures>> {
    let (server, path) = (server.clone(), path.to_owned());
    thread(async move {
        let call = server.call_with("GET", &path, "", &by(OTHER), "");
        let mut connection = server.connect_lean().await?;
        let (mut latencies, mut refused) = (Vec::new(), 0);
        let start = Instant::now();
        while start.elapsed() < time {
            let sent = Instant::now();
            match connection.exchange(call.bytes(), None).await?.status {
                200 => {
                    latencies.push(u32::try_from(sent.elapsed().as_micros()).unwrap_or(u32::MAX))
                }
                _ => refused += 1,
            }
        }
        let mut figures = Figures::of(latencies, start.elapsed());
        figures.refused = refused;
        Ok(figures)
    })
}

/// Renews a lease as a controller does; returns the longest time without a renewal.
fn renewals(server: &Server, time: Duration) -> Result<Thread<Duration>> {
    let server = server.clone();
    thread(async move {
        let path = format!("{LEASES}/{NAME}");
        let read = server.call_with("GET", &path, "", &by(CONTROLLER), "");
        let mut connection = server.connect_lean().await?;
        let (mut longest, mut renewed, start) = (Duration::ZERO, Instant::now(), Instant::now());
        while start.elapsed() < time {
            let mut lease = Vec::new();
            connection.exchange(read.bytes(), Some(&mut lease)).await?;
            memmem::find(&lease, b"resourceVersion").context("the lease cannot be read")?;
            let lease = String::from_utf8(lease)?;
            let write = server.call_with("PUT", &path, "application/json", &by(CONTROLLER), &lease);
            if connection.exchange(write.bytes(), None).await?.status == 200 {
                longest = longest.max(renewed.elapsed());
                renewed = Instant::now();
            }
            tokio::time::sleep(RENEWAL).await;
        }
        Ok(longest.max(renewed.elapsed()))
    })
}
