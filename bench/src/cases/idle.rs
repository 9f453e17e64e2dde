//! The memory of watches without events, such as those of many clients' informers.

use std::time::Duration;

use anyhow::{Context as _, Result};
use hyper::body::Incoming;

use super::{Extent, Namespace};
use crate::call::Call;
use crate::http2::Http2;
use crate::process::Running;
use crate::report::Report;
use crate::server::{Connection, Server};

/// How long the server has to give back the memory of the handshakes.
const SETTLING: Duration = Duration::from_secs(5);
/// The watches of an HTTP/2 connection: a client has one connection for all its informers.
const STREAMS: usize = 100;

/// Opens each number of watches, each on a connection of its own or over HTTP/2, and reads the
/// memory that they add to that of the idle server.
pub async fn measure(
    namespace: &Namespace,
    running: Option<&Running>,
    extent: &Extent,
    report: &mut Report,
) -> Result<()> {
    let running = running.context("idle: needs --start: it measures the memory of that server")?;
    let path = namespace.path("configmaps") + "?watch=1&allowWatchBookmarks=true";
    let call = namespace.server.call("GET", &path, "", "");
    let mut watches = Watches::default();
    tokio::time::sleep(SETTLING).await;
    let before = running.memory_bytes()?;
    for count in extent.watchers.iter().copied() {
        while watches.count() < count {
            watches.open(&namespace.server, &call, extent.http2).await?;
        }
        tokio::time::sleep(SETTLING).await;
        let memory = running.memory_bytes()?;
        report.add(format!("memory with {count} idle watches"), memory as f64 / 1e6, "MB");
        let each = memory.saturating_sub(before) as f64 / count.max(1) as f64 / 1e3;
        report.add(format!("memory of each of {count} idle watches"), each, "KB");
    }
    Ok(())
}

/// Open watches.
#[derive(Default)]
struct Watches {
    connections: Vec<Connection>,
    streams: Vec<Incoming>,
    shared: Option<Http2>,
}

impl Watches {
    fn count(&self) -> usize {
        self.connections.len() + self.streams.len()
    }

    async fn open(&mut self, server: &Server, call: &Call, http2: bool) -> Result<()> {
        if !http2 {
            let mut connection = server.connect_lean().await?;
            connection.open_watch(call.bytes()).await?;
            self.connections.push(connection);
            return Ok(());
        }
        let shared =
            match self.shared.take().filter(|_| !self.streams.len().is_multiple_of(STREAMS)) {
                Some(shared) => shared,
                None => Http2::connect(server).await?,
            };
        let shared = self.shared.insert(shared);
        self.streams.push(shared.open_watch(call).await?);
        Ok(())
    }
}
