//! Create, get, update, patch and delete of single objects, by several clients at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::Result;
use serde_json::{Value, json};

use super::{Extent, Meter, Namespace, create, fill};
use crate::call::{Call, VALUE, digits};
use crate::load::{Client, Worker, run};
use crate::objects::Sample;
use crate::process::Running;
use crate::report::Report;

/// The operations, in the order in which they are measured.
pub const OPERATIONS: [&str; 5] = ["create", "get", "update", "patch", "delete"];

/// Measures the selected operations with each number of clients.
pub async fn measure(
    namespace: &Namespace,
    running: Option<&Running>,
    sample: &Sample,
    extent: &Extent,
    wanted: &dyn Fn(&str) -> bool,
    report: &mut Report,
) -> Result<()> {
    let counter = Arc::new(AtomicU64::new(0));
    for count in &extent.clients {
        let name = |operation| {
            let plural = if *count == 1 { "" } else { "s" };
            format!("{operation} {}, {count} client{plural}", sample.label)
        };
        let connect = || Client::connect(&namespace.server, *count, extent.http2);
        if wanted("create") {
            let clients = connect().await?;
            let meter = Meter::after_rest(running).await?;
            let figures =
                create(namespace, sample, clients, &counter, u64::MAX, extent.time).await?;
            report.add_rate(name("create"), &figures);
            meter.add(report, &name("create"), figures.count)?;
        }
        if !OPERATIONS[1..].iter().any(|operation| wanted(operation)) {
            continue;
        }
        let enough = counter.load(Ordering::Relaxed).max(64).max(*count as u64);
        fill(namespace, sample, usize::try_from(enough)?, &counter).await?;
        for operation in ["get", "update", "patch"] {
            if wanted(operation) {
                let mut workers = Vec::new();
                for (number, client) in connect().await?.into_iter().enumerate() {
                    workers.push(on_one(namespace, sample, operation, number, client).await?);
                }
                let meter = Meter::after_rest(running).await?;
                let figures = run(workers, extent.time).await?;
                report.add_rate(name(operation), &figures);
                meter.add(report, &name(operation), figures.count)?;
            }
        }
        if wanted("delete") {
            let workers = connect().await?.into_iter().map(|client| {
                let path = format!(
                    "{}/a{}?gracePeriodSeconds=0",
                    namespace.path(sample.resource),
                    crate::call::NAME
                );
                let call = namespace.server.call("DELETE", &path, "", "");
                Worker { client, call, next: deleting(&counter) }
            });
            let meter = Meter::after_rest(running).await?;
            let figures = run(workers.collect(), extent.time).await?;
            report.add_rate(name("delete"), &figures);
            meter.add(report, &name("delete"), figures.count)?;
        }
    }
    Ok(())
}

/// A worker that repeats an operation on its own object.
async fn on_one(
    namespace: &Namespace,
    sample: &Sample,
    operation: &str,
    number: usize,
    client: Client,
) -> Result<Worker> {
    let path = format!("{}/a{}", namespace.path(sample.resource), digits(number as u64));
    let server = &namespace.server;
    let call = match operation {
        "get" => server.call("GET", &path, "", ""),
        "patch" => server.call("PATCH", &path, "application/merge-patch+json", &sample.patch),
        _ => {
            let (_, body) = server.ask("GET", &path, "", &[]).await?;
            let mut object: Value = serde_json::from_slice(&body)?;
            changing(&mut object);
            server.call("PUT", &path, "application/json", &object.to_string())
        }
    };
    let mut value = 0;
    let next = move |call: &mut Call| {
        value += 1;
        call.value(value);
        true
    };
    Ok(Worker { client, call, next: Box::new(next) })
}

/// Prepares an object that the server returned for updates: makes the gap, and removes the resource
/// version, so that the last write wins.
fn changing(object: &mut Value) {
    if let Some(metadata) = object["metadata"].as_object_mut() {
        metadata.remove("resourceVersion");
        metadata.remove("managedFields");
    }
    if object["data"].is_object() {
        object["data"]["changing"] = json!(VALUE);
    } else {
        object["metadata"]["labels"]["changing"] = json!(VALUE);
    }
}

/// Counts down the numbers of the existing objects.
fn deleting(counter: &Arc<AtomicU64>) -> crate::load::Next {
    let counter = Arc::clone(counter);
    Box::new(move |call| {
        let down = |there: u64| there.checked_sub(1);
        let Ok(there) = counter.fetch_update(Ordering::Relaxed, Ordering::Relaxed, down) else {
            return false;
        };
        call.name(there - 1);
        true
    })
}
