//! Gets of given paths, for example of a file server: no API server can be expected to be faster.

use anyhow::{Result, ensure};

use super::{Extent, Meter};
use crate::load::{Client, Worker, run};
use crate::process::Running;
use crate::report::Report;
use crate::server::Server;

/// Measures gets of each path with each number of clients, in responses and in bytes a second.
pub async fn measure(
    server: &Server,
    running: Option<&Running>,
    paths: &[String],
    extent: &Extent,
    report: &mut Report,
) -> Result<()> {
    ensure!(!paths.is_empty(), "paths: there is no --path");
    for path in paths {
        server.ask("GET", path, "", &[]).await?;
        for count in &extent.clients {
            let workers = Client::connect(server, *count, extent.http2).await?.into_iter();
            let workers = workers.map(|client| Worker {
                client,
                call: server.call("GET", path, "", ""),
                next: Box::new(|_| true),
            });
            let name = format!("get {path}, {count} clients");
            let meter = Meter::start(running)?;
            let figures = run(workers.collect(), extent.time).await?;
            report.add_rate(&name, &figures);
            report.add_bytes(format!("{name}, bytes"), figures.body_rate_mb(), &figures);
            meter.add(report, &name, figures.count)?;
        }
    }
    Ok(())
}
