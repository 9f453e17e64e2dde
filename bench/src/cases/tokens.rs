//! Requests with many bearer tokens.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};

use super::{Extent, Meter};
use crate::call::Call;
use crate::load::{Client, Worker, run};
use crate::process::Running;
use crate::report::Report;
use crate::server::Server;

/// A path that every authenticated user may read, with a small response, so that authentication
/// dominates.
const TARGET: &str = "/version";
/// How long sending every token once may take.
const PREPARATION: Duration = Duration::from_secs(600);

/// Measures requests with the tokens of a file in turn: once each, when the server must verify
/// them, then repeatedly, when it may have cached them.
pub async fn measure(
    server: &Server,
    running: Option<&Running>,
    file: &Path,
    extent: &Extent,
    report: &mut Report,
) -> Result<()> {
    let text = std::fs::read_to_string(file).with_context(|| file.display().to_string())?;
    let tokens: Vec<&str> = text.lines().filter(|line| !line.is_empty()).collect();
    ensure!(!tokens.is_empty(), "{}: no token", file.display());
    for (index, count) in extent.clients.iter().enumerate() {
        let mut passes = vec![("seen before", false, extent.time)];
        if index == 0 {
            passes.insert(0, ("new", true, PREPARATION)); // afterwards no token is new
        }
        for (state, once, time) in passes {
            let name = format!("get with {} tokens {state}, clients: {count}", tokens.len());
            let workers = workers(server, &tokens, *count, once).await?;
            let meter = Meter::start(running)?;
            let figures = run(workers, time).await?;
            ensure!(figures.refused == 0, "{} requests with tokens were refused", figures.refused);
            report.add_rate(name.clone(), &figures);
            meter.add(report, &name, figures.count)?;
        }
    }
    Ok(())
}

/// HTTP/1.1 clients that share the tokens (an HTTP/2 connection of the generator has one token):
/// each sends its own part of them, once or repeatedly.
async fn workers(
    server: &Server,
    tokens: &[&str],
    count: usize,
    once: bool,
) -> Result<Vec<Worker>> {
    let first = server.with_token(tokens[0]);
    let clients = Client::connect(&first, count.min(tokens.len()), false).await?;
    let parts = tokens.chunks(tokens.len().div_ceil(clients.len()));
    let workers = clients.into_iter().zip(parts).map(|(client, part)| {
        let call = |token: &&str| server.with_token(token).call("GET", TARGET, "", "");
        let calls: Vec<_> = part.iter().map(call).collect();
        let call = calls[0].clone();
        let mut number = 0;
        let next = move |call: &mut Call| {
            let more = !once || number < calls.len();
            call.clone_from(&calls[number % calls.len()]);
            number += 1;
            more
        };
        Worker { client, call, next: Box::new(next) }
    });
    Ok(workers.collect())
}
