//! A siege: hundreds of hostile clients, and an ordinary user who must not notice them.
//!
//! The clients are rows of `siege.yaml`. One row follows another, and their connections stay as
//! long as the server keeps them. Meanwhile a user without special rights reads and writes over old
//! and new connections, and `/livez` is polled. Requirements:
//! - all of these requests get a response in time;
//! - the server closes hostile connections;
//! - when the clients have left, their descriptors and most of their memory are released.
//!
//! Never run this against a server that is in use.

mod frames;
mod ordinary;
mod peer;
mod row;

use std::fmt;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, anyhow};

use crate::Target;
use crate::http::Request;
use ordinary::{Answers, Fixture, Question};
use peer::{Peer, Route};
use row::{Identity, Names, Row};

/// The number of threads for the clients of a row.
const THREADS: usize = 8;
/// The pause between two rounds of clients that are not a flood.
const PAUSE: Duration = Duration::from_millis(200);
/// How long a row's connections are read to see whether the server has closed them.
const LOOK: Duration = Duration::from_secs(2);
/// How long each connection is read at least, even if open ones before it have used up the time.
const LOOK_AT_ONE: Duration = Duration::from_millis(50);
/// How often open connections are checked before they count against the server: a busy machine is
/// slow.
const LOOKS: usize = 3;
/// The most descriptors that a server may have in addition afterwards.
const DESCRIPTORS_MORE: u64 = 16;
/// How soon after the hostile clients left the server must have recovered.
const RECOVERY: Duration = Duration::from_secs(30);

/// The campaign and its requirements.
#[derive(Clone, Debug)]
pub struct Campaign {
    /// The number of connections of a row, unless the row says otherwise.
    pub connections: usize,
    /// How long each row lasts before the next comes.
    pub seconds: f64,
    /// How long after the last row the hostile connections are checked: the server should have
    /// closed them. If not, a few more checks follow, each after the same time.
    pub patience: Duration,
    /// The source address of hostile clients; `None` for the ordinary user's.
    pub from: Option<IpAddr>,
    /// Every response must arrive within this time.
    pub slowest: Duration,
    /// Nine of ten responses must arrive within this time.
    pub usual: Duration,
    /// The most memory that the server may have in addition afterwards.
    pub memory_more_bytes: u64,
    /// Only rows with one of these words in their names; empty means all.
    pub only: Vec<String>,
}

/// The result of a row.
#[derive(Debug)]
pub struct Outcome {
    peer: String,
    opened: usize,
    failed: usize,
    closed: usize,
    must_close: bool,
    answers: Vec<Answers>,
    complaints: Vec<String>,
}

/// The server's resources.
#[derive(Clone, Copy, Debug, Default)]
struct Held {
    descriptors: u64,
    memory_bytes: u64,
}

/// The result of the campaign.
#[derive(Debug)]
pub struct Summary {
    /// The rows, in order.
    pub outcomes: Vec<Outcome>,
    before: Held,
    after: Held,
    complaints: Vec<String>,
}

/// The open connections of a row.
struct Attackers {
    row: Row,
    peers: Vec<Peer>,
    opened: usize,
    failed: usize,
}

/// Runs a campaign against the server of a target, whose user must be allowed everything.
pub fn run(target: &Target, campaign: &Campaign) -> Result<Summary> {
    let fixture = Fixture::create(target).context("making the campaign's namespace")?;
    let route = Route::new(target.cluster(), campaign.from)?;
    let before = Held::by(target)?;
    let (mut all_attackers, mut outcomes) = (Vec::new(), Vec::new());
    for row in row::all()? {
        if !campaign.only.is_empty() && !campaign.only.iter().any(|word| row.peer.contains(word)) {
            continue;
        }
        let (attackers, answers) = run_row(target, &fixture, &route, row, campaign)?;
        let complain = |answers: &Answers| answers.complaint(campaign.slowest, campaign.usual);
        outcomes.push(Outcome {
            peer: attackers.row.peer.clone(),
            opened: attackers.opened,
            failed: attackers.failed,
            closed: 0,
            must_close: attackers.row.closed,
            complaints: answers.iter().filter_map(complain).collect(),
            answers,
        });
        all_attackers.push(attackers);
    }
    for _ in 0..LOOKS {
        std::thread::sleep(campaign.patience);
        for (attackers, outcome) in all_attackers.iter_mut().zip(&mut outcomes) {
            outcome.look(attackers);
        }
        if outcomes.iter().all(Outcome::has_closed_its_share) {
            break;
        }
    }
    outcomes.iter_mut().for_each(Outcome::complain_of_open_connections);
    drop(all_attackers);
    let mut summary = Summary { outcomes, before, after: before, complaints: Vec::new() };
    summary.recover(target, campaign)?;
    fixture.delete(target)?;
    Ok(summary)
}

/// Opens the connections of a row, while an ordinary user sends requests.
fn run_row(
    target: &Target,
    fixture: &Fixture,
    route: &Route,
    row: Row,
    campaign: &Campaign,
) -> Result<(Attackers, Vec<Answers>)> {
    let token = match row.identity {
        Identity::Anonymous => None,
        Identity::Nobody => Some(fixture.nobody.clone()),
        Identity::Insider => Some(fixture.insider.clone()),
    };
    let names = Names { collection: fixture.collection(), token };
    let stop = AtomicBool::new(false);
    let wanted = row.connections(campaign.connections);
    let end = Instant::now() + Duration::from_secs_f64(campaign.seconds);
    std::thread::scope(|scope| {
        let threads = THREADS.min(wanted);
        let hands: Vec<_> = (0..threads)
            .map(|thread| {
                let share = wanted / threads + usize::from(thread < wanted % threads);
                let (row, names) = (row.clone(), &names);
                scope.spawn(move || attack(route, row, names, share, end))
            })
            .collect();
        let askers = Question::ALL.map(|question| {
            let stop = &stop;
            scope.spawn(move || question.ask(target, fixture, stop))
        });
        let mut whole = Attackers { row: row.clone(), peers: Vec::new(), opened: 0, failed: 0 };
        let mut failed = false;
        for hand in hands {
            match hand.join() {
                Ok(part) => whole.join(part),
                Err(_) => failed = true,
            }
        }
        stop.store(true, Ordering::Relaxed);
        let answers: Option<Vec<_>> = askers.map(|asker| asker.join().ok()).into_iter().collect();
        let answers = answers.filter(|_| !failed).ok_or_else(|| anyhow!("a thread panicked"))?;
        Ok((whole, answers))
    })
}

/// One thread's part of a row's connections.
fn attack(route: &Route, row: Row, names: &Names, wanted: usize, end: Instant) -> Attackers {
    let mut part = Attackers { row, peers: Vec::new(), opened: 0, failed: 0 };
    while Instant::now() < end {
        while part.peers.len() < wanted && Instant::now() < end {
            match Peer::open(route, &part.row, names) {
                Ok(peer) => {
                    part.opened += 1;
                    part.peers.push(peer);
                }
                // The server may refuse hostile connections.
                Err(_) => {
                    part.failed += 1;
                    break;
                }
            }
        }
        let Attackers { row, peers, .. } = &mut part;
        peers.retain_mut(|peer| {
            let sent = Instant::now() >= end || peer.take(&row.again, names).is_ok();
            sent && (!row.flood || peer.forget_answers().is_ok())
        });
        if !row.flood {
            std::thread::sleep(PAUSE.min(end.saturating_duration_since(Instant::now())));
        }
    }
    part
}

impl Attackers {
    fn join(&mut self, mut part: Self) {
        self.peers.append(&mut part.peers);
        self.opened += part.opened;
        self.failed += part.failed;
    }
}

impl Held {
    /// Reads the server's metrics; metrics that it does not have are not compared.
    fn by(target: &Target) -> Result<Self> {
        let mut request = Request { method: "GET".to_owned(), ..Request::default() };
        request.target = "/metrics".to_owned();
        request.headers.extend(target.authorization());
        let answer = target.connect(false)?.exchange(&request).context("reading the metrics")?;
        let text = String::from_utf8_lossy(&answer.body).into_owned();
        let value = |name: &str| -> u64 {
            let of = |line: &str| line.strip_prefix(name)?.trim().parse::<f64>().ok();
            text.lines().find_map(of).unwrap_or(0.0) as u64
        };
        Ok(Self {
            descriptors: value("process_open_fds "),
            memory_bytes: value("process_resident_memory_bytes "),
        })
    }
}

impl Outcome {
    /// Checks which connections the server has closed.
    fn look(&mut self, attackers: &mut Attackers) {
        let deadline = Instant::now() + LOOK;
        self.closed = attackers.opened - attackers.peers.len();
        self.closed += attackers
            .peers
            .iter_mut()
            .filter_map(|peer| {
                let deadline = deadline.max(Instant::now() + LOOK_AT_ONE);
                peer.is_closed_by(deadline).then_some(())
            })
            .count();
    }

    /// Whether all connections are closed that the server must close.
    const fn has_closed_its_share(&self) -> bool {
        !self.must_close || self.closed == self.opened
    }

    fn complain_of_open_connections(&mut self) {
        if !self.has_closed_its_share() {
            let open = self.opened - self.closed;
            self.complaints.push(format!("{open} connections were not closed"));
        }
    }
}

impl Summary {
    /// Waits until the server uses hardly more resources than before; complains if it does not
    /// within `RECOVERY`.
    fn recover(&mut self, target: &Target, campaign: &Campaign) -> Result<()> {
        let end = Instant::now() + RECOVERY;
        loop {
            self.after = Held::by(target)?;
            let descriptors = self.after.descriptors > self.before.descriptors + DESCRIPTORS_MORE;
            let memory =
                self.after.memory_bytes > self.before.memory_bytes + campaign.memory_more_bytes;
            if !descriptors && !memory {
                return Ok(());
            }
            if Instant::now() > end {
                self.complaints.push("the server holds more than before".to_owned());
                return Ok(());
            }
            std::thread::sleep(PAUSE);
        }
    }

    /// Whether all requirements hold.
    pub fn is_good(&self) -> bool {
        self.complaints.is_empty() && self.outcomes.iter().all(|row| row.complaints.is_empty())
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verdict = if self.complaints.is_empty() { "ok  " } else { "FAIL" };
        let Self { peer, opened, failed, closed, .. } = self;
        write!(f, "{verdict} {peer}: {opened} opened, {failed} refused, {closed} closed;")?;
        for answers in &self.answers {
            write!(f, " {answers}")?;
        }
        for complaint in &self.complaints {
            write!(f, "\n     {complaint}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for outcome in &self.outcomes {
            writeln!(f, "{outcome}")?;
        }
        let megabytes = |held: Held| held.memory_bytes as f64 / 1e6;
        let (before, after) = (self.before, self.after);
        write!(f, "descriptors {} → {}", before.descriptors, after.descriptors)?;
        write!(f, ", memory {:.1} → {:.1} MB", megabytes(before), megabytes(after))?;
        for complaint in &self.complaints {
            write!(f, "\n     {complaint}")?;
        }
        Ok(())
    }
}
