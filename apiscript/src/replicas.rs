//! Tests several servers of one database. Random clients write to and read from any server. All
//! responses must fit one history, and the watch of every server must report this history.
//!
//! Clients write leases with few names, so that they compete. They read objects, lists, and paged
//! lists with each page from another server. A seed determines everything except the order in which
//! servers respond. `history` checks each response when the history is known.

mod client;
mod history;
mod watcher;

use std::fmt;
use std::io::Write as _;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use serde_json::json;

use crate::{Target, request};
use client::Client;
use history::History;
use watcher::Watcher;

/// The clients and their requests.
#[derive(Clone, Copy, Debug)]
pub struct Campaign {
    /// The seed of the requests.
    pub seed: u64,
    /// The number of concurrent clients.
    pub clients: usize,
    /// The number of requests of each client.
    pub requests: usize,
    /// Requests may fail because servers or the database are broken on purpose; then their outcome
    /// is unknown.
    pub may_fail: bool,
}

/// The result of a campaign.
#[derive(Debug, Default)]
pub struct Summary {
    /// The number of requests with a response, and how many of them were refused.
    pub answered: usize,
    pub refused: usize,
    /// The number of requests with an unknown outcome.
    pub unknown: usize,
    /// The number of changes in the history.
    pub changes: usize,
    /// The contradictions to the history.
    pub wrong: Vec<String>,
}

/// The state that all clients and watchers share.
struct World<'a> {
    servers: &'a [Target],
    namespace: String,
    /// Counts starts and ends of requests, which orders those that do not overlap.
    clock: AtomicU64,
    /// The newest revision in any response to a read, a write or a list.
    newest: AtomicU64,
    may_fail: bool,
}

impl World<'_> {
    fn tick(&self) -> u64 {
        self.clock.fetch_add(1, Ordering::SeqCst)
    }

    /// Prints progress.
    fn print(&self, what: &str) {
        let _ = writeln!(std::io::stderr(), "{what}"); // stderr may be closed
    }

    fn path(&self) -> String {
        format!("/apis/coordination.k8s.io/v1/namespaces/{}/leases", self.namespace)
    }
}

/// How long the watches may take to report the last change.
const TIMEOUT: Duration = Duration::from_secs(60);
/// The pause before a client uses servers again after a failure.
const BROKEN_PAUSE: Duration = Duration::from_millis(50);
/// The object that is written last.
const LAST: &str = "zz-last";

/// Runs a campaign against servers of one database.
pub fn run(servers: &[Target], campaign: &Campaign) -> Result<Summary> {
    ensure!(!servers.is_empty(), "there is no server");
    let namespace = format!("replicas-{:x}-{:x}", campaign.seed, std::process::id());
    let world = World {
        servers,
        namespace,
        clock: AtomicU64::new(0),
        newest: AtomicU64::new(0),
        may_fail: campaign.may_fail,
    };
    let since = make_namespace(&world)?;
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        // One watcher of each server, and one that goes from server to server.
        let watchers: Vec<_> = (0..=servers.len())
            .map(|number| {
                let watcher = Watcher::new(&world, number, since);
                let is_over = &is_over;
                scope.spawn(move || watcher.run(is_over, TIMEOUT))
            })
            .collect();
        let clients: Vec<_> = (0..campaign.clients)
            .map(|number| {
                let client = Client::new(&world, campaign.seed, number);
                scope.spawn(move || client.run(campaign.requests))
            })
            .collect();
        let mut answers = Vec::new();
        for client in clients {
            answers.extend(client.join().map_err(|_| anyhow::anyhow!("a client panicked"))??);
        }
        is_over.store(true, Ordering::SeqCst);
        client::write_last(&world)?;
        let mut reports = Vec::new();
        for watcher in watchers {
            reports.push(watcher.join().map_err(|_| anyhow::anyhow!("a watcher panicked"))??);
        }
        let (history, mut wrong) = History::of(reports);
        wrong.extend(history.judge(&answers));
        Ok(Summary {
            answered: answers.iter().filter(|answer| !answer.is_unknown()).count(),
            refused: answers.iter().filter(|answer| answer.is_refused()).count(),
            unknown: answers.iter().filter(|answer| answer.is_unknown()).count(),
            changes: history.len(),
            wrong,
        })
    })
}

/// Creates the namespace and returns its revision, before which nothing happened in it.
fn make_namespace(world: &World<'_>) -> Result<u64> {
    let deadline = Instant::now() + TIMEOUT;
    loop {
        match try_make_namespace(world) {
            Err(_) if world.may_fail && Instant::now() < deadline => thread::sleep(BROKEN_PAUSE),
            made => return made,
        }
    }
}

fn try_make_namespace(world: &World<'_>) -> Result<u64> {
    let server = &world.servers[0];
    let object = json!({"metadata": {"name": world.namespace}});
    let mut connection = server.connect(false)?;
    let made = connection.exchange(&request::create(server, "/api/v1/namespaces", &object))?;
    // If the first attempt had no response, the second finds the namespace.
    let is_there = made.head.status == 201 || world.may_fail && made.head.status == 409;
    ensure!(is_there, "creating the namespace: status {}", made.head.status);
    let path = format!("/api/v1/namespaces/{}", world.namespace);
    let read = connection.exchange(&request::read(server, &path))?;
    ensure!(read.head.status == 200, "reading the namespace: status {}", read.head.status);
    history::revision(&serde_json::from_slice(&read.body)?).context("a resource version")
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for wrong in self.wrong.iter().take(20) {
            writeln!(f, "wrong: {wrong}")?;
        }
        let Self { answered, refused, unknown, changes, wrong } = self;
        write!(
            f,
            "{answered} answers ({refused} refusals), {unknown} unknown outcomes, \
             {changes} changes: {} wrong",
            wrong.len()
        )
    }
}
