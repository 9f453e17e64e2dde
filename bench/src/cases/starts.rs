//! The time of a start, the memory of the server, and a restart with many objects.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use anyhow::Result;

use super::{Extent, Namespace, fill};
use crate::objects::Sample;
use crate::process::{Program, Running};
use crate::report::Report;

/// How often the start is measured.
const STARTS: usize = 5;
/// The pause before the idle memory is read: long enough to include periodic work, like the renewal
/// of leases.
const REST: Duration = Duration::from_secs(20);
/// The fewest objects whose memory is significant.
const LEAST: usize = 1_000;

/// Measures the start and the idle memory.
pub async fn measure_start(program: &Program, report: &mut Report) -> Result<()> {
    let mut times = Vec::new();
    for _ in 0..STARTS {
        let running = program.start().await?;
        times.push(running.ready_after);
        running.stop().await?;
    }
    times.sort_unstable();
    report.add("start to ready", milliseconds(times[STARTS / 2]), "ms");
    let running = program.start().await?;
    tokio::time::sleep(REST).await;
    report.add("idle memory", megabytes(running.memory_bytes()?), "MB");
    running.stop().await
}

/// Measures a restart with many objects, and the memory that they take.
pub async fn measure_restart(
    program: &Program,
    sample: &Sample,
    extent: &Extent,
    report: &mut Report,
) -> Result<()> {
    let running = program.start().await?;
    let before = running.memory_bytes()?;
    let namespace = Namespace::create(&running.server, "bench-restart").await?;
    let path = namespace.path(sample.resource);
    fill(&namespace, sample, extent.objects, &Arc::new(AtomicU64::new(0))).await?;
    let bytes = stored_bytes(&running, &path).await?;
    running.stop().await?;
    let running = program.start().await?;
    report.add(
        format!("restart with {} objects", extent.objects),
        milliseconds(running.ready_after),
        "ms",
    );
    let (_, list) = running.server.ask("GET", &format!("{path}?limit=1"), "", &[]).await?;
    let list: serde_json::Value = serde_json::from_slice(&list)?;
    if list["metadata"]["remainingItemCount"].as_u64().unwrap_or(0) + 1 < extent.objects as u64 {
        report.note("memory after a restart: the server keeps no objects");
    } else if extent.objects >= LEAST {
        tokio::time::sleep(REST).await;
        let grown = running.memory_bytes()?.saturating_sub(before);
        report.add("memory after a restart", megabytes(running.memory_bytes()?), "MB");
        report.add("memory per object", grown as f64 / bytes as f64, "x JSON");
    }
    let namespace = Namespace::create(&running.server, "bench-restart").await?;
    namespace.delete().await?;
    running.stop().await
}

/// The bytes of JSON of all objects.
async fn stored_bytes(running: &Running, path: &str) -> Result<usize> {
    let (_, list) = running.server.ask("GET", path, "", &[]).await?;
    Ok(list.len().max(1))
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

fn megabytes(bytes: u64) -> f64 {
    bytes as f64 / 1e6
}
