//! The crash campaign: kills a server under load and restarts it on the same data.
//!
//! After every round, it checks:
//! - the server has every acknowledged write with its exact content;
//! - a write that was in flight at the kill happened completely or not at all;
//! - resource versions only grow, even across restarts.
//!
//! After the last round, it checks that watchers, which resumed from their last version after each
//! restart, saw every change exactly once, in order.

mod history;
mod watcher;
mod writer;

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};

use crate::server::Server;
use history::History;
use watcher::Watcher;
use writer::Writer;

/// How long a server may take to be ready, and a watcher to catch up.
const TIMEOUT: Duration = Duration::from_secs(60);
/// The namespace of the objects.
const NAMESPACE: &str = "crash";

/// The settings of a campaign.
#[derive(Clone, Debug)]
pub struct Campaign {
    /// The server's binary.
    pub binary: PathBuf,
    /// The number of kills.
    pub rounds: usize,
    /// The number of writers.
    pub clients: usize,
    /// The number of watchers.
    pub watchers: usize,
    /// The seed of times and choices.
    pub seed: u64,
}

/// The counts of a campaign. A campaign that finds a violation returns an error instead.
#[derive(Clone, Debug, Default)]
pub struct Summary {
    rounds: usize,
    acknowledged: usize,
    uncertain: usize,
    events: usize,
    restarts: Vec<Duration>,
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let longest = self.restarts.iter().max().copied().unwrap_or_default();
        write!(
            f,
            "{} kills: {} acknowledged writes intact, {} unanswered ones complete or absent, {} events once and \
             in order; longest restart {longest:.0?}",
            self.rounds, self.acknowledged, self.uncertain, self.events
        )
    }
}

/// Runs a campaign; an error describes the violation. `say` receives a line for each round.
pub async fn run(campaign: &Campaign, mut say: impl FnMut(String)) -> Result<Summary> {
    let folder = tempfile::tempdir()?;
    let mut random = Random::new(campaign.seed);
    let mut writers: Vec<Writer> =
        (0..campaign.clients).map(|number| Writer::new(number, random.next())).collect();
    let mut watchers = Vec::new();
    let mut summary = Summary::default();
    for round in 1..=campaign.rounds {
        let load_time = Duration::from_millis(200 + random.next() % 1_300);
        let process = Process::start(&campaign.binary, folder.path()).await?;
        summary.restarts.push(process.ready_after);
        if round == 1 {
            let object = format!("{{\"metadata\":{{\"name\":\"{NAMESPACE}\"}}}}");
            process.server.ask("POST", "/api/v1/namespaces", &object, &[]).await?;
        }
        let version =
            check(&process.server, &mut writers).await.with_context(|| format!("round {round}"))?;
        if round == 1 {
            watchers.extend((0..campaign.watchers).map(|_| Watcher::from(version)));
        }
        (writers, watchers) = load_and_kill(process, load_time, writers, watchers).await?;
        let acknowledged: usize = writers.iter().map(Writer::acknowledged).sum();
        say(format!(
            "round {round}: killed after {load_time:.0?}, {acknowledged} writes acknowledged so far"
        ));
    }
    let process = Process::start(&campaign.binary, folder.path()).await?;
    summary.restarts.push(process.ready_after);
    check(&process.server, &mut writers).await.context("after the last round")?;
    let end = marker(&process.server).await?;
    let histories: Vec<&History> = writers.iter().map(Writer::history).collect();
    for (number, watcher) in watchers.iter_mut().enumerate() {
        let caught_up = watcher.follow(&process.server, Some(end));
        tokio::time::timeout(TIMEOUT, caught_up)
            .await
            .with_context(|| format!("watcher {number} does not reach version {end}"))??;
        watcher.compare(&histories).with_context(|| format!("watcher {number}"))?;
    }
    summary.rounds = campaign.rounds;
    summary.acknowledged = writers.iter().map(Writer::acknowledged).sum();
    summary.uncertain = writers.iter().map(Writer::uncertain).sum();
    summary.events = watchers.iter().map(Watcher::events).sum();
    Ok(summary)
}

/// Lets all clients write and watch for a while, then kills the server.
async fn load_and_kill(
    mut process: Process,
    load_time: Duration,
    writers: Vec<Writer>,
    watchers: Vec<Watcher>,
) -> Result<(Vec<Writer>, Vec<Watcher>)> {
    let server = process.server.clone();
    let writing: Vec<_> = writers
        .into_iter()
        .map(|mut writer| {
            let server = server.clone();
            tokio::spawn(async move { writer.write_until_killed(&server).await.map(|()| writer) })
        })
        .collect();
    let watching: Vec<_> = watchers
        .into_iter()
        .map(|mut watcher| {
            let server = server.clone();
            tokio::spawn(async move { watcher.follow(&server, None).await.map(|()| watcher) })
        })
        .collect();
    tokio::time::sleep(load_time).await;
    process.child.kill().await.context("killing the server")?;
    let mut writers = Vec::new();
    for task in writing {
        writers.push(task.await??);
    }
    let mut watchers = Vec::new();
    for task in watching {
        watchers.push(task.await??);
    }
    Ok((writers, watchers))
}

/// Compares the server's objects with every writer's history; returns the list's version.
async fn check(server: &Server, writers: &mut [Writer]) -> Result<u64> {
    let path = format!("/api/v1/namespaces/{NAMESPACE}/configmaps");
    let (_, body) = server.ask("GET", &path, "", &[]).await?;
    let list: serde_json::Value = serde_json::from_slice(&body)?;
    let version = resource_version(&list).context("the list has no version")?;
    let items = list["items"].as_array().map(Vec::as_slice).unwrap_or_default();
    let objects: BTreeMap<&str, &serde_json::Value> = items
        .iter()
        .filter_map(|object| Some((object["metadata"]["name"].as_str()?, object)))
        .collect();
    for writer in writers {
        writer.compare(&objects, version)?;
    }
    Ok(version)
}

/// Writes one more object; its version is the end of the history.
async fn marker(server: &Server) -> Result<u64> {
    let path = format!("/api/v1/namespaces/{NAMESPACE}/configmaps");
    let (_, body) = server.ask("POST", &path, "{\"metadata\":{\"name\":\"end\"}}", &[]).await?;
    resource_version(&serde_json::from_slice(&body)?).context("the marker has no version")
}

/// The resource version in an object's or a list's metadata.
fn resource_version(object: &serde_json::Value) -> Option<u64> {
    object["metadata"]["resourceVersion"].as_str()?.parse().ok()
}

/// The running server.
struct Process {
    child: Child,
    server: Server,
    ready_after: Duration,
}

impl Process {
    async fn start(binary: &Path, data: &Path) -> Result<Self> {
        let start = Instant::now();
        let mut child = Command::new(binary)
            .args(["serve", "--secure-port", "0", "--data-dir"])
            .arg(data.join("data"))
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .with_context(|| format!("starting {}", binary.display()))?;
        let out = child.stdout.take().context("it has a standard output")?;
        let mut lines = BufReader::new(out).lines();
        let ready = async {
            while let Some(line) = lines.next_line().await? {
                if let Some(rest) = line.strip_prefix("pintle ready ") {
                    let path = rest.split(" kubeconfig=").nth(1).context("no kubeconfig")?;
                    return Ok(PathBuf::from(path));
                }
            }
            anyhow::bail!("the server ended before it was ready")
        };
        let kubeconfig = tokio::time::timeout(TIMEOUT, ready)
            .await
            .context("the server isn't ready in time")??;
        let ready_after = start.elapsed();
        Ok(Self { child, server: Server::from_kubeconfig(&kubeconfig)?, ready_after })
    }
}

/// A small random generator with a seed (splitmix64).
struct Random(u64);

impl Random {
    fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below a bound.
    fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.next() % bound.max(1) as u64).unwrap_or(0)
    }
}

impl fmt::Debug for Process {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Process").field("ready_after", &self.ready_after).finish_non_exhaustive()
    }
}

/// Returns an error unless a guarantee of the server holds.
fn require(holds: bool, violation: impl FnOnce() -> String) -> Result<()> {
    ensure!(holds, violation());
    Ok(())
}
