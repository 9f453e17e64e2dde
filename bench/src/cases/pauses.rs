//! The longest time without a successful request, while the user causes a failure.

use std::time::{Duration, Instant};

use anyhow::Result;

use super::{Extent, Namespace};
use crate::report::Report;
use crate::server::{Connection, Server};

/// How long a response may take before the request is repeated.
const TIMEOUT: Duration = Duration::from_secs(1);
/// The pause between two requests, so that they do not load the server.
const INTERVAL: Duration = Duration::from_millis(5);

/// Writes, and reads the newest state, for a time. Failures are no errors: they only make the pause
/// longer.
pub async fn measure(namespace: &Namespace, extent: &Extent, report: &mut Report) -> Result<()> {
    let maps = namespace.path("configmaps");
    let object = r#"{"metadata":{"generateName":"m-"}}"#;
    let write = longest(&namespace.server, "POST", maps.clone(), object, extent.time);
    let read = longest(&namespace.server, "GET", maps + "?limit=1", "", extent.time);
    let (write, read) = tokio::try_join!(write, read)?;
    for (what, pause) in [("write", write), ("read", read)] {
        report.add(format!("longest time without a {what}"), pause.as_secs_f64() * 1e3, "ms");
    }
    Ok(())
}

/// The longest time without a successful response, between the start and the end.
async fn longest(
    server: &Server,
    method: &'static str,
    path: String,
    object: &str,
    time: Duration,
) -> Result<Duration> {
    let call = server.call(method, &path, "application/json", object);
    let (mut connection, mut pause) = (None, Duration::ZERO);
    let (start, mut done) = (Instant::now(), Instant::now());
    while start.elapsed() < time {
        let response = tokio::time::timeout(TIMEOUT, ask(server, &mut connection, call.bytes()));
        match response.await {
            Ok(Ok(status)) if status < 300 => {
                pause = pause.max(done.elapsed());
                done = Instant::now();
            }
            Ok(Ok(_)) => {}
            Ok(Err(_)) | Err(_) => connection = None,
        }
        tokio::time::sleep(INTERVAL).await;
    }
    Ok(pause.max(done.elapsed()))
}

/// Sends a request over the open connection, or a new one, and returns the status code.
async fn ask(server: &Server, open: &mut Option<Connection>, request: &[u8]) -> Result<u16> {
    let connection = match open {
        Some(connection) => connection,
        None => open.insert(server.connect().await?),
    };
    Ok(connection.exchange(request, None).await?.status)
}
