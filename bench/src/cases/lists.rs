//! Lists of whole collections of pods, uncompressed and compressed.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use anyhow::Result;

use super::{Extent, Namespace, fill};
use crate::load::{Client, Worker, run};
use crate::objects::Sample;
use crate::report::Report;

/// The numbers of clients with which a list is measured.
const CLIENTS: [usize; 2] = [1, 4];

/// Measures lists of each size.
pub async fn measure(
    namespace: &Namespace,
    sample: &Sample,
    extent: &Extent,
    report: &mut Report,
) -> Result<()> {
    let counter = Arc::new(AtomicU64::new(0));
    for size in &extent.list_sizes {
        fill(namespace, sample, *size, &counter).await?;
        let path = namespace.path(sample.resource);
        let (_, whole) = namespace.server.ask("GET", &path, "", &[]).await?;
        let whole = whole.len();
        for (coding, header) in [("identity", ""), ("gzip", "Accept-Encoding: gzip\r\n")] {
            for count in CLIENTS {
                let clients = Client::connect(&namespace.server, count, false).await?;
                let workers = clients.into_iter().map(|client| Worker {
                    client,
                    call: namespace.server.call_with("GET", &path, "", header, ""),
                    next: Box::new(|_| true),
                });
                let figures = run(workers.collect(), extent.time).await?;
                // The rate counts uncompressed bytes.
                let megabytes = (whole * figures.count) as f64 / 1e6;
                let rate = megabytes / figures.took.as_secs_f64();
                let plural = if count == 1 { "" } else { "s" };
                let name = format!("list {size} pods, {coding}, {count} client{plural}");
                report.add_bytes(name, rate, &figures);
            }
        }
    }
    Ok(())
}
